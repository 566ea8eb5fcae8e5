"""Compares the rows of a schema with the table that they are for.

A sink passes the columns of its table, with what else it demands. They are compared before a batch
is planned, before a schema is stored, and before a task reads: later the rows would be read and
acknowledged, and the table would refuse them again and again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import OptionError, TableError
from ..files.evolution.column_names import ColumnNames
from ..files.evolution.hints import parse_hints
from ..files.evolution.type_growth import ddl_of, fitted, is_list, quoted, wider
from .field_ids import finds_by_id
from .partitioning import Partitioning, SpecPartitioning, is_partitioned, paths_of
from .statistics import Path, column_at
from .write_options import WriteOptions

_DEMANDS: Final = b"sluice.table"
"""Metadata of the columns of a table: what it is called, and what else it demands."""

_types = pa.types
_NARROW: Final = (pa.int8(), pa.int16(), pa.int32())
"""Types that Parquet stores alike: files of one can be read as a wider one."""

_PROMOTIONS: Final = ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))
"""As Iceberg has them; decimals of more digits as well."""


def with_demands(
    columns: pa.Schema, table: str, partitions: Sequence[str] = (), rules: Sequence[str] = ()
) -> pa.Schema:
    """The columns of a table, which has none yet if it does not exist, with what it demands.

    Args:
        columns: those of the table.
        table: what messages call it.
        partitions: columns by which files of a Delta table are partitioned.
        rules: what a writer of rows would have to check or to make, and cannot.
    """
    demands = {"table": table, "partitions": [*partitions], "rules": [*rules]}
    return columns.with_metadata({**(columns.metadata or {}), _DEMANDS: json.dumps(demands)})


def check_fit(schema: pa.Schema, columns: pa.Schema, options: WriteOptions) -> None:
    """Check that a table takes rows of this schema, as far as schemas tell.

    Args:
        schema: of the rows, partition columns included.
        columns: those of the table, as `with_demands` has them.
        options: how rows become files.

    Raises:
        TableError: names each column that does not fit, with both types.
        OptionError: rows of this schema cannot be partitioned or sorted as the options say.
    """
    demands = _demands(columns)
    if demands["rules"]:
        raise has_rules(demands["table"], demands["rules"])
    # Files that stay where they are have the partition columns in their paths.
    if options.write_copy == "always":
        _check_partitions(columns, options)
    fit, files = _Fit.of(columns), without_voids(schema)
    problems = [*fit.fields(list(files), list(columns), ""), *_missing(files, columns)]
    if problems:
        types = f"Set schemaHints='{', '.join(fit.hints)}' (or these types in writeSchema, "
        types += "where you pass one, or where the stored schema has a wider type, which hints do "
        types += "not narrow), "
        raise TableError(
            "the table does not take rows of this schema",
            demands["table"],
            "; ".join(problems),
            "columns with the names and types of the table; new ones are added",
            f"Nothing was read or stored. {types if fit.hints else ''}"
            f"{'c' if fit.hints else 'C'}hange the files or the table, or write into another one.",
        )
    if options.write_copy == "always":
        partitioning_of(schema, options, columns)


def _check_partitions(columns: pa.Schema, options: WriteOptions) -> None:
    demands = _demands(columns)
    partitions, chosen = demands["partitions"], options.write_partition_by
    if finds_by_id(columns) and chosen:
        raise TableError(
            "files with partition values cannot be added to an Iceberg table",
            demands["table"],
            f"writePartitionBy={','.join(chosen)}",
            "no writePartitionBy: the table has its own partition spec",
            "Nothing was read or stored. Leave the option out.",
        )
    # A table that does not exist is created with the partition columns of the files.
    if len(columns) and not finds_by_id(columns) and set(partitions) != set(chosen):
        names = ",".join(partitions)
        raise TableError(
            "the table is partitioned by other columns than the files",
            demands["table"],
            f"writePartitionBy={','.join(chosen)}" if chosen else "no writePartitionBy",
            f"the table's partition columns: {names or 'none'}",
            f"Nothing was read or stored. Set the option writePartitionBy={names}."
            if partitions
            else "Nothing was read or stored. Leave the option out.",
        )


def partitioning_of(
    schema: pa.Schema, options: WriteOptions, columns: pa.Schema | None
) -> Partitioning:
    """How rows of this schema are distributed to files.

    Raises:
        OptionError: they cannot be partitioned or sorted as the options say.
        TableError: they cannot be partitioned as the table says.
    """
    if columns is not None and is_partitioned(columns) and not options.write_partition_by:
        partitioning: Partitioning = SpecPartitioning(schema, columns)
    else:
        partitioning = Partitioning(schema, options.write_partition_by)
    names = partitioning.schema.names
    missing = [name for name in options.write_sort_by if name not in names]
    if missing:
        expected = f"columns of the files: {', '.join(names)}"
        raise OptionError("writeSortBy: there are no such columns", "", str(missing), expected)
    return partitioning


def misfits(schema: pa.Schema, columns: pa.Schema) -> list[str]:
    """The columns of rows that a table does not take, with both types."""
    return [*_Fit.of(columns).fields(list(without_voids(schema)), list(columns), "")]


def _missing(schema: pa.Schema, columns: pa.Schema) -> Iterator[str]:
    paths = {path for path, _ in paths_of(schema)}
    optional = {field.name for field in columns if field.nullable}
    for path in set(required(columns)) - paths:
        # A struct without values has no fields without one, either; Delta knows no such exception.
        if not (finds_by_id(columns) and path[0] in optional and path[:1] not in paths):
            yield f"{'.'.join(path)} is NOT NULL in the table, and not in the rows"


@dataclass(frozen=True)
class _Fit:
    """Compares rows with one table."""

    is_iceberg: bool
    partitions: Collection[str]
    hints: list[str] = field(default_factory=list)
    """Columns with the types of the table, as schemaHints have them."""

    @classmethod
    def of(cls, columns: pa.Schema) -> _Fit:
        return cls(finds_by_id(columns), _demands(columns)["partitions"])

    def fields(
        self, fields: Sequence[pa.Field], columns: Sequence[pa.Field], where: str
    ) -> Iterator[str]:
        """Compare the fields of one struct, or all columns."""
        present = {field.name: field for field in columns}
        names = ColumnNames([*present, *(each.name for each in fields)])
        for each in fields:
            name, column = where + quoted(each.name), present.get(each.name)
            spelling = names.alike(each.name)[0]
            if spelling != each.name and column is None:
                place = "in the table" if spelling in present else "in the rows as well"
                other = where + quoted(spelling)
                yield f"{name} is {other} {place}, and names that differ in case only are one"
            elif column is None:
                yield from self._new(each.type, name)
            elif _types.is_struct(each.type) and _types.is_struct(column.type):
                yield from self.fields(list(each.type), list(column.type), f"{name}.")
            else:
                problems = [*self._column(each, column, name, is_top=not where)]
                if problems:
                    self._hint(name, column.type)
                yield from problems

    def _hint(self, name: str, kind: pa.DataType) -> None:
        # Tables have types, such as UUIDs and times of a day, that no hint names.
        with suppress(TypeError, OptionError):
            hint = f"{name} {ddl_of(_plain(kind))}"
            parse_hints(hint)
            self.hints.append(hint)

    def _column(
        self, each: pa.Field, column: pa.Field, name: str, *, is_top: bool
    ) -> Iterator[str]:
        if not (is_top and each.name in self.partitions):
            # A hint names columns and fields of structs, nothing within lists and maps.
            yield from replace(self, hints=[]).kinds(each.type, column.type, name)
        elif not _takes_value(each.type, column.type):
            yield _differ(name, each.type, column.type)

    def kinds(self, kind: pa.DataType, column: pa.DataType, name: str) -> Iterator[str]:
        """Compare the types of one column, or of what is within it."""
        if _types.is_null(column):
            yield from self._new(kind, name)
        elif _types.is_struct(kind) and _types.is_struct(column):
            yield from self.fields(list(kind), list(column), f"{name}.")
        elif is_list(kind) and is_list(column):
            yield from self.kinds(kind.value_type, column.value_type, f"{name}.element")
        elif _types.is_map(kind) and _types.is_map(column):
            # Keys have to be equal in Delta: no narrower type.
            if not self._takes(kind.key_type, column.key_type):
                yield _differ(f"{name}.key", kind.key_type, column.key_type)
            yield from self.kinds(kind.item_type, column.item_type, f"{name}.value")
        elif not self._takes(kind, column):
            yield _differ(name, kind, column)

    def _new(self, kind: pa.DataType, name: str) -> Iterator[str]:
        """What no table has a type for, at any depth of a column that the table lacks."""
        if _types.is_struct(kind):
            yield from self.fields(list(kind), (), f"{name}.")
        elif is_list(kind) or _types.is_map(kind):
            inner = kind.item_type if _types.is_map(kind) else kind.value_type
            below = f"{name}.{'value' if _types.is_map(kind) else 'element'}"
            if _types.is_null(inner):
                yield f"{below} is void, and a table needs a type there"
            else:
                yield from self._new(inner, below)
        elif _types.is_time(kind) or _types.is_duration(kind):
            table = "an Iceberg" if self.is_iceberg else "a Delta"
            yield f"{name} is {ddl_of(kind)}, a type that {table} table does not have"

    def _takes(self, kind: pa.DataType, column: pa.DataType) -> bool:
        if kind.equals(column):
            return True
        try:
            kind, column = fitted(kind), _plain(column)
        except TypeError:
            return False
        if kind == column:
            return True
        if not self.is_iceberg:
            pair = kind in _NARROW and column in _NARROW
            return pair and _NARROW.index(kind) < _NARROW.index(column)
        if {kind, column} == {pa.string(), pa.binary()}:
            return True
        return self._is_promotion(kind, column)

    @staticmethod
    def _is_promotion(kind: pa.DataType, column: pa.DataType) -> bool:
        """True if Iceberg promotes the column, or reads files of the narrower type."""
        if _types.is_decimal(kind) and _types.is_decimal(column):
            return bool(kind.scale == column.scale)
        both_numbers = all(_types.is_integer(k) or _types.is_floating(k) for k in (kind, column))
        wide = wider(kind, column) if both_numbers else None
        same_family = _types.is_integer(kind) == _types.is_integer(column)
        return same_family and wide in (column, *(to for of, to in _PROMOTIONS if of == column))


def _plain(column: pa.DataType) -> pa.DataType:
    # Iceberg's UUIDs and fixed lengths are not any bytes.
    if _types.is_fixed_size_binary(column) or isinstance(column, pa.BaseExtensionType):
        raise TypeError(column)
    return fitted(column)


def _takes_value(kind: pa.DataType, column: pa.DataType) -> bool:
    """True if the text of a partition value may be one of the table's type."""
    if _types.is_null(kind) or column in (pa.string(), pa.large_string()):
        return True
    if _types.is_string(kind):
        # The text of an instant has several forms, and that of bytes is another text.
        return not (_types.is_timestamp(column) or _types.is_binary(column))
    if _types.is_integer(kind):
        number = (_types.is_integer, _types.is_floating, _types.is_decimal)
        return any(is_one(column) for is_one in number)
    if _types.is_timestamp(kind) and _types.is_timestamp(column):
        return (kind.tz is None) == (column.tz is None)
    return bool(kind.equals(column))


