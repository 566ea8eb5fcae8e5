"""Data files as Iceberg's manifests describe them, with columns found by field ids.

Files without ids (of Spark Connect, and those of `writeCopy=never`) are read by the name mapping of
the table, which keeps the names that it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..checkpoint_meta.documents.written_file import FileName, WrittenFile
from ..errors import TableError
from ..reader.direct_write.field_ids import has_field_ids, with_field_ids, without_field_ids
from ..reader.direct_write.place import Place
from ..reader.direct_write.statistics import leaves
from .written_batch import WrittenBatch

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.table.name_mapping import MappedField

_COPY: Final = "ids-"
NAME_MAPPING: Final = "schema.name-mapping.default"
Entry = tuple[WrittenFile, pq.FileMetaData]


def data_files(transaction: Transaction, batch: WrittenBatch, table: str) -> Sequence[DataFile]:
    """The files of a batch for a table that has all of their columns.

    Raises:
        TableError: columns of files without ids are others by the table's name mapping.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    columns = schema_to_pyarrow(transaction.table_metadata.schema())
    entries = []
    for file, footer in zip(batch.files, batch.footers, strict=True):
        schema = footer.schema.to_arrow_schema().remove_metadata()
        plain = without_field_ids(schema)
        wanted = with_field_ids(plain, columns)
        if not has_field_ids(schema):
            _check_names(transaction, schema, file.path, columns, table)
        elif not with_field_ids(plain, schema).equals(wanted, check_metadata=True):
            entries.append(_copied(file, footer, wanted, batch))
            continue
        entries.append((file, footer))
    return [_data_file(transaction, *entry) for entry in entries]


def is_in_place(file: WrittenFile) -> bool:
    """True if someone else wrote the file (`writeCopy=never`)."""
    leaf = file.path.rpartition("/")[2]
    return FileName.parse(leaf) is None and not leaf.startswith(_COPY)


def keep_names(transaction: Transaction, before: str | None, batch: WrittenBatch) -> None:
    """Keep the name mapping that a table had `before` its columns were added.

    pyiceberg gives the old name of a renamed column to a new column of that name: rows of files
    without ids would change their column.
    """
    from pyiceberg.table.name_mapping import parse_mapping_from_json

    after = transaction.table_metadata.properties.get(NAME_MAPPING)
    if before is None or before == after:
        return
    known = _ids(parse_mapping_from_json(before).root)
    grown = _ids(parse_mapping_from_json(after or "[]").root)
    # Files without ids need the names of new columns there; files with ids do not.
    has_ids = all(has_field_ids(footer.schema.to_arrow_schema()) for footer in batch.footers)
    if has_ids or not known.items() <= grown.items():
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


def _copied(
    file: WrittenFile, footer: pq.FileMetaData, schema: pa.Schema, batch: WrittenBatch
) -> Entry:
    """A copy of a file with other field ids.

    Necessary if someone else has changed the columns of the table since the file was written. After
    a crash before the table's commit, the copy is in no table, and the next attempt replaces it.
    """
    if is_in_place(file):
        raise TableError(
            "the field ids of a file are not those of the table",
            file.path,
            "other field ids",
            "those of the table's columns of the same name, or none",
            "Write without writeCopy=never: Sluice then writes a file with the table's ids.",
        )
    folder, _, name = file.path.rpartition("/")
    token = hashlib.sha256(schema.serialize()).hexdigest()[:12]
    # Not a name that the sweep knows: no reader commit names it, and it must not be deleted.
    draft = Place(folder, batch.storage_options).begin(f"{_COPY}{token}-{name}")
    compression = footer.row_group(0).column(0).compression
    with batch.opened(file) as source:
        parquet = pq.ParquetFile(source)
        bounded = [column.path_in_schema for column in _columns(footer) if column.is_stats_set]
        footers: list[pq.FileMetaData] = []
        with pq.ParquetWriter(
            draft.sink,
            schema,
            compression=compression,
            write_statistics=bounded,
            store_schema=False,
            metadata_collector=footers,
        ) as writer:
            for number in range(footer.num_row_groups):
                writer.write_table(parquet.read_row_group(number))
    size = draft.sink.tell()
    return file.model_copy(update={"path": draft.publish(), "bytes": size}), footers[0]


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
        file_path=file.path,
        file_format=FileFormat.PARQUET,
        partition=statistics.partition(metadata.spec(), schema),
        file_size_in_bytes=file.bytes,
        spec_id=metadata.default_spec_id,
        **statistics.to_serialized_dict(),
    )


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
