"""Columns that come from a file's place instead of its content: partitions and `_metadata`.

Values of partitions follow Spark's rules. Two things are refused where Spark changes the value
without a word: a `byte` or `short` that is out of range (it wraps around there) and a decimal with
too many digits (null there).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ...checkpoint_meta.files.file_split import FileSplit, FileVersion
from ...checkpoint_meta.index.fingerprints import file_key
from ...checkpoint_meta.storage.urls import (
    hadoop_url,
    loaded_paths,
    scheme_of,
    shown_name,
    shown_path,
)
from ...errors import OptionError, SchemaMismatchError
from .evolution.column_names import ColumnNames
from .evolution.new_columns import NewColumnsSeen
from .formats.records.record_format import METADATA, columns_made_here, makes_metadata
from .options import ReaderOptions
from .values.numbers import boolean, cast_decimal, floating, integer
from .values.times.temporal import cast_text

if TYPE_CHECKING:
    from .row_filter import Predicate

_FIELDS = {
    "file_path": pa.string(),
    "file_name": pa.string(),
    "file_size": pa.int64(),
    "file_modification_time": pa.timestamp("us", "UTC"),
    "split_start": pa.int64(),
    "split_length": pa.int64(),
    "file_block_start": pa.int64(),
    "file_block_length": pa.int64(),
    "row_index": pa.int64(),
    "member": pa.string(),
}


class FileColumns:
    """The columns of a schema that each file of a source has one value for."""

    def __init__(self, schema: pa.Schema, options: ReaderOptions, file_column: str = "") -> None:
        """`file_column` names the column of the schema with the key of a row's file."""
        self.schema = schema
        self._file_column = file_column
        self._zone = options.time_zone or "UTC"
        self._bases = bases_of(options)
        self._schemes = _schemes_of(options)
        self._metadata = _metadata_field(schema)
        self._stops = options.mode_of_evolution.stops
        made_here = columns_made_here(schema, file_column)
        self._names = ColumnNames(name for name in schema.names if name not in made_here)
        # Thousands of files share a directory, and a directory decides.
        self._of_directory = lru_cache(maxsize=4096)(self._parse)

    def partition(self, path: str) -> Mapping[str, pa.Scalar]:
        """Values of the schema's columns that are written as key=value in the path.

        Raises:
            SchemaMismatchError: a value is not of its column's type.
            NewColumnsSeen: a key is no column, and that stops the query.
        """
        return self._of_directory(path.rpartition("/")[0])

    def _parse(self, directory: str) -> Mapping[str, pa.Scalar]:
        directory = shown_path(directory)
        columns: dict[str, pa.Scalar] = {}
        for part in parts_below(self._bases, directory):
            key, equals, text = part.partition("=")
            name = self._names.find(unescaped(key)) if equals else None
            if name is None:
                if equals and key and self._stops:
                    # The slash says that it is no file, so the connector looks at the paths alone.
                    raise NewColumnsSeen(f"{directory}/")
                continue
            if name in columns:
                raise _misfit(name, directory, "twice in the path", "once")
            kind = self.schema.field(name).type
            try:
                columns[name] = value_of(text, kind, self._zone)
            except (ValueError, OverflowError, pa.ArrowException) as err:
                raise _misfit(name, directory, repr(text), f"{kind} ({err})") from err
        return columns

    def add(
        self,
        batch: pa.RecordBatch,
        splits: Sequence[FileSplit],
        rows: Sequence[int],
        first: int,
        members: Sequence[tuple[str, int]] = (),
    ) -> pa.RecordBatch:
        """`batch` with the columns of its files; `rows` of each split, the first being `first`.

        `members` are those of an archive: see `Decoded`.
        """
        if not len(self.schema):
            return batch
        arrays = []
        path_columns = self.partition(splits[0].file.path)
        if not path_columns and self._metadata is None and batch.schema.names == self.schema.names:
            return batch
        for field in self.schema:
            if field.name == METADATA and self._metadata is not None:
                arrays.append(self._metadata_array(splits, rows, first, members))
            elif self._file_column and field.name == self._file_column:
                keys = [pa.scalar(file_key(split.file.path)) for split in splits]
                arrays.append(_spread(keys, rows, field.type))
            elif field.name in path_columns:
                scalars = [self.partition(split.file.path)[field.name] for split in splits]
                arrays.append(_spread(scalars, rows, field.type))
            else:
                arrays.append(batch.column(field.name))
        return pa.RecordBatch.from_arrays(arrays, names=self.schema.names)

    def _metadata_array(
        self,
        splits: Sequence[FileSplit],
        rows: Sequence[int],
        first: int,
        members: Sequence[tuple[str, int]],
    ) -> pa.Array:
        assert self._metadata is not None
        fields = list(self._metadata.type)
        children = []
        for child in fields:
            if child.name == "row_index":
                # Several splits at once are whole files; only a single split may begin in the
                # middle of one.
                starts = [first] + [0] * (len(rows) - 1)
                index = np.concatenate(
                    [np.arange(s, s + n) for s, n in zip(starts, rows, strict=True)]
                )
                children.append(pa.array(index, pa.int64()).cast(child.type))
                continue
            kind = _FIELDS[child.name]
            if child.name == "member":
                names = [pa.scalar(name, kind) for name, _ in members] or [pa.scalar(None, kind)]
                counts = [count for _, count in members] if len(members) > 1 else [sum(rows)]
                children.append(_spread(names, counts, kind))
                continue
            values = [pa.scalar(self._property(split, child.name), kind) for split in splits]
            children.append(_spread(values, rows, kind).cast(child.type))
        return pa.StructArray.from_arrays(children, fields=fields)

    def _property(self, split: FileSplit, name: str) -> object:
        file = split.file
        if name in ("file_path", "file_name"):
            url = hadoop_url(file.path, self._schemes.get(scheme_of(file.path), ""))
            return url if name == "file_path" else url.rpartition("/")[2]
        if name == "file_size":
            return file.size
        if name == "file_modification_time":
            # -1 is a file system that does not say the time.
            return file.modified if file.modified >= 0 else None
        return split.start if name in ("split_start", "file_block_start") else split.length