_FORMS: Final = (
    (_types.is_boolean, "(?i)true|false"),
    (_types.is_integer, "[+-]?[0-9]+"),
    (_types.is_timestamp, r"[0-9-]{10}( [0-9:]{8}(\.[0-9]+)?|T[0-9:]{8}(\.[0-9]+)?Z)"),
)
"""Texts of partition values; Arrow takes others, which readers of a Delta table do not."""


def check_values(values: Mapping[str, str | None], columns: pa.Schema) -> None:
    """Check the partition values of a file: one of another type makes the table unreadable.

    Raises:
        TableError: a value is not one of the column's type.
    """
    for name, text in values.items():
        if text is None or name not in columns.names:
            continue
        kind = columns.field(name).type
        try:
            form = next((form for is_kind, form in _FORMS if is_kind(kind)), "(?s).*")
            if not re.fullmatch(form, text):
                raise pa.ArrowInvalid(f"{text!r} is not in the form of the protocol")
            if _types.is_timestamp(kind):
                # Arrow wants a zone in each text or in none; the protocol allows Z for instants.
                pa.scalar(text.removesuffix("Z") if kind.tz else text).cast(pa.timestamp("us"))
            else:
                pa.scalar(text).cast(kind)
            if _types.is_decimal(kind) and Decimal(text).as_tuple().exponent != -kind.scale:
                # Spark reads it; delta-rs opens no version of the table that has it.
                raise pa.ArrowInvalid(f"{text!r} needs {kind.scale} digits after the point")
        except pa.ArrowException as error:
            raise TableError(
                "a partition value of the rows does not fit the table's column",
                _demands(columns)["table"],
                f"{name}: {error}",
                f"values of type {ddl_of(kind)}",
                "Give the column that type with schemaHints or in writeSchema, leave such rows out "
                "with the option filter, or write into another table.",
            ) from error


