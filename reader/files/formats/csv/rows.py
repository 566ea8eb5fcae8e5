"""CSV fields as values of a schema by the rules of Spark's reader: the exact path.

Not here: cutting into fields (`tokens.py`), the fast path (`format.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ...options import ParseMode, ReaderOptions
from ..columns import empty_columns
from ..json.scalars import rounded
from ..records import malformed
from ..times.temporal import Temporal
from .tokens import Token

Row = dict[str, Any]
_types = pa.types
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_FLOAT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[dDfF]?\s*\Z", re.ASCII)
_JAVA = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}


class CsvRows:
    """Makes rows of records under the reader's mode."""

    def __init__(
        self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions, temporal: Temporal
    ) -> None:
        """Raises TypeError for a column type that CSV cannot be read into."""
        self._mode = options.mode
        self._null = options.null_value
        self._converters = {f.name: converter(f.type, options, temporal) for f in data}
        self._corrupt = _string_column(schema, options.column_name_of_corrupt_record)
        self._rescued = _string_column(schema, options.rescued_data_column)
        known = {f.name: f for f in data}
        self.out_schema = pa.schema([known.get(f.name, f.with_nullable(True)) for f in schema])

    def of_record(
        self, tokens: Sequence[Token], names: Sequence[str], text: str, where: Callable[[], str]
    ) -> Row | None:
        """The row of a record with a field for each of `names`; None if it is dropped.

        Raises:
            MalformedDataError: the record does not fit, under `FAILFAST`.
        """
        row: Row = {}
        rescued: dict[str, Any] = {}
        problem = ""
        for name, token in zip(names, tokens, strict=False):
            if token is None or token == self._null:
                continue
            convert = self._converters.get(name)
            if convert is None:
                rescued[name] = token
                continue
            try:
                row[name] = convert(token)
            except (ValueError, OverflowError, InvalidOperation):
                rescued[name] = token
                kind = self.out_schema.field(name).type
                problem = problem or f"column {name}: {token[:100]!r} where {kind} is expected"
        if len(tokens) != len(names):
            problem = f"{len(tokens)} fields where {len(names)} are expected"
            rescued |= {f"_c{i}": tokens[i] for i in range(len(names), len(tokens))}
        if self._rescued:
            if rescued:
                row[self._rescued] = json.dumps(rescued, ensure_ascii=False, separators=(",", ":"))
            return row
        return self._bad(row, text, problem, where) if problem else row

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows as Arrow."""
        arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in self.out_schema]
        if not arrays:
            return empty_columns(self.out_schema, len(rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.out_schema)

    def _bad(self, row: Row, text: str, problem: str, where: Callable[[], str]) -> Row | None:
        if self._mode is ParseMode.FAILFAST:
            raise malformed(where(), problem, "a record that fits the schema")
        if self._mode is ParseMode.DROPMALFORMED:
            return None
        return {**row, self._corrupt: text} if self._corrupt else row


def converter(
    kind: pa.DataType, options: ReaderOptions, temporal: Temporal
) -> Callable[[str], Any]:
    """A function from a field's text to what `pa.array` takes; raises ValueError where it fails."""
    if _types.is_string(kind):
        return str
    if _types.is_binary(kind):
        return str.encode
    if _types.is_boolean(kind):
        return lambda text: {"true": True, "false": False}.get(text.lower()) or _false(text)
    if _types.is_integer(kind):
        return lambda text: _integer(text, 1 << (kind.bit_width - 1))
    if _types.is_floating(kind):
        words = {
            options.nan_value: math.nan,
            options.positive_inf: math.inf,
            options.negative_inf: -math.inf,
        }
        return lambda text: _float(text, words)
    if _types.is_decimal(kind):
        return lambda text: rounded(Decimal(text), kind)
    if _types.is_date32(kind) or _types.is_timestamp(kind):
        return lambda text: temporal.value(text, kind)
    raise TypeError(f"CSV cannot be read into columns of type {kind}")


def _false(text: str) -> bool:
    if text.lower() == "false":
        return False
    raise ValueError(text)


def _integer(text: str, bound: int) -> int:
    if _INTEGER.match(text):
        number = int(text)
        if -bound <= number < bound:
            return number
    raise ValueError(text)


def _float(text: str, words: dict[str, float]) -> float:
    known = words.get(text, _JAVA.get(text))
    if known is not None:
        return known
    match = _FLOAT.match(text)
    if not match:
        raise ValueError(text)
    return float(match[1])


def _string_column(schema: pa.Schema, name: str) -> str:
    index = schema.get_field_index(name) if name else -1
    return name if index >= 0 and pa.types.is_string(schema.field(index).type) else ""