def with_file_column(schema: pa.Schema, name: str) -> pa.Schema:
    """`schema` with the column of `writeFileColumn`, if the option names one.

    Raises:
        OptionError: there is such a column.
    """
    if not name:
        return schema
    column = ColumnNames(schema.names).find(name)
    if column is not None:
        raise OptionError(
            "writeFileColumn: the rows have a column of this name",
            "",
            column,
            "a name that no column of the rows has, in any case",
            "Choose another name, or leave the column out of the rows with writeSchema.",
        )
    return schema.append(pa.field(name, pa.string()))


def _schemes_of(options: ReaderOptions) -> Mapping[str, str]:
    """Name of a file system -> what the loaded paths call it, such as `s3a` for `s3`."""
    paths = loaded_paths(options.loaded_path)
    # Reversed, so that the first of several names of one file system is the one that stays.
    return {path.base.scheme: scheme_of(path.given) for path in reversed(paths)}


def _spread(values: list[pa.Scalar], rows: Sequence[int], kind: pa.DataType) -> pa.Array:
    if len(values) == 1:
        return pa.repeat(values[0], rows[0])
    # Python's own dates end with the year 9999.
    distinct = pa.array(values, kind)
    return distinct.take(pa.array(np.repeat(np.arange(len(rows)), rows)))


def _metadata_field(schema: pa.Schema) -> pa.Field | None:
    if not makes_metadata(schema):
        return None
    field = schema.field(METADATA)
    wrong = [
        f"{child.name} {child.type}"
        for child in field.type
        if child.name not in _FIELDS or child.type != _FIELDS[child.name]
    ]
    if wrong:
        raise OptionError(
            f"column {METADATA} has fields that are not known",
            found=", ".join(wrong),
            expected="some of " + ", ".join(f"{name} {kind}" for name, kind in _FIELDS.items()),
            remedy=f"If records of JSON have such a column, set schemaHints='{METADATA} string'.",
        )
    return field


