"""Values on their way to Arrow: rows of exact parsers, columns of fast ones, and counts alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

_ROWS = 65_536

Row = dict[str, Any]
"""Name of a column -> value; what is missing is null."""


class Rows:
    """The schema of the rows, among them columns that only bad records have a value for."""

    def __init__(self, schema: pa.Schema, data: pa.Schema) -> None:
        """`schema` is that of the batches, `data` that of what records hold."""
        self._schema = schema
        fields = {field.name: field for field in data}
        self.out_schema = pa.schema([fields.get(f.name, f.with_nullable(True)) for f in schema])

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Convert rows to columns; a name that a row lacks becomes null."""
        columns = {f.name: pa.array([r.get(f.name) for r in rows], f.type) for f in self.out_schema}
        return batch_of(self.out_schema, len(rows), columns)

    def _string_column(self, name: str) -> str:
        """`name` if the schema has a column of text that is called so; else nothing."""
        index = self._schema.get_field_index(name) if name else -1
        return name if index >= 0 and pa.types.is_string(self._schema.field(index).type) else ""


def batch_of(
    schema: pa.Schema, rows: int, columns: Mapping[str, pa.Array] = MappingProxyType({})
) -> pa.RecordBatch:
    """Return `rows` rows of these columns, with nulls in all others; `schema` may have none."""
    if len(schema):
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # `RecordBatch.from_arrays` without arrays always has 0 rows.
    nothing = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(nothing)


def null_mask(array: pa.Array) -> pa.Array | None:
    """Return where a nested array is null, for `from_arrays`; None if it is nowhere."""
    return array.is_null() if array.null_count else None


def in_place_of(array: pa.Array, values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Values of `kind`, as they lie in memory; null where `array` is."""
    # Not by way of `pa.array`, which imports pandas where that is installed.
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(array), [validity(array), data])


def validity(array: pa.Array) -> pa.Buffer | None:
    """Return the bits of the values that are not null, from the first one on; None if all are."""
    return array.is_valid().buffers()[1] if array.null_count else None


def columns_of(table: pa.Table) -> dict[str, pa.Array]:
    """Name -> column of what was parsed at once."""
    batches = table.to_batches()
    if len(batches) != 1:
        # Which copies, and would copy a single chunk as well.
        batches = table.combine_chunks().to_batches()
    if not batches:
        return {field.name: pa.array([], field.type) for field in table.schema}
    return dict(zip(table.column_names, batches[0].columns, strict=True))


def only_rows(rows: int) -> Iterator[pa.RecordBatch]:
    """Batches without columns, which only say how many rows there are."""
    for start in range(0, rows, _ROWS):
        yield batch_of(pa.schema([]), min(_ROWS, rows - start))


@contextmanager
def gc_paused() -> Iterator[None]:
    """Leave Python's search for cycles off while records are decoded.

    Their values hold none, and looking for some in a hundred thousand of them costs up to a third
    of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