def required(columns: pa.Schema) -> list[Path]:
    """Columns of a table, and fields of its structs, that must not be null."""
    return [path for path, field in paths_of(columns) if not field.nullable]


def with_promises(schema: pa.Schema, paths: Collection[Path]) -> pa.Schema:
    """The schema, with columns at these paths that are not null."""
    return pa.schema([_with_promise(field, (field.name,), paths) for field in schema])


def _with_promise(field: pa.Field, path: Path, paths: Collection[Path]) -> pa.Field:
    if _types.is_struct(field.type):
        inner = [_with_promise(each, (*path, each.name), paths) for each in field.type]
        field = field.with_type(pa.struct(inner))
    return field.with_nullable(False) if path in paths else field


def check_not_null(batch: pa.RecordBatch, paths: Collection[Path], columns: pa.Schema) -> None:
    """Check that rows have values in columns that must not be null.

    Raises:
        TableError: a row has a null there, or in a struct around it.
    """
    for path in paths:
        column = column_at(batch, path)
        if column.null_count:
            name = ".".join(path)
            raise TableError(
                "a row has a null in a column that is NOT NULL in the table",
                _demands(columns)["table"],
                f"nulls in {name}, in {column.null_count} of {len(column)} rows",
                f"a value of {name} in each row",
                f"Nothing of it is in the table. {_without_nulls(path)}ill the column in "
                "writeTransform, or make it nullable in the table; then start the query again.",
            )


