"""Fits decoded columns to the user's schema: by name, in its order, with casts that lose nothing.

Conversion of one column is in `convert.py`; reading of any format is not here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..evolution.column_names import ColumnNames
from ..evolution.type_growth import is_variant
from .convert import Misfit, converter, index_of, require_nullable
from .map_nested import Change, Path, is_list_like, same
from .rows import batch_of


class ColumnFitter:
    """Turns batches in any file's schema into batches in the target schema.

    The plan for a file's schema is kept, because thousands of files in a row have the same one.
    """

    def __init__(self, schema: pa.Schema, zone: str = "UTC") -> None:
        """`zone` is where the wall clock of zoneless timestamps hangs, for columns of instants."""
        self.schema = schema
        self._zone = zone
        self._planned_for: pa.Schema | None = None
        self._plan: list[tuple[int, Change]] = []
        self._fits_already = False
        """True if what was planned for is the target schema, with nothing to convert."""

    def wanted(self, file_schema: pa.Schema, path: str) -> list[int]:
        """Indices of the file's columns that the target schema needs, in the file's order.

        Raises:
            SchemaMismatchError: a column cannot be fitted with any values.
        """
        return sorted({index for index, _ in self._plan_for(file_schema, path) if index >= 0})

    def paths(self, file_schema: pa.Schema, path: str) -> list[Path]:
        """Return the same as paths of names, which leave out unwanted fields of structs as well."""
        plan = self._plan_for(file_schema, path)
        wanted: dict[Path, None] = {}
        for (index, _), field in zip(plan, self.schema, strict=True):
            if index >= 0:
                wanted |= dict.fromkeys(_struct_paths(file_schema.field(index), field.type))
        return list(wanted)

    def targets(self, file_schema: pa.Schema, path: str) -> dict[Path, pa.DataType]:
        """Return the types that the schema asks for, by the paths of the file's leaves."""
        source, target = pa.struct(list(file_schema)), pa.struct(list(self.schema))
        try:
            return dict(_paired(source, target, ()))
        except Misfit as misfit:
            raise misfit.in_file(path) from None

    def source_of(self, column: str, file_schema: pa.Schema) -> pa.Field | None:
        """Return the file's field that a column of the target schema is read from."""
        index = index_of(ColumnNames(file_schema.names), column)
        return file_schema.field(index) if index >= 0 else None

    def fit(self, batch: pa.RecordBatch, path: str, first_row: int = -1) -> pa.RecordBatch:
        """`batch` in the target schema; `first_row` is its first row in the file, if known.

        Raises:
            SchemaMismatchError: a column is missing, or a value would change in the cast.
        """
        plan = self._plan_for(batch.schema, path)
        if self._fits_already:
            return batch
        columns: dict[str, pa.Array] = {}
        for (index, convert), field in zip(plan, self.schema, strict=True):
            try:
                if index >= 0:
                    columns[field.name] = convert(batch.column(index))
            except Misfit as misfit:
                where = path if first_row < 0 else f"{path}, rows from {first_row}"
                raise misfit.in_file(where) from misfit.__cause__
        return batch_of(self.schema, batch.num_rows, columns)

    def _plan_for(self, file_schema: pa.Schema, path: str) -> list[tuple[int, Change]]:
        if self._planned_for is None or not file_schema.equals(self._planned_for):
            try:
                names = ColumnNames(file_schema.names)
                self._plan = [_plan_column(file_schema, names, f, self._zone) for f in self.schema]
            except Misfit as misfit:
                self._planned_for = None
                raise misfit.in_file(path) from None
            self._planned_for = file_schema
            self._fits_already = file_schema.equals(self.schema) and all(
                c is same for _, c in self._plan
            )
        return self._plan


def _struct_paths(source: pa.Field, target: pa.DataType) -> list[Path]:
    both = pa.types.is_struct(source.type) and pa.types.is_struct(target)
    if not both or is_variant(target):
        return [(source.name,)]
    names = ColumnNames(field.name for field in source.type)
    below: list[Path] = []
    for field in target:
        index = index_of(names, field.name)
        if index >= 0:
            below += _struct_paths(source.type.field(index), field.type)
    # With none of its fields wanted, the struct is still read to know where it is null.
    return [(source.name, *path) for path in below] or [(source.name,)]


def _paired(
    source: pa.DataType, target: pa.DataType, path: Path
) -> Iterator[tuple[Path, pa.DataType]]:
    types = pa.types
    if types.is_struct(source) and types.is_struct(target):
        names = ColumnNames(field.name for field in source)
        for field in target:
            index = index_of(names, field.name)
            if index >= 0:
                inner = source.field(index)
                yield from _paired(inner.type, field.type, (*path, inner.name))
    elif types.is_map(source) and types.is_map(target):
        yield from _paired(source.key_type, target.key_type, (*path, "key"))
        yield from _paired(source.item_type, target.item_type, (*path, "value"))
    elif is_list_like(source) and types.is_list(target):
        yield from _paired(source.value_type, target.value_type, (*path, "element"))
    else:
        yield path, target


def _plan_column(
    file_schema: pa.Schema, names: ColumnNames, field: pa.Field, zone: str
) -> tuple[int, Change]:
    index = index_of(names, field.name)
    if index >= 0:
        return index, converter(file_schema.field(index).type, field, field.name, zone)
    require_nullable(field, field.name)
    return -1, same
