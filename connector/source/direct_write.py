"""Data files and bad records: the schema of the rows, and what writes them in a task."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from ...checkpoint_meta.documents.written_file import (
    BAD_RECORDS_SUFFIX,
    SUFFIX,
    FileName,
    Removal,
)
from ...checkpoint_meta.files.file_split import FileSplit
from ...checkpoint_meta.index.fingerprints import file_key
from ...errors import OptionError, SchemaMismatchError, TableError
from ...reader.direct_write.bad_records import BadRecordsWriter
from ...reader.direct_write.field_ids import finds_by_id
from ...reader.direct_write.file_writer import DataFileWriter, Transform
from ...reader.direct_write.partitioning import partition_text
from ...reader.direct_write.place import Place
from ...reader.direct_write.table_fit import check_fit
from ...reader.files.evolution.new_columns import NewColumnsSeen
from ...reader.files.evolution.type_growth import is_variant
from ...reader.files.formats.records.record_format import METADATA
from ...reader.files.formats.registry import attribute_of
from ...reader.files.path_columns import FileColumns, with_file_column
from ...reader.task import Assignment, DirectWrite
from ...reader.written_files import TABLE_LOOKS, Recording, RowsWriter
from ..options.model import SluiceOptions
from ..session.processes import task_property
from .schema_json import json_of
from .schemas import described, table_columns


def refuse_direct_write(texts: Mapping[str, str], way_out: str) -> None:
    """Check that no direct write is asked for where rows go to Spark.

    Raises:
        OptionError: writeTo is among the options.
    """
    # By name, since it is asked before options are parsed.
    if any(name.lower() == "writeto" for name in texts):
        raise OptionError(
            "writeTo: the stream has rows about data files, whose schema is its own",
            "",
            "a schema given with .schema(...), or a batch read",
            f"readStream without .schema(...); {way_out}",
        )


def direct_write_of(options: SluiceOptions, schema: pa.Schema) -> DirectWrite[Any] | None:
    """Return how rows go into data files; None where they go to Spark.

    Raises:
        OptionError: writeTransform cannot be imported, or the options cannot be met.
    """
    if not options.write_to:
        return None
    read_schema = schema
    schema, is_in_place = written_schema(options, schema), options.write_copy == "never"
    place = Place(options.write_to, options.storage_options)
    transform = _transform(options.write_transform)

    def begin(assignment: Assignment[Any]) -> RowsWriter:
        columns = table_columns()
        if columns is not None:
            # The table may have changed since the host compared them, and some hosts cannot.
            check_fit(schema, columns, options)
        if is_in_place:
            from ...reader.direct_write.in_place import FilesInPlace

            return FilesInPlace(schema)
        name = _name(assignment, SUFFIX)
        return DataFileWriter(place, name, schema, options, transform, columns)

    looks = task_property(TABLE_LOOKS) is not None
    return DirectWrite(begin, json_of, partial(_removals, options, read_schema), looks)


def _removals(
    options: SluiceOptions, schema: pa.Schema, assignment: Assignment[Any]
) -> Sequence[Removal]:
    """The rows of files that are read in place of an earlier version, and of files that are gone.

    Raises:
        TableError: nothing says which rows those are.
    """
    splits = [split for split in assignment.splits if isinstance(split, FileSplit)]
    paths = [split.file.path for split in splits if split.replaces]
    if not paths:
        return ()
    columns = table_columns()
    if not options.write_file_column or columns is None:
        raise TableError(
            "rows of a file are to be replaced or removed, and this query cannot",
            paths[0],
            "no writeFileColumn" if columns is not None else "a sink without a table",
            "a Delta or Iceberg table that has a column with the key of each row's file",
            "Start the query with the writeFileColumn and the table of its earlier runs. In "
            "Spark, pass tables.delta or tables.iceberg to foreachBatch, without Spark Connect.",
        )
    is_first = assignment.checkpoint.ref.checkpoint == assignment.batch_start + 1
    if is_first and not len(columns) and not finds_by_id(columns):
        return ()  # There is no table yet, and no mark of a batch that only removes rows.
    of_path = FileColumns(schema, options)
    groups: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
    for path in paths:
        values: Mapping[str, pa.Scalar] = {}
        # Of a file that is gone; one that is read has the same error there.
        with suppress(SchemaMismatchError, NewColumnsSeen):
            values = {} if options.write_transform else of_path.partition(path)
        texts = tuple((name, partition_text(value)) for name, value in values.items())
        groups.setdefault(texts, []).append(file_key(path))
    return [
        Removal(column=options.write_file_column, keys=sorted(keys), values=dict(values))
        for values, keys in groups.items()
    ]


def written_schema(options: SluiceOptions, schema: pa.Schema) -> pa.Schema:
    """The schema of the rows in data files, where `schema` is that of the rows that are read.

    Raises:
        OptionError: it has columns that data files cannot have.
    """
    if options.write_copy == "never":
        if METADATA in schema.names:
            found = f"{METADATA} in the schema"
            raise OptionError(
                "writeCopy=never: data files do not have this column", "", found, "none"
            )
        return schema
    if options.write_transform:
        # The function is code of the user's: only the option says what it returns.
        schema = described(options.write_transform_schema, "writeTransformSchema")
        _check_keeps(schema, options.write_file_column)
    else:
        schema = with_file_column(schema, options.write_file_column)
    odd = [field.name for field in schema if _holds_variant(field.type)]
    if odd:
        raise OptionError(
            "writeTo: variant columns cannot be written to data files",
            "",
            ", ".join(odd),
            "strings, or structs",
        )
    return schema


def _check_keeps(schema: pa.Schema, name: str) -> None:
    index = schema.get_field_index(name)
    if name and (index < 0 or not pa.types.is_string(schema.field(index).type)):
        raise OptionError(
            "writeFileColumn: writeTransform has to keep the column with the key of a row's file",
            "",
            f"writeTransformSchema with {', '.join(schema.names)}",
            f"{name} string among them",
            "Add it to writeTransformSchema, and let the function return the column of its input.",
        )


def recorder_of(options: SluiceOptions) -> Callable[[Assignment[Any]], Recording] | None:
    """Return what records bad records and files; None where they are only counted.

    Raises:
        OptionError: nothing can be written there.
    """
    if not options.bad_records_path:
        return None
    place = bad_records_place(options)

    def record(assignment: Assignment[Any]) -> Recording:
        return BadRecordsWriter(place, _name(assignment, BAD_RECORDS_SUFFIX))

    return record


def bad_records_place(options: SluiceOptions) -> Place:
    """The directory or bucket of `badRecordsPath`, opened with the storage options."""
    return Place(options.bad_records_path, options.storage_options, "badRecordsPath")


def written_places(options: SluiceOptions) -> Iterator[Place]:
    """Return where tasks write files that their commits name."""
    # With writeCopy=never the table has the input files themselves: they must never be swept.
    if options.write_to and options.write_copy == "always":
        yield Place(options.write_to, options.storage_options)
    if options.bad_records_path:
        yield bad_records_place(options)


def _name(assignment: Assignment[Any], suffix: str) -> FileName:
    # Attempts of one task may run at once, and their numbers repeat after a restart.
    token = secrets.token_hex(6)
    return FileName(assignment.checkpoint, assignment.reader, token, suffix=suffix)


def _holds_variant(kind: pa.DataType) -> bool:
    if is_variant(kind):
        return True
    return any(_holds_variant(kind.field(i).type) for i in range(kind.num_fields))


def _transform(name: str) -> Transform | None:
    if not name:
        return None
    try:
        transform: Transform = attribute_of(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            "writeTransform: cannot load it",
            name,
            f"{type(error).__name__}: {error}",
            "package.module:function",
            "The module has to be importable on the executors.",
        ) from error
    return transform
