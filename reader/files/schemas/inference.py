"""The schema of files without a given one: from a sample of them, merged.

Columns come in the order in which they are found, those of the path after those of the files, then
the columns that the reader makes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from ....checkpoint_meta.files.file_split import FileVersion
from ....checkpoint_meta.storage.urls import shown_path
from ....errors import FileChangedError, FileVanishedError, OptionError
from ..evolution.column_names import ColumnNames
from ..evolution.hints import with_hints
from ..evolution.new_columns import refuse_unrelated
from ..evolution.type_growth import aligned, merged, refuse_same_names, without_null_types
from ..formats.archives import columns_in
from ..formats.records.shape import without_nulls
from ..formats.registry import format_class
from ..options import ParseMode, ReaderOptions
from ..path_columns import NULL, bases_of, parts_below, unescaped
from ..values.text_types import TextTypes, text_leaf
from ..values.times.temporal import Temporal

# Of each file at least this is read: with many files, a share of the sample may not hold one
# record.
_LEAST = 64 * 1024


def inferred_schema(files: Iterable[FileVersion], options: ReaderOptions) -> pa.Schema:
    """Return the schema of `files`, hints and the reader's own columns included.

    Raises:
        OptionError: there is nothing to infer it from.
        SplitReadError: a file of the sample cannot be read.
        SchemaMismatchError: its columns do not make one schema.
    """
    sample = _sample(files, options)
    if not sample and not options.schema_hints:
        error = OptionError(
            "no schema was passed, and there is no file to infer it from",
            options.loaded_path,
            "no file with content",
            'one file at least, or .schema("id long, name string") before .load()',
            "Start the query when the first file exists, or pass a schema.",
        )
        error.lacks_input = True
        raise error
    schema = found_columns(sample, options)
    if not format_class(options.file_format).says_columns:
        schema = pa.schema(list(without_nulls(pa.struct(list(schema)))))
    else:
        # Left out, since the metadata of a later file may give it any type; text formats make it a
        # string.
        kind = without_null_types(pa.struct(list(schema)))
        schema = pa.schema([] if pa.types.is_null(kind) else list(kind))
    schema = with_reader_columns(schema, options)
    if not len(schema):
        raise OptionError(
            "no schema was passed, and the files have no record to infer it from",
            options.loaded_path,
            f"no column in {len(sample)} files",
            f"{options.file_format} data, or a schema given by .schema(...)",
        )
    return schema


def with_reader_columns(
    schema: pa.Schema, options: ReaderOptions, *, has_grown: bool = False
) -> pa.Schema:
    """`schema` with the hinted types, and with the columns that the reader makes.

    With `has_grown` it had them before, and may be more by now.
    """
    schema = with_hints(schema, options.schema_hints, has_grown=has_grown)
    own_columns = [options.rescued_data_column]
    if options.mode is ParseMode.PERMISSIVE and not format_class(options.file_format).says_columns:
        own_columns.append(options.column_name_of_corrupt_record)
    for name in own_columns:
        if name and name not in schema.names:
            schema = schema.append(pa.field(name, pa.string()))
    refuse_same_names(schema.names)
    return schema


def found_columns(
    files: Sequence[FileVersion], options: ReaderOptions, schema: pa.Schema | None = None
) -> pa.Schema:
    """The columns in files and paths as they are found, with null types where only nulls are.

    Columns that `schema` has may be left out.
    """
    if not files:
        return pa.schema([])
    kind = _of_contents(files, options, schema)
    data = pa.schema(list(kind) if pa.types.is_struct(kind) else [])
    partitions = partition_columns(files, options)
    data_names, path_names = ColumnNames(data.names), ColumnNames(partitions.names)
    place = [field for field in partitions if field.name not in data_names]
    # A column that is in the path is taken from there.
    typed = ((field, path_names.find(field.name)) for field in data)
    kept = [f if name is None else f.with_type(partitions.field(name).type) for f, name in typed]
    return pa.schema([*kept, *place])


def _of_contents(
    files: Sequence[FileVersion], options: ReaderOptions, schema: pa.Schema | None
) -> pa.DataType:
    # A file that goes or changes meanwhile says nothing here; its reader will judge it.
    format_type = format_class(options.file_format)
    kind: pa.DataType = pa.null()
    share = max(_LEAST, options.infer_sample_bytes // len(files))
    left = options.infer_sample_bytes
    columns = dict[str, list[str]]()
    for file in files:
        if left <= 0:
            break
        with suppress(FileVanishedError, FileChangedError):
            for path, own in columns_in(file, options, min(share, left), schema):
                file_columns = aligned(own, kind) if format_type.says_columns else own
                if pa.types.is_struct(file_columns):
                    columns[path] = [field.name for field in file_columns]
                if not pa.types.is_null(kind):
                    file_columns = format_type.common_columns(kind, file_columns, file, options)
                kind = file_columns
        if not format_type.says_columns:
            left -= min(share, file.size)
    if schema is None and (format_type.says_columns or options.header):
        _refuse_unrelated(columns, options)
    return kind


def _refuse_unrelated(columns: Mapping[str, list[str]], options: ReaderOptions) -> None:
    """Refuse a file of the sample that shares no column with any other, the newest first."""
    files_with = Counter(name.lower() for names in columns.values() for name in names)
    for path, names in reversed(list(columns.items())):
        own = ColumnNames(names)
        others = [name for name in files_with if name not in own]
        if all(files_with[name.lower()] == 1 for name in names):
            refuse_unrelated(path, names, others, accept=options.accept_unrelated_files)


def partition_columns(files: Iterable[FileVersion], options: ReaderOptions) -> pa.Schema:
    """Return the columns that are written as key=value in the paths of `files`."""
    exact = options.infer_column_types or format_class(options.file_format).says_columns
    types = TextTypes(Temporal(options))
    bases = bases_of(options)
    columns: dict[str, pa.DataType] = {}
    for directory in {shown_path(file.path.rpartition("/")[0]): None for file in files}:
        for part in parts_below(bases, directory):
            key, equals, text = part.partition("=")
            if not equals or not key:
                continue
            name, text = unescaped(key), unescaped(text)
            # Directories may differ in their types as records do, and become text where nothing
            # takes both.
            kind = pa.null() if text == NULL else types.of(text) if exact else pa.string()
            columns[name] = merged(columns.get(name, pa.null()), kind, text_leaf) or pa.string()
    return pa.schema([(name, without_nulls(kind)) for name, kind in columns.items()])


def _sample(files: Iterable[FileVersion], options: ReaderOptions) -> list[FileVersion]:
    """Return the oldest files, which are the first that the query reads."""
    candidates = (file for file in files if file.size)
    # There may be millions, of which no more than the sample is kept.
    count = options.infer_sample_files
    return heapq.nsmallest(count, candidates, key=lambda file: (file.modified, file.path))
