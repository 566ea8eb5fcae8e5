"""CSV records as rows, and what becomes of those that do not fit: the exact path.

Fields become values by the rules of Spark's reader, which are Java's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ...evolution.new_columns import NewColumnsSeen
from ...evolution.type_growth import wider_in_text
from ...options import ParseMode, ReaderOptions
from ...values.numbers import boolean, decimal, floating, integer
from ...values.rows import Row, Rows
from ...values.text_types import TextTypes
from ...values.times.temporal import Temporal
from ..record_format import malformed
from .univocity_scanner import Token

_types = pa.types


class CsvRows(Rows):
    """Makes rows of records under the reader's mode."""

    def __init__(
        self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions, temporal: Temporal
    ) -> None:
        """Raises TypeError for a column type that CSV cannot be read into."""
        super().__init__(schema, data)
        self._mode = options.mode
        self._null = options.null_value or ""
        self._quote, self._is_line = options.quote, not options.multi_line
        self._widens = options.mode_of_evolution.widens
        self._types = TextTypes(temporal)
        self._converters = {f.name: converter(f.type, options, temporal) for f in data}
        self._corrupt = self._string_column(options.column_name_of_corrupt_record)
        self._rescued = self._string_column(options.rescued_data_column)

    def of_record(
        self, tokens: Sequence[Token], names: Sequence[str], text: str, where: Callable[[], str]
    ) -> Row | str:
        """The row of a record with a field for each of `names`; if it is dropped, why.

        Raises:
            MalformedDataError: the record does not fit, under `FAILFAST`.
        """
        row: Row = {}
        rescued: dict[str, Any] = {}
        problem = ""
        # A record may have fewer or more fields than there are names; that is judged below.
        for name, token in zip(names, tokens, strict=False):
            # An empty field without quotes is null for any `nullValue`, as in Spark's
            # `UnivocityParser`.
            if token is None or token == self._null:
                continue
            convert = self._converters.get(name)
            if convert is None:
                rescued[name] = token
                continue
            try:
                row[name] = convert(token)
            except (ValueError, OverflowError):
                self._refuse_wider(name, token, where)
                rescued[name] = token
                kind = self.out_schema.field(name).type
                problem = problem or f"column {name}: {token[:100]!r} where {kind} is expected"
        # Where no column is asked for, Spark counts lines and looks into none of them.
        if len(tokens) != len(names) and self._converters:
            problem = f"{len(tokens)} fields where {len(names)} are expected"
            if self._is_line and self._quote and text.count(self._quote) % 2:
                problem += "; a quote is open: if values contain line breaks, set multiLine"
            # Spark's names for columns without a name.
            rescued |= {f"_c{i}": tokens[i] for i in range(len(names), len(tokens))}
        if self._rescued and rescued:
            row[self._rescued] = json.dumps(rescued, ensure_ascii=False, separators=(",", ":"))
        is_bad = problem and not self._rescued
        return self._bad(row, text, problem, where) if is_bad else row

    def _refuse_wider(self, name: str, token: str, where: Callable[[], str]) -> None:
        if not self._widens:
            return
        kind, found = self.out_schema.field(name).type, self._types.of(token)
        if pa.types.is_decimal(kind) and pa.types.is_floating(found):
            # `TextTypes` calls a fraction `double`; here its digits say which decimal would take
            # it.
            with suppress(ArithmeticError, ValueError):
                found = pa.scalar(Decimal(token)).type
        if wider_in_text(kind, found) not in (None, kind):
            raise NewColumnsSeen(where(), pa.struct([(name, found)]))

    def _bad(self, row: Row, text: str, problem: str, where: Callable[[], str]) -> Row | str:
        if self._mode is ParseMode.FAILFAST:
            raise malformed(where(), problem, "a record that fits the schema")
        if self._mode is ParseMode.DROPMALFORMED:
            return problem
        return {**row, self._corrupt: text} if self._corrupt else row


def converter(
    kind: pa.DataType, options: ReaderOptions, temporal: Temporal
) -> Callable[[str], Any]:
    """A function from a field's text to what `pa.array` takes; raises ValueError where it fails.

    `OverflowError` means the same.

    Raises:
        TypeError: CSV cannot be read into columns of this type.
    """
    if _types.is_string(kind):
        return str
    if _types.is_binary(kind):
        return str.encode
    if _types.is_boolean(kind):
        return boolean
    if _types.is_integer(kind):
        return lambda text: integer(text, kind)
    if _types.is_floating(kind):
        words = {
            options.nan_value: math.nan,
            options.positive_inf: math.inf,
            options.negative_inf: -math.inf,
        }
        return lambda text: words[text] if text in words else floating(text, kind)
    if _types.is_decimal(kind):
        return lambda text: decimal(text, kind)
    if _types.is_date32(kind) or _types.is_timestamp(kind):
        return lambda text: temporal.value(text, kind)
    raise TypeError(f"CSV cannot be read into columns of type {kind}")
