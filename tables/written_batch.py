"""The files of one batch of a direct write, and the identity of that batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..checkpoint_meta.documents.batch_mark import NO_BATCH, BatchMark, BatchOrigin
from ..checkpoint_meta.documents.written_file import FileName, Removal, WrittenFile
from ..checkpoint_meta.files.file_split import FileVersion
from ..checkpoint_meta.storage.contract import at_once
from ..checkpoint_meta.storage.open_storage import open_storage
from ..errors import FileChangedError, FileVanishedError, TableError
from ..reader.direct_write.field_ids import without_field_ids
from ..reader.direct_write.statistics import Path, leaves, null_count
from ..reader.files.io.source_file import SourceFile
from ..reader.written_files import removals_from_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class WrittenBatch:
    """The batch that a sink is given; it may have no file."""

    files: Sequence[WrittenFile]
    lineage: str
    """Names the query."""

    mark: BatchMark
    """Names the batch in the table: the newest checkpoint that changes it; NO_BATCH without one."""

    origin: BatchOrigin
    """What comes before it."""

    storage_options: Mapping[str, Any]
    _typical: Sequence[WrittenFile]
    """Files that cover all schemas of the batch."""

    removals: Sequence[Removal] = ()
    """Rows that leave the table in the commit that adds the files."""

    before: WrittenBatch | None = None
    """What comes first: rows that it adds may be among those that are removed."""

    continues: str = ""
    """For the first batch of a fork: the end of the query that it continues, in the table."""

    @classmethod
    def of(
        cls, frame: DataFrame | FileBatch, storage_options: Mapping[str, Any]
    ) -> WrittenBatch | None:
        """The batch that `foreachBatch` hands over; None if nothing says whose it is.

        Raises:
            TableError: the rows are not about data files, or those of one query.
        """
        missing = {*WrittenFile.model_fields, "removals"} - set(frame.columns)
        if missing:
            raise TableError(
                "the table sink received rows that do not come from writeTo",
                "",
                f"columns {frame.columns}",
                "the unchanged rows of a stream with writeTo",
            )
        rows = frame.collect()
        if not rows:
            if isinstance(frame, FileBatch) and frame.lineage:
                origin = BatchOrigin.parse(frame.origin)
                return cls.without_files(frame.lineage, origin, storage_options)
            return None
        batches = {(row["lineage"], row["origin"]) for row in rows}
        if len(batches) != 1:
            raise TableError(
                "a batch has files of several queries",
                rows[0]["path"],
                f"files of {len(batches)} queries or batches",
                "a stream with one source, whose rows are not joined with others",
            )
        ((lineage, text),) = batches
        if isinstance(frame, FileBatch) and frame.lineage:
            text = frame.origin
        fields = WrittenFile.model_fields
        files: list[tuple[WrittenFile, BatchMark]] = []
        removals: list[tuple[Removal, BatchMark]] = []
        for row in rows:
            mark = BatchMark.parse(row["mark"])
            if row["path"]:
                files.append((WrittenFile(**{name: row[name] for name in fields}), mark))
            removals += [(removal, mark) for removal in removals_from_text(row["removals"])]
        return cls.of_files(files, lineage, BatchOrigin.parse(text), storage_options, removals)

    @classmethod
    def without_files(
        cls, lineage: str, origin: BatchOrigin, storage_options: Mapping[str, Any]
    ) -> WrittenBatch:
        """A batch that adds nothing, and looks at the table."""
        return cls([], lineage, NO_BATCH, origin, storage_options, [])

    @classmethod
    def of_files(
        cls,
        files: Sequence[tuple[WrittenFile, BatchMark]],
        lineage: str,
        origin: BatchOrigin,
        storage_options: Mapping[str, Any],
        removals: Sequence[tuple[Removal, BatchMark]] = (),
    ) -> WrittenBatch:
        """The batch of these files and removals, each with the mark of its checkpoint."""
        # With asynchronous progress tracking, one batch of Spark's may span several checkpoints.
        marks = {mark.checkpoint: mark for _, mark in (*files, *removals)}
        mark = marks[max(marks)] if marks else NO_BATCH
        before = None
        if removals and len(marks) > 1:
            earlier_files = [pair for pair in files if pair[1] != mark]
            earlier = [pair for pair in removals if pair[1] != mark]
            before = cls.of_files(earlier_files, lineage, origin, storage_options, earlier)
            files = [pair for pair in files if pair[1] == mark]
            removals = [pair for pair in removals if pair[1] == mark]
            origin = BatchOrigin(before.mark, origin.reads)
        # A reader has one schema for all files that it writes. Files that were there before may
        # each have their own part of the columns.
        typical = {_writer_of(file): file for file, _ in files}
        # The rows of a repeated batch may come in another order; digest and manifest must not
        # change.
        ordered = sorted((file for file, _ in files), key=lambda file: file.path)
        of_mark = [removal for removal, _ in removals]
        others = list(typical.values())
        return cls(ordered, lineage, mark, origin, storage_options, others, of_mark, before)

    @property
    def is_empty(self) -> bool:
        """True if it changes nothing in the table."""
        return not self.files and not self.removals

    @property
    def previous(self) -> BatchMark:
        """The batch that has to be the query's newest in the table before this one."""
        return self.origin.previous

    @cached_property
    def digest(self) -> str:
        """A digest of files and removals: 64 hex digits, the same for the same ones."""
        return digest_of((file.path for file in self.files), self.removals)

    @property
    def digest_of_files(self) -> str:
        """What a table says that only has the names of its files."""
        return digest_of(file.path for file in self.files)

    @cached_property
    def schemas(self) -> Sequence[pa.Schema]:
        """The distinct schemas of the files, without partition columns and without metadata."""
        footers = at_once(self.footer_of, self._typical)
        # Files that others wrote (`writeCopy=never`) may differ in metadata only.
        return list(dict.fromkeys(without_field_ids(f.schema.to_arrow_schema()) for f in footers))

    @cached_property
    def footers(self) -> Sequence[pq.FileMetaData]:
        """The footers of the files."""
        return at_once(self.footer_of, self.files)

    def check_there(self) -> None:
        """Check that all files are there: nothing keeps a VACUUM from those in no table yet.

        Raises:
            TableError: some are gone, or have another size.
        """
        sizes = at_once(self._size_of, self.files)
        gone = [f.path for f, size in zip(self.files, sizes, strict=True) if size != f.bytes]
        if gone:
            raise TableError(
                "data files of a batch are missing, or differ from what was written",
                gone[0],
                f"no such file, or another size: {len(gone)} of {len(self.files)}",
                "all files that the reader commits of the batch name",
                "Restore them from a copy. Something has deleted files that were not in the table "
                "yet: a person, or a VACUUM whose retention is shorter than the time between two "
                "batches.",
            )

    def check_never_null(self, columns: Collection[Path], table: str) -> None:
        """Check that no file has a null in these columns: the table does not allow any.

        Reads the footers of the files, and nothing if there are no such columns.

        Raises:
            TableError: a file has nulls there or no such column, or its footer does not say.
        """
        if not columns:
            return
        for file, footer in zip(self.files, self.footers, strict=True):
            for path in columns:
                if file.partition.get(path[0]) is None and not _is_never_null(file, footer, path):
                    raise TableError(
                        "the table allows no nulls in a column, and a file may have some",
                        file.path,
                        f"nulls in {'.'.join(path)}, or no such column",
                        f"a value in each row, since the column is NOT NULL in {table}",
                        "Make the column nullable in the table, or fill it in writeTransform.",
                    )

    def opened(self, file: WrittenFile) -> AbstractContextManager[pa.NativeFile]:
        """A file of the batch, for reading."""
        return SourceFile(_version(file), self.storage_options).native()

    def rows(self, schema: pa.Schema) -> pa.RecordBatchReader:
        """The rows of the files in these columns, null where a file has no such column."""
        rows = (rows for file in self.files for rows in _rows_of(self, file, schema))
        return pa.RecordBatchReader.from_batches(schema, rows)

    def footer_of(self, file: WrittenFile) -> pq.FileMetaData:
        """The footer of a file."""
        with self.opened(file) as source:
            return pq.read_metadata(source)

    def _size_of(self, file: WrittenFile) -> int | None:
        try:
            return SourceFile(_version(file), self.storage_options).present_version().size
        # A file that is empty by now is reported as changed.
        except (FileVanishedError, FileChangedError):
            return None

    def below(self, table: str) -> list[str]:
        """The paths of the files relative to a table's directory.

        Raises:
            TableError: a file is not below it.
        """
        # As files have it: `table` may begin with `s3a://` where paths of files begin with `s3://`.
        storage, name = open_storage(table, self.storage_options)
        root = storage.url(name).rstrip("/") + "/"
        for file in self.files:
            if not file.path.startswith(root):
                raise TableError(
                    "a data file is outside the directory of its table",
                    file.path,
                    f"the table {table}",
                    "writeTo that is the table's directory, or below it",
                )
        return [file.path.removeprefix(root) for file in self.files]

    def to_json(self) -> bytes:
        """The files as JSON, the same bytes for the same files."""
        document = {
            "lineage": self.lineage,
            "checkpoint": self.mark.checkpoint,
            "checksum": self.mark.checksum,
            "reads": asdict(self.origin.reads),
            "files": [file.model_dump(mode="json") for file in self.files],
        }
        if self.continues:
            document["continues"] = self.continues
        return (json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _is_never_null(file: WrittenFile, footer: pq.FileMetaData, path: Path) -> bool:
    # Of columns with NaN the footer has no statistics.
    if null_count(file.statistics, path) == 0:
        return True
    schema = footer.schema.to_arrow_schema()
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for number, leaf in enumerate(leaves(schema)):
        # A struct is never null if one of its fields never is.
        if leaf.path is not None and leaf.path[: len(path)] == path:
            statistics = [group.column(number).statistics for group in groups]
            if all(part and part.has_null_count and not part.null_count for part in statistics):
                return True
    # Of a list or map the footer does not tell nulls from empty ones.
    return len(path) == 1 and path[0] in schema.names and not schema.field(path[0]).nullable


def _version(file: WrittenFile) -> FileVersion:
    # No reader commit records its time, so only the size is compared.
    return FileVersion(file.path, file.bytes, -1)


def digest_of(paths: Iterable[str], removals: Sequence[Removal] = ()) -> str:
    """A digest of data files and removals; the directory of files of readers does not count."""
    # Only their names: a table lists its files relative to itself.
    names = [path.rpartition("/")[2] if FileName.parse(path) else path for path in paths]
    keys = [f"-{key}" for removal in removals for key in removal.keys]
    return hashlib.sha256("\n".join([*sorted(names), *sorted(keys)]).encode()).hexdigest()


def _writer_of(file: WrittenFile) -> object:
    name = FileName.parse(file.path)
    return file.path if name is None else (name.checkpoint, name.reader)


@dataclass(frozen=True)
class FileBatch:
    """The data files of one batch, as `pyspark_sluice.run` passes them to a sink."""

    table: pa.Table
    """One row for each data file, with the columns that the stream has under Spark."""

    storage_options: Mapping[str, Any]
    lineage: str = ""
    """Names the query."""

    origin: str = ""
    """Text of its `BatchOrigin`."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns of `table`."""
        names: list[str] = self.table.column_names
        return names

    @cached_property
    def files(self) -> Sequence[str]:
        """The absolute path or URL of each data file."""
        paths: list[str] = self.table.column("path").to_pylist()
        return paths

    def collect(self) -> Sequence[Mapping[str, Any]]:
        """The rows of `table`."""
        return [{**row, "partition": dict(row["partition"])} for row in self.table.to_pylist()]

    def reader(self) -> pa.RecordBatchReader:
        """Read the rows in the data files, with the columns of all of them, and of partitions."""
        batch = WrittenBatch.of(self, self.storage_options)
        if batch is None or not batch.files:
            return pa.RecordBatchReader.from_batches(pa.schema([]), [])
        schema = pa.unify_schemas(batch.schemas, promote_options="permissive")
        for name in batch.files[0].partition:
            schema = schema.append(pa.field(name, pa.string()))
        return batch.rows(schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for pandas, polars, DuckDB and others: Arrow's PyCapsule interface."""
        return self.reader().__arrow_c_stream__(requested_schema)


def _rows_of(batch: WrittenBatch, file: WrittenFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with batch.opened(file) as source:
        for rows in pq.ParquetFile(source).iter_batches():
            columns = [
                rows.column(field.name).cast(field.type)
                if field.name in rows.schema.names
                else pa.repeat(_value(file.partition.get(field.name), field.type), len(rows))
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """A partition value."""
    return pa.scalar(text, pa.string()).cast(kind)


_types = pa.types
_ALIKE: Final = (_types.is_string, _types.is_large_string, _types.is_string_view)


@dataclass(frozen=True)
class RemovedRows:
    """All rows of some files."""

    column: str
    keys: Sequence[str]
    values: Mapping[str, Sequence[Any]]
    """Other columns, and the values that these rows have there if they have any: files of a table
    without one of them need not be read."""

    @classmethod
    def of(cls, removals: Sequence[Removal], columns: pa.Schema) -> RemovedRows:
        """Those of one batch; `columns` of the table.

        The values of a column come from the paths of the files. Rows may lack them, such as those
        that were read when another path was loaded.
        """
        shared = {*removals[0].values}.intersection(*(removal.values for removal in removals))
        values = {}
        for name in sorted(shared.intersection(columns.names)):
            texts = {removal.values[name] for removal in removals}
            kind = columns.field(name).type
            if _is_exact(kind):
                column = pa.array([text for text in texts if text is not None], pa.string())
                column = column.cast(kind)
                values[name] = sorted(column.to_pylist())
        keys = sorted({key for removal in removals for key in removal.keys})
        return cls(removals[0].column, keys, values)


def _is_exact(kind: pa.DataType) -> bool:
    """True if each value has one text, and tables compare it in no other way than we do."""
    return (
        _types.is_int64(kind)
        or _types.is_int32(kind)
        or _types.is_date32(kind)
        or any(is_text(kind) for is_text in _ALIKE)
    )