def fields_within(columns: pa.Schema) -> list[pa.Field]:
    """Columns of a table that allow no nulls somewhere within an array or a map."""
    return [each for each in columns if _has_required(each.type, is_within=False)]


def _has_required(kind: pa.DataType, *, is_within: bool) -> bool:
    inner = _inner(kind)
    within = is_within or not _types.is_struct(kind)
    return any(
        (within and not each.nullable) or _has_required(each.type, is_within=within)
        for each in inner
    )


def _inner(kind: pa.DataType) -> list[pa.Field]:
    if _types.is_struct(kind):
        return list(kind)
    if _types.is_map(kind):
        return [kind.item_field]
    return [kind.value_field] if is_list(kind) else []


def check_not_null_within(
    batch: pa.RecordBatch, fields: Sequence[pa.Field], columns: pa.Schema
) -> None:
    """Check the elements of arrays and the values of maps, as `check_not_null` does columns.

    Raises:
        TableError: one is null where the table allows none.
    """
    for each in fields:
        if each.name in batch.schema.names:
            column = batch.column(each.name)
            for name in _nulls_within(column, each.type, each.name, is_within=False):
                raise TableError(
                    "a row has a null within a column where the table allows none",
                    _demands(columns)["table"],
                    f"nulls in {name}",
                    f"a value of {name} in each value around it",
                    "Nothing of it is in the table. Fill it in writeTransform, have the files "
                    "repaired, or make it nullable in the table; then start the query again.",
                )


