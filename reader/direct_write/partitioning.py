"""Rows by the values of partition columns, or by the partition spec of an Iceberg table.

Values of columns are written as Hive, Spark and Delta write them. A spec is passed by the table's
sink with the columns. Then a file has the rows of one partition, and its footer has the spec and
the partition values, because bounds of columns do not say of which bucket a file is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import override

from ...errors import OptionError, TableError
from ..files.evolution.type_growth import ddl_of, is_same, wider
from ..files.path_columns import NULL
from .field_ids import SPEC, id_of
from .statistics import Path, column_at

_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
"""What Spark quotes in names of partition directories (ExternalCatalogUtils)."""

_MOST = 2**63 - 1
"""The greatest number of 64 bits."""

_types = pa.types
Values = tuple[Any, ...]


class Partitioning:
    """Takes batches apart by their partition columns."""

    def __init__(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        """`schema` is that of the rows.

        Raises:
            OptionError: a column is missing, or of a type that is no partition value; or no
                column would be left for the files.
        """
        self._columns = list(columns)
        missing = [name for name in columns if name not in schema.names]
        if missing or len(set(columns)) < len(columns):
            raise _refused("columns of the rows, each once", missing or columns)
        odd = [name for name in columns if not _may_partition(schema.field(name).type)]
        if odd:
            kinds = [f"{name} {schema.field(name).type}" for name in odd]
            raise _refused("columns of text, numbers, booleans, dates or timestamps", kinds)
        kept = [field for field in schema if field.name not in columns]
        if not kept:
            raise _refused("at least one other column for the files", columns)
        self.schema = pa.schema(kept)
        """Schema of the data files, which have no partition columns."""

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        """The values of each partition and its rows in order, as the files have them."""
        keys = [key.dictionary_encode() for key in self._keys(batch)]
        if not keys:
            yield (), batch
            return
        rest = batch.select(self.schema.names)
        # Null is one more value of each column, behind those of the dictionary.
        codes = [pc.fill_null(k.indices, len(k.dictionary)).to_numpy() for k in keys]
        sizes = [len(k.dictionary) + 1 for k in keys]
        # One number for each combination of values; the codes themselves have 32 bits.
        whole, count = codes[0].astype(np.int64), sizes[0]
        for more, size in zip(codes[1:], sizes[1:], strict=True):
            if count * size > _MOST:
                # In the same order, but no more numbers than rows.
                _, whole = np.unique(whole, return_inverse=True)
                count = len(whole)
            whole, count = whole * size + more, count * size
        # Stable, so that rows of a partition keep their order.
        order = np.argsort(whole, kind="stable")
        if not len(order):
            return
        for rows in np.split(order, np.flatnonzero(np.diff(whole[order])) + 1):
            values = tuple(key[int(rows[0])].as_py() for key in keys)
            # Parts that are cut out of one sorted batch would keep all of it in memory.
            yield values, rest if len(rows) == len(order) else rest.take(pa.array(rows))

    def _keys(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """The partition values of each row, one array per column."""
        return [_texts(batch.column(name)) for name in self._columns]

    def metadata(self, values: Values) -> Mapping[bytes, str]:  # noqa: ARG002 - see the subclass
        """Metadata for the footers of the files of a partition."""
        return {}

    def mapping(self, values: Values) -> Mapping[str, str | None]:
        """Partition column -> its value as text; None for null."""
        return dict(zip(self._columns, values, strict=True))

    def directory(self, values: Values) -> str:
        """The directories of a partition, with a slash at the end; empty without columns."""
        parts = (
            f"{_quoted(name)}={NULL if value is None else _quoted(value)}/"
            for name, value in zip(self._columns, values, strict=True)
        )
        return "".join(parts)


def _may_partition(kind: pa.DataType) -> bool:
    numbers = (_types.is_integer, _types.is_floating, _types.is_decimal)
    others = (_types.is_string, _types.is_boolean, _types.is_date32, _types.is_timestamp)
    return any(is_kind(kind) for is_kind in (*numbers, *others))


def partition_text(value: pa.Scalar) -> str | None:
    """One value as tables have it."""
    text: str | None = _texts(pa.array([value.as_py()], value.type))[0].as_py()
    return text


def _texts(column: pa.Array) -> pa.Array:
    """Values as Delta's protocol writes them; an empty text is null there."""
    if _types.is_timestamp(column.type):
        # Spark would read an instant without its zone in the zone of whichever session reads it.
        layout, zone = ("%Y-%m-%dT%H:%M:%S", "Z") if column.type.tz else ("%Y-%m-%d %H:%M:%S", "")
        text = pc.strftime(column.cast(pa.timestamp("us")), layout)
        # Arrow writes six digits of a fraction; Spark leaves out a fraction of zero.
        return pc.replace_substring_regex(text, r"(\.0+)?$", zone, max_replacements=1)
    text = column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _quoted(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _refused(expected: str, value: object) -> OptionError:
    return OptionError(
        "writePartitionBy: rows cannot be partitioned by these columns", "", str(value), expected
    )


_FOOTER: Final = b"sluice.partition"
_TRANSFORM: Final = re.compile(r"(identity|bucket|truncate|year|month|day|hour)(?:\[(\d+)\])?")
_SMALL: Final = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
"""The form of a type that each transform takes."""


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
        return {_FOOTER: json.dumps([self._spec, values], default=_json_text)}

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
    values = field.transform(column_at(batch, field.path).cast(field.type))
    if _types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if _types.is_temporal(values.type) else values


def _json_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
