"""One JSON record as rows, and what becomes of it if it does not fit: the exact path.

Not here: cutting into records, the fast path (`format.py`), single values (`values.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ...options import ParseMode, ReaderOptions
from ..columns import empty_columns
from ..records import malformed
from ..times.temporal import Temporal
from .text import JsonParser
from .values import Misfit, converter, to_json
from .variant import is_variant

Row = dict[str, Any]


class JsonRows:
    """Makes rows of records under the reader's mode."""

    def __init__(
        self, schema: pa.Schema, data: pa.Schema, options: ReaderOptions, temporal: Temporal
    ) -> None:
        """Raises TypeError for columns that JSON cannot be read into."""
        self._parser = JsonParser(options)
        self._mode = options.mode
        self._data = data
        self._converters = {f.name: converter(f.type, options, temporal) for f in data}
        self._corrupt = _string_column(schema, options.column_name_of_corrupt_record)
        self._single = options.single_variant_column
        if self._single and (data.names != [self._single] or not is_variant(data.types[0])):
            raise TypeError(f"columns other than the one variant {self._single}")
        self._rescued = _string_column(schema, options.rescued_data_column)
        known = {f.name: f for f in data}
        self.out_schema = pa.schema([known.get(f.name, f.with_nullable(True)) for f in schema])

    def of_record(self, line: bytes, where: Callable[[], str]) -> tuple[list[Row], int]:
        """The rows of one record, and how many were dropped.

        Raises:
            MalformedDataError: the record does not parse or fit, under `FAILFAST`.
        """
        text = line.decode("utf-8", "replace")
        try:
            line.decode()
            value = self._parser.parse(text)
            if self._single:
                return self._of_object({self._single: value}, text, where)
            records = value if isinstance(value, list) else [value]
            if not all(isinstance(record, dict) for record in records):
                raise Misfit(f"{to_json(value)[:100]} where an object is expected")
        except (ValueError, RecursionError) as err:
            return self._bad({}, text, str(err), where)
        rows, dropped = list[Row](), 0
        for record in records:
            made, bad = self._of_object(record, text, where)
            rows += made
            dropped += bad
        return rows, dropped

    def batch(self, rows: list[Row]) -> pa.RecordBatch:
        """Rows as Arrow."""
        arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in self.out_schema]
        if not arrays:
            return empty_columns(self.out_schema, len(rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.out_schema)

    def _of_object(
        self, record: dict[str, Any], text: str, where: Callable[[], str]
    ) -> tuple[list[Row], int]:
        row: Row = {}
        rescued: dict[str, Any] = {}
        problem = ""
        for name, value in record.items():
            convert = self._converters.get(name)
            if convert is None:
                rescued[name] = value
            else:
                try:
                    row[name] = convert(value)
                except Misfit as err:
                    if self._rescued:
                        rescued[name] = value
                    row[name] = err.partial
                    problem = problem or f"column {name}: {err}"
        if self._rescued:
            if rescued:
                row[self._rescued] = to_json(rescued)
            return [row], 0
        return self._bad(row, text, problem, where) if problem else ([row], 0)

    def _bad(
        self, row: Row, text: str, problem: str, where: Callable[[], str]
    ) -> tuple[list[Row], int]:
        if self._mode is ParseMode.FAILFAST:
            raise malformed(where(), problem, "a JSON object that fits the schema")
        if self._mode is ParseMode.DROPMALFORMED:
            return [], 1
        if self._corrupt:
            row = {**row, self._corrupt: text.rstrip("\r\n")}
        return [row], 0


def _string_column(schema: pa.Schema, name: str) -> str:
    index = schema.get_field_index(name) if name else -1
    return name if index >= 0 and pa.types.is_string(schema.field(index).type) else ""
