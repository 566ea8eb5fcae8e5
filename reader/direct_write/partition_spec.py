"""Rows by the partition spec of an Iceberg table, which its sink passes with the columns.

A file has the rows of one partition. Its footer has the spec and the partition values, because
bounds of columns do not say of which bucket a file is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import override

from ...errors import TableError
from ..files.evolution.type_growth import ddl_of, is_same, wider
from .field_ids import SPEC, id_of
from .partitioning import Partitioning, Values
from .statistics import Path

_FOOTER: Final = b"sluice.partition"
_TRANSFORM: Final = re.compile(r"(identity|bucket|truncate|year|month|day|hour)(?:\[(\d+)\])?")
_SMALL: Final = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
"""The form of a type that each transform takes."""

_types = pa.types


class _Key(NamedTuple):
    """A partition field that has values."""

    path: Path
    """Names of the source column, from the outermost struct inwards."""

    type: pa.DataType
    transform: Callable[[pa.Array], pa.Array]


def spec_of(columns: pa.Schema) -> Any:
    """The partition spec of a table with these columns, as Iceberg's JSON has it."""
    return json.loads((columns.metadata or {}).get(SPEC, b'{"fields":[]}'))


def is_partitioned(columns: pa.Schema) -> bool:
    """True for the columns of a partitioned Iceberg table."""
    return bool(spec_of(columns)["fields"])


def partition_in(footer: pq.FileMetaData) -> tuple[Any, Sequence[Any]]:
    """The spec that a file was written with, and its partition values; None without one.

    Dates and times are numbers as in Iceberg, decimals are text, and bytes are hexadecimal digits.
    """
    spec, values = json.loads((footer.metadata or {}).get(_FOOTER, b"[null,[]]"))
    return spec, values


class SpecPartitioning(Partitioning):
    """Takes batches apart by the transformed values of columns, which stay in the files."""

    def __init__(self, schema: pa.Schema, columns: pa.Schema) -> None:
        """`schema` is that of the rows, and `columns` those of the table.

        Raises:
            TableError: a column is of another type than in the table, or a transform is unknown.
        """
        super().__init__(schema, [])
        self._spec = spec_of(columns)
        sources = {id_of(field): (path, field.type) for path, field in paths_of(columns)}
        kinds = {path: field.type for path, field in paths_of(schema)}
        self._fields: list[_Key | None] = []
        for each in self._spec["fields"]:
            path, kind = sources.get(each["source-id"], ((), pa.null()))
            has_values = path in kinds and each["transform"] != "void"
            field = _field(path, kinds[path], kind, each["transform"]) if has_values else None
            self._fields.append(field)

    @override
    def _keys(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        nulls = pa.nulls(len(batch), pa.int32())
        return [nulls if field is None else _values(batch, field) for field in self._fields]

    @override
    def metadata(self, values: Values) -> Mapping[bytes, str]:
        return {_FOOTER: json.dumps([self._spec, values], default=_text)}

    @override
    def mapping(self, values: Values) -> Mapping[str, str | None]:
        return {}

    @override
    def directory(self, values: Values) -> str:
        return ""


def paths_of(
    columns: pa.Schema | pa.StructType, outer: Path = ()
) -> Iterator[tuple[Path, pa.Field]]:
    """The columns, and the fields of structs at any depth, by their paths."""
    for field in columns:
        yield (*outer, field.name), field
        if _types.is_struct(field.type):
            yield from paths_of(field.type, (*outer, field.name))


def _field(path: Path, arrow_type: pa.DataType, kind: pa.DataType, transform: str) -> _Key:
    # The sink promotes numbers of the table, and Iceberg's transforms of both types are the same.
    common = _SMALL.get(kind, kind) if is_same(arrow_type, kind) else wider(arrow_type, kind)
    if common is None:
        raise TableError(
            "rows cannot be partitioned as the table is",
            ".".join(path),
            f"{ddl_of(arrow_type)} in the rows",
            f"{ddl_of(kind)}, as in the table, for the partition transform {transform}",
            "Give the column this type in writeSchema or schemaHints, or remove the partition "
            "field from the table.",
        )
    return _Key(path, common, _transform(transform))


def _transform(text: str) -> Callable[[pa.Array], pa.Array]:
    match = _TRANSFORM.fullmatch(text)
    if match is None:
        expected = "identity, bucket, truncate, year, month, day or hour"
        raise TableError("a partition transform of the table is unknown", "", text, expected)
    name, number = match.groups()
    if name == "identity":
        return lambda column: column
    try:
        from pyiceberg_core import transform
    except ModuleNotFoundError as error:
        raise TableError(
            "rows cannot be partitioned as the table is",
            text,
            str(error),
            "the package pyiceberg-core on all machines that run tasks",
            "pip install '.[tables]' on the executors, too.",
        ) from error
    numbers = [int(number)] if number else []
    return lambda column: getattr(transform, name)(column, *numbers)


def _values(batch: pa.RecordBatch, field: _Key) -> pa.Array:
    """The partition values of rows; dates and times as numbers, as Python does not have all."""
    column = batch.column(field.path[0])
    for name in field.path[1:]:
        column = pc.struct_field(column, name)
    values = field.transform(column.cast(field.type))
    if _types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if _types.is_temporal(values.type) else values


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