def _nulls_within(
    values: pa.Array, kind: pa.DataType, name: str, *, is_within: bool
) -> Iterator[str]:
    values = values.drop_null()
    if _types.is_struct(kind) and _types.is_struct(values.type):
        for each in kind:
            at, place = values.type.get_field_index(each.name), f"{name}.{each.name}"
            inner = pa.nulls(len(values)) if at < 0 else pc.struct_field(values, at)
            if is_within and not each.nullable and inner.null_count:
                yield place
            yield from _nulls_within(inner, each.type, place, is_within=is_within)
    elif _inner(kind) and _inner(values.type):
        (of,) = _inner(kind)
        is_map = _types.is_map(kind)
        place = f"{name}.{'value' if is_map else 'element'}"
        ends = values.offsets
        first, last = ends[0].as_py(), ends[-1].as_py()
        inner = (values.items if is_map else values.values).slice(first, last - first)
        if not of.nullable and inner.null_count:
            yield place
        yield from _nulls_within(inner, of.type, place, is_within=True)


def _without_nulls(path: Path) -> str:
    # A filter names whole columns.
    if len(path) > 1:
        return "F"
    return f"Leave such rows out with the option filter='{quoted(path[0])} IS NOT NULL', f"


def has_rules(table: str, rules: Sequence[str]) -> TableError:
    """The error for a table whose rules nothing would check once the rows are in files."""
    return TableError(
        "the table has rules that apply while rows are written, which this sink cannot do",
        table,
        ", ".join(rules),
        "no CHECK constraints, generated or identity columns, invariants, column mapping",
        "Remove them from the table, or write to it with Delta's own sink.",
    )


def without_voids(schema: pa.Schema) -> pa.Schema:
    """The columns that files have: not a void one or a void field of a struct, without values.

    The same object if nothing is void.
    """
    kept = [field.with_type(_without_voids(field.type)) for field in schema]
    columns = pa.schema([field for field in kept if not _types.is_null(field.type)])
    return schema if columns.equals(schema) else columns


def _without_voids(kind: pa.DataType) -> pa.DataType:
    if _types.is_struct(kind):
        fields = [field.with_type(_without_voids(field.type)) for field in kind]
        kept = [field for field in fields if not _types.is_null(field.type)]
        return kind if len(kept) == len(fields) and kept == list(kind) else _struct(kept)
    if is_list(kind) and _types.is_struct(kind.value_type):
        field = kind.value_field.with_type(_without_voids(kind.value_type))
        return kind if field.equals(kind.value_field) else pa.list_(field)
    if _types.is_map(kind) and _types.is_struct(kind.item_type):
        field = kind.item_field.with_type(_without_voids(kind.item_type))
        return kind if field.equals(kind.item_field) else pa.map_(kind.key_field, field)
    return kind


def _struct(fields: Sequence[pa.Field]) -> pa.DataType:
    return pa.struct(fields) if fields else pa.null()


def _differ(name: str, kind: pa.DataType, column: pa.DataType) -> str:
    return f"{name} is {ddl_of(kind)}, and {ddl_of(column)} in the table"


def _demands(columns: pa.Schema) -> dict[str, Any]:
    text = (columns.metadata or {}).get(_DEMANDS)
    return json.loads(text) if text else {"table": "", "partitions": [], "rules": []}
