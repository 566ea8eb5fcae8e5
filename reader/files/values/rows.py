"""Rows of values on their way to Arrow: what exact parsers make of one record after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from .column_fitter import empty_columns

__all__ = ["Row", "Rows"]

Row = dict[str, Any]
"""Name of a column -> value; what is missing is null."""


class Rows:
    """The schema of the rows, among them columns that only bad records have a value for."""

    def __init__(self, schema: pa.Schema, data: pa.Schema) -> None:
        """`schema` is that of the batches, `data` that of what records hold."""
        self._schema = schema
        known = {field.name: field for field in data}
        self.out_schema = pa.schema([known.get(f.name, f.with_nullable(True)) for f in schema])

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows as Arrow."""
        arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in self.out_schema]
        if not arrays:
            return empty_columns(self.out_schema, len(rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.out_schema)

    def _string_column(self, name: str) -> str:
        """`name` if the schema has a column of text that is called so; else nothing."""
        index = self._schema.get_field_index(name) if name else -1
        return name if index >= 0 and pa.types.is_string(self._schema.field(index).type) else ""
