"""Data files as Iceberg's manifests describe them, with columns found by field ids.

Files without ids (of Spark Connect, and those of `writeCopy=never`) are read by the name mapping of
the table, which keeps the names that it has.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from ..checkpoint_meta.documents.written_file import FileName, Removal, WrittenFile
from ..checkpoint_meta.storage.providers import BY_SCHEME
from ..checkpoint_meta.storage.urls import scheme_of
from ..errors import TableError
from ..reader.direct_write.field_ids import (
    has_field_ids,
    of_iceberg,
    with_field_ids,
    without_field_ids,
)
from ..reader.direct_write.file_writer import DataFileWriter
from ..reader.direct_write.partitioning import is_partitioned, partition_in, spec_of
from ..reader.direct_write.place import Place
from ..reader.direct_write.statistics import leaves
from ..reader.direct_write.write_options import WriteOptions
from .written_batch import RemovedRows, WrittenBatch

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.name_mapping import MappedField


_COPY: Final = "ids-"
NAME_MAPPING: Final = "schema.name-mapping.default"
Entry: TypeAlias = "tuple[WrittenFile, pq.FileMetaData]"


def columns_of(metadata: TableMetadata) -> pa.Schema:
    """The columns of a table, with its partition spec."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    spec = metadata.spec().model_dump_json()
    return of_iceberg(schema_to_pyarrow(metadata.schema()), metadata.last_column_id, spec)


def data_files(transaction: Transaction, batch: WrittenBatch, table: str) -> Sequence[DataFile]:
    """The files of a batch for a table that has all of their columns.

    Raises:
        TableError: columns of files without ids are others by the table's name mapping, or files
            that the readers have not written are for a partitioned table.
    """
    columns = columns_of(transaction.table_metadata)
    entries: list[Entry] = []
    for file, footer in zip(batch.files, batch.footers, strict=True):
        schema = footer.schema.to_arrow_schema().remove_metadata()
        if not _fits(schema, footer, columns):
            entries += _rewritten(file, footer, without_field_ids(schema), columns, batch)
            continue
        if not has_field_ids(schema):
            _check_names(transaction, schema, file.path, columns, table)
        entries.append((file, footer))
    return [_data_file(transaction, *entry) for entry in entries]


def _fits(schema: pa.Schema, footer: pq.FileMetaData, columns: pa.Schema) -> bool:
    """True if a file has the partition spec of the table, and its field ids or none."""
    spec, _ = partition_in(footer)
    if spec != (spec_of(columns) if is_partitioned(columns) else None):
        return False
    plain = without_field_ids(schema)
    return not has_field_ids(schema) or with_field_ids(plain, schema).equals(
        with_field_ids(plain, columns), check_metadata=True
    )


def written_name(path: str) -> str:
    """The name of a file of a query without what `_CopyName` puts before it."""
    return path.rpartition("/")[2].removeprefix(_COPY)


def is_in_place(file: WrittenFile) -> bool:
    """True if someone else wrote the file (`writeCopy=never`)."""
    return FileName.parse(written_name(file.path)) is None


def keep_names(transaction: Transaction, before: str | None, batch: WrittenBatch) -> None:
    """Keep the name mapping that a table had `before` its columns were added.

    pyiceberg gives the old name of a renamed column to a new column of that name: rows of files
    without ids would change their column.
    """
    from pyiceberg.table.name_mapping import parse_mapping_from_json

    after = transaction.table_metadata.properties.get(NAME_MAPPING)
    if before is None or before == after:
        return
    ids_before = _ids(parse_mapping_from_json(before).root)
    grown = _ids(parse_mapping_from_json(after or "[]").root)
    # Files without ids need the names of new columns there; files with ids do not.
    has_ids = all(has_field_ids(footer.schema.to_arrow_schema()) for footer in batch.footers)
    if has_ids or not ids_before.items() <= grown.items():
        transaction.set_properties({NAME_MAPPING: before})


def _ids(fields: Sequence[MappedField], outer: tuple[str, ...] = ()) -> dict[Any, int | None]:
    """Path of names -> field id."""
    ids: dict[Any, int | None] = {}
    for field in fields:
        for name in field.names:
            ids[*outer, name] = field.field_id
            ids.update(_ids(field.fields, (*outer, name)))
    return ids


def _check_names(
    transaction: Transaction, schema: pa.Schema, path: str, columns: pa.Schema, table: str
) -> None:
    from pyiceberg.io.pyarrow import pyarrow_to_schema, schema_to_pyarrow

    metadata = transaction.table_metadata
    mapping = metadata.name_mapping()
    if mapping is None:
        mapping = metadata.schema().name_mapping
        transaction.set_properties({NAME_MAPPING: mapping.model_dump_json()})
    try:
        named = schema_to_pyarrow(pyarrow_to_schema(schema, mapping))
        problem = "columns that were renamed"
        if with_field_ids(schema, named).equals(
            with_field_ids(schema, columns), check_metadata=True
        ):
            return
    except ValueError as error:
        problem = str(error)
    raise TableError(
        "the table's name mapping does not find the columns of a file by their names",
        path,
        f"{problem}, in {NAME_MAPPING} of {table}",
        "a name mapping that gives each column of the file the column of that name",
        "Correct that property of the table. Files have field ids, and need no name "
        "mapping, without writeCopy=never and Spark Connect, and if the sink is the "
        "first action on a batch.",
    )