def bases_of(options: ReaderOptions) -> Sequence[str] | None:
    """The fixed parts of all loaded paths, as file paths begin; None if no part is a column."""
    if options.recursive_file_lookup:
        return None
    paths = loaded_paths(options.base_path or options.loaded_path)
    return [shown_name(path.base.url).rstrip("/") for path in paths]


def parts_below(bases: Sequence[str] | None, directory: str) -> Sequence[str]:
    """The names of the directories between a base and what is in `directory`.

    Of bases within each other the outermost counts: no value is lost by naming a part as well.
    """
    if bases is None:
        return ()
    inside = directory + "/"
    outermost = min((base for base in bases if inside.startswith(base + "/")), key=len, default="")
    return directory[len(outermost) :].split("/")


def _misfit(name: str, directory: str, problem: str, expected: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"partition column {name!r} does not fit the schema",
        directory,
        problem,
        expected,
        "Correct the type in .schema(...) or schemaHints, or rename the directory before the query "
        "reads it.",
    )


NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a path has for null."""

_types = pa.types
_ESCAPE = re.compile("%([0-9a-fA-F]{2})")


def unescaped(text: str) -> str:
    """`%XX` as the one character of that number, as Spark writes and reads it (no UTF-8)."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def value_of(text: str, kind: pa.DataType, zone: str) -> pa.Scalar:
    """The value that `text`, as written in the path, has in a column of this type.

    Timestamps that name no zone are in `zone`.

    Raises:
        ValueError: it is not a value of that type.
    """
    if not text:
        raise ValueError("there is nothing after the equals sign")
    if text == NULL:
        return pa.scalar(None, kind)
    if _types.is_timestamp(kind):
        # `PartitioningUtils.castPartValueToDesiredType` unescapes text and timestamps, and nothing
        # else.
        return cast_text(unescaped(text), kind, zone)
    if _types.is_date(kind):
        return cast_text(text, kind, zone)
    for is_kind, convert in _CONVERTERS.items():
        if is_kind(kind):
            return convert(text, kind)
    raise ValueError(f"a path cannot hold a value of type {kind}")


_CONVERTERS: dict[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], pa.Scalar]] = {
    _types.is_string: lambda text, kind: pa.scalar(unescaped(text), kind),
    _types.is_binary: lambda text, kind: pa.scalar(text.encode(), kind),
    _types.is_integer: lambda text, kind: pa.scalar(integer(text, kind), kind),
    _types.is_floating: lambda text, kind: pa.scalar(floating(text, kind), kind),
    _types.is_decimal: lambda text, kind: pa.scalar(cast_decimal(text, kind), kind),
    _types.is_boolean: lambda text, kind: pa.scalar(boolean(text), kind),
}


class FilePruning:
    """Judges files by the conditions of the filter on columns in their paths."""

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        self._schema = schema
        self._options = options
        self._columns = FileColumns(schema, options)
        self._predicates: dict[frozenset[str], Predicate] = {}

    def may_match(self, file: FileVersion) -> bool:
        """False only if the path says that no row of `file` fulfils every condition.

        Raises:
            SluiceError: the columns in the path do not fit the schema.
        """
        path_columns = self._columns.partition(file.path)
        predicate = self._predicate(path_columns)
        if not predicate:
            return True
        row = pa.record_batch(
            [pa.array([value], value.type) for value in path_columns.values()],
            names=list(path_columns),
        )
        return bool(predicate.keep(row).num_rows)

    def _predicate(self, path_columns: Mapping[str, pa.Scalar]) -> Predicate:
        from .row_filter import Predicate

        names = frozenset(path_columns)
        if names not in self._predicates:
            place = pa.schema([field for field in self._schema if field.name in names])
            self._predicates[names] = Predicate.of_options(self._options, place)
        return self._predicates[names]