def _rewritten(
    file: WrittenFile,
    footer: pq.FileMetaData,
    schema: pa.Schema,
    columns: pa.Schema,
    batch: WrittenBatch,
) -> Iterator[Entry]:
    """The rows of a file in files with the field ids and the partition spec of the table.

    Necessary if someone else has changed these since the file was written, and for files without
    partition values. After a crash before the table's commit, the copies are in no table, and the
    next attempt replaces them.
    """
    if is_in_place(file):
        raise TableError(
            "a file cannot be added to the table as it is",
            file.path,
            "other field ids, or a table with partitions",
            "the ids of the table's columns of the same name, or none; a table without partitions",
            "Write without writeCopy=never: Sluice then writes files that fit the table.",
        )
    name = FileName.parse(file.path)
    assert name is not None
    token = hashlib.sha256(columns.serialize().to_pybytes() + file.path.encode()).hexdigest()[:12]
    copies = _CopyName(name.checkpoint, name.reader, token)
    place = Place(file.path.rpartition("/")[0], batch.storage_options)
    codec = footer.row_group(0).column(0).compression.lower().replace("uncompressed", "none")
    options = WriteOptions.model_validate({"write_compression": codec})
    writer = DataFileWriter(place, copies, schema, options, None, columns)
    with batch.opened(file) as source:
        for rows in pq.ParquetFile(source).iter_batches():
            writer.write(pa.RecordBatch.from_arrays(rows.columns, schema=schema))
    for copy in writer.finish():
        yield copy, batch.footer_of(copy)


@dataclass(frozen=True)
class _CopyName(FileName):
    """Not a name that the sweep knows: no reader commit names it, and it must not be deleted."""

    @override
    def __str__(self) -> str:
        return f"{_COPY}{super().__str__()}"


def _columns(footer: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    for number in range(footer.num_row_groups):
        yield from map(footer.row_group(number).column, range(footer.num_columns))


def _data_file(transaction: Transaction, file: WrittenFile, footer: pq.FileMetaData) -> DataFile:
    from pyiceberg.io.pyarrow import (
        MetricModeTypes,
        MetricsMode,
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    metadata = transaction.table_metadata
    schema: Schema = metadata.schema()
    plan = compute_statistics_plan(schema, metadata.properties)
    numbers = parquet_path_to_id_mapping(schema)
    for name in _unbounded(file, footer):
        number = numbers[name]
        plan[number] = replace(plan[number], mode=MetricsMode(MetricModeTypes.COUNTS))
    statistics = data_file_statistics_from_parquet_metadata(footer, plan, numbers)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path_in(metadata.location, file.path),
        file_format=FileFormat.PARQUET,
        partition=Record(*_values(metadata, partition_in(footer)[1])),
        file_size_in_bytes=file.bytes,
        spec_id=metadata.default_spec_id,
        **statistics.to_serialized_dict(),
    )


def path_in(location: str, path: str) -> str:
    """Return a data file's path with the scheme and the host that its table's location has.

    A Hadoop catalog may know no file system `s3`, only `s3a`, nor a path without `file:`.
    """
    scheme, (host, _, _) = scheme_of(location), location.partition("://")[2].partition("/")
    if path.startswith("/"):
        return (f"file://{path}" if "://" in location else f"file:{path}") if scheme else path
    provider = BY_SCHEME.get(scheme)
    if provider is None or provider is not BY_SCHEME.get(scheme_of(path)):
        return path
    bucket, slash, key = path.partition("://")[2].partition("/")
    # Azure: abfss://container@account.dfs.core.windows.net.
    bucket = host if host.partition("@")[0] == bucket else bucket
    return f"{location.partition('://')[0]}://{bucket}{slash}{key}"


def _values(metadata: TableMetadata, values: Sequence[Any]) -> Iterator[Any]:
    """Partition values of the current spec, as pyiceberg has them."""
    from pyiceberg.types import BinaryType, DecimalType, FixedType

    parsers: dict[Any, Any] = {
        BinaryType: bytes.fromhex,
        FixedType: bytes.fromhex,
        DecimalType: Decimal,
    }
    fields = metadata.spec().partition_type(metadata.schema()).fields
    for field, value in zip(fields, values, strict=True):
        parse = parsers.get(type(field.field_type))
        yield value if parse is None or value is None else parse(value)


def _unbounded(file: WrittenFile, footer: pq.FileMetaData) -> Iterator[str]:
    """The columns whose bounds are not those of all values, or dates that Python does not have."""
    if is_in_place(file):
        # Whether floats are not-a-number is only in the rows.
        for leaf in leaves(footer.schema.to_arrow_schema()):
            if pa.types.is_floating(leaf.type):
                yield leaf.name
    for column in _columns(footer):
        try:
            _ = column.statistics and (column.statistics.min, column.statistics.max)
        except (OverflowError, ValueError):
            yield column.path_in_schema


def delete_rows(transaction: Transaction, removals: Sequence[Removal]) -> None:
    """Delete rows of files; data files with other rows as well are written again without these.

    Also where there are none: the deletion is what lets pyiceberg look for rows of the same files
    that others have added meanwhile.
    """
    if transaction.table_metadata.current_snapshot_id is None:
        return
    rows = RemovedRows.of(removals, columns_of(transaction.table_metadata))
    with warnings.catch_warnings():
        # That it found none is no reason to warn.
        warnings.simplefilter("ignore")
        transaction.delete(_expression(rows))


def _expression(rows: RemovedRows) -> BooleanExpression:
    from pyiceberg import expressions

    # The types that pydantic gives their fields are not those that their arguments may have.
    of: Any = expressions
    condition: BooleanExpression = of.In(rows.column, rows.keys)
    for column, values in rows.values.items():
        at = of.IsNull(column)
        if values:
            # Of long lists pyiceberg makes no use where it leaves out files.
            first, last = values[0], values[-1]
            within = of.GreaterThanOrEqual(column, first), of.LessThanOrEqual(column, last)
            at = of.Or(of.And(*within, of.In(column, values)), at)
        condition = of.And(condition, at)
    return condition
