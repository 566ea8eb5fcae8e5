"""Parquet: cut at row groups, pruned by column and by statistics, read in bounded batches.

A page of a few bytes can expand to gigabytes: a dictionary says its longest value once, and rows
name it by number. So the dictionaries are looked at before the rows that use them. Where nothing
bounds a value beforehand, few rows are decoded at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....checkpoint_meta.storage.urls import is_local
from .....errors import OptionError
from ...options import ReaderOptions
from ...row_filter import Predicate, Range
from ...values.calendar_rebase import rebase_functions
from ...values.map_nested import Change, Path, is_within, on_columns
from ...values.rows import only_rows
from ..api import NO_CONTEXT, Block, FormatContext, TimeSpan, contiguous
from ..blocks import (
    MAX_ROWS,
    BlockFormat,
    UndecodedColumnError,
    expanded,
    longest_values,
    malformed,
    reading,
    rows_within,
    starting_in,
)
from ..time_columns import TimeColumn, opened_at_end
from .footer import Chunk, RowGroup, bound, footer_of, row_groups, time_span
from .logical_types import LogicalTypes, Unsupported, changes, unsupported_in
from .schema_elements import schema_elements


class ParquetFormat(BlockFormat):
    """Parquet files; the footer says where row groups begin and how many rows they have.

    INT96 timestamps are shown in microseconds, as Spark does, and read as bytes: see
    `logical_types.py`.
    """

    counts_rows = True
    has_time_statistics = True
    what = "Parquet file"

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        if pa.__version__ == "25.0.0":
            raise OptionError(
                "this release of pyarrow drops rows of Parquet files",
                "fileFormat=parquet",
                f"pyarrow {pa.__version__}",
                "any other release (apache/arrow#50614)",
                "Install another release on the driver and the executors.",
            )
        self._predicate = Predicate.of_options(options, schema)
        self._known: tuple[FileVersion, list[RowGroup]] | None = None

    @classmethod
    @override
    def _schema_in(cls, source: pa.NativeFile) -> pa.Schema:
        _, types = _opened(source)
        return types.inferred(schema_elements(footer_of(source)))

    @classmethod
    @override
    def time_span(
        cls, file: FileVersion, options: ReaderOptions, column: str, unit: str
    ) -> TimeSpan | None:
        with reading(file, cls.what), opened_at_end(file, options) as source:
            return time_span(source, TimeColumn(file, column, unit))

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        return _layout(self._row_groups(file, source), file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        buffer_size = self._buffer_size(split.file)
        parquet, types = _opened(source, buffer_size)
        groups = self._groups(split.file, source, parquet)
        metadata = parquet.metadata.metadata or {}
        rebased = rebase_functions(
            parquet.schema_arrow, metadata, self.options, split.file.path, types.int96
        )
        stored = parquet
        if types.int96:
            stored = _file(source, types.with_int96_as_bytes(footer_of(source)), buffer_size)
        decoded = changes(stored.schema_arrow, types.changes(self.schema))
        chosen = starting_in(split, _layout(groups, split.file.size), len(groups))
        paths = self._fitter.paths(types.stored(self.schema), split.file.path)
        rows = BatchRows(stored, source, self.options.batch_bytes)
        for index in chosen:
            group = groups[index]
            if not self._may_hold(parquet.schema_arrow, group, rebased):
                self.passed_over += group.rows
                continue
            if not paths:
                yield from only_rows(group.rows)
                continue
            read = 0
            for batch in _read(rows, stored, index, group, paths):
                read += batch.num_rows
                # INT96 first: rebasing takes timestamps, not twelve bytes.
                yield on_columns(on_columns(batch, decoded), rebased)
            if read != group.rows:
                problem = f"{read} rows in row group {index}, where the footer says {group.rows}"
                raise malformed(split.file, self.what, problem)

    def _buffer_size(self, file: FileVersion) -> int:
        """Return bytes read of a column at a time.

        Without pre-buffering and with such buffers, memory is a page and a buffer for each column,
        not the row group. Object stores want larger requests than disks.
        """
        most = 1 << 20 if is_local(file.path) else 8 << 20
        return min(most, max(1 << 16, self.options.batch_bytes // max(1, len(self.schema))))

    def _groups(
        self, file: FileVersion, source: pa.NativeFile, parquet: pq.ParquetFile
    ) -> list[RowGroup]:
        if parquet.num_row_groups == 1 and not self._predicate:
            # The usual small file: nothing in it has to be found.
            only = parquet.metadata.row_group(0)
            if is_harmless(only.num_rows, only.total_byte_size, self.options.batch_bytes):
                return [RowGroup(0, only.num_rows, {})]
        groups = self._row_groups(file, source)
        if len(groups) != parquet.num_row_groups:
            problem = f"{len(groups)} row groups here and {parquet.num_row_groups} for Arrow"
            raise malformed(file, self.what, problem)
        return groups

    def _row_groups(self, file: FileVersion, source: pa.NativeFile) -> list[RowGroup]:
        # Several splits of one file often come one after the other.
        if self._known is None or self._known[0] != file:
            self._known = file, row_groups(source)
        return self._known[1]

    def _may_hold(self, schema: pa.Schema, group: RowGroup, rebased: dict[str, Change]) -> bool:
        ranges: dict[str, Range] = {}
        for name in self._predicate.columns():
            source = self._fitter.source_of(name, schema)
            # Bounds that are rebased may come out in another order.
            if source is None or source.name in rebased:
                continue
            chunk = group.chunks.get((source.name,))
            if chunk is not None:
                target = self.schema.field(name).type
                low = _as_target(chunk.low, source.type, target)
                high = _as_target(chunk.high, source.type, target)
                ranges[name] = Range(low, high, chunk.nulls, group.rows)
        return self._predicate.may_hold(ranges)


def _opened(source: pa.NativeFile, buffer_size: int = 0) -> tuple[pq.ParquetFile, LogicalTypes]:
    """Open a file, also one with annotations for which Arrow refuses it."""
    unsupported = Unsupported()
    try:
        parquet = _file(source, None, buffer_size)
    # Arrow's errors for annotations are of several classes.
    except (pa.ArrowException, OSError):
        unsupported = unsupported_in(footer_of(source))
        footer = unsupported.metadata(footer_of(source))
        parquet = _file(source, footer, buffer_size)
    return parquet, LogicalTypes(parquet, unsupported)


def _file(
    source: pa.NativeFile, footer: pq.FileMetaData | None, buffer_size: int
) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        metadata=footer,
        pre_buffer=False,
        buffer_size=buffer_size,
        # In Arrow's default unit, nanoseconds, INT96 timestamps would end in 2262.
        coerce_int96_timestamp_unit="us",
        # Off by default; without it, a changed byte may come out as another value.
        page_checksum_verification=True,
    )


def _read(
    rows: BatchRows, parquet: pq.ParquetFile, index: int, group: RowGroup, paths: list[Path]
) -> Iterator[pa.RecordBatch]:
    """Batches of one row group.

    Raises:
        UndecodedColumnError: a column does not decode; it is named.
    """
    try:
        yield from rows.read(index, group, paths)
    except (pa.ArrowException, OSError) as err:
        # Arrow's own errors have no number; those of the store are not about a column.
        if getattr(err, "errno", None) is None:
            _name_column(parquet, index, paths)
        raise


def _name_column(parquet: pq.ParquetFile, group: int, paths: list[Path]) -> None:
    """Raise an error for the column that does not decode by itself, if there is one."""
    for path in paths:
        try:
            for _ in selected(parquet, group, FEW, [path]):
                pass
        except (pa.ArrowException, OSError) as err:
            if getattr(err, "errno", None) is not None:
                raise
            name = ".".join(path)
            reason = f"column {name!r}, which does not decode in row group {group} ({err})"
            raise UndecodedColumnError(reason) from err


def _layout(groups: Sequence[RowGroup], size: int) -> list[Block]:
    return contiguous([(group.start, group.rows) for group in groups], size)


def _as_target(raw: bytes | None, kind: pa.DataType, target: pa.DataType) -> pa.Scalar | None:
    """Return a stored bound as a value of the target type; None where it is no such value."""
    try:
        value = bound(raw, kind)
        return None if value is None else value.cast(target)
    except (pa.ArrowException, ValueError):
        return None


FEW = 256
"""Rows of a batch where a value may be as large as the page that it is in."""

_AT_ONCE = 16
"""Small batches that are handed on as one."""

_FIRST = 1024
"""Rows of the first batch, whose width is not known yet."""

_BYTE_ARRAY, _DELTA_BYTE_ARRAY = 6, 7
_SWELLS = 20
"""Values are suspected to be of very different lengths if all take this many times less stored."""

_NUMBER = 8
"""Bytes of a value that is not text."""


class BatchRows:
    """Says how many rows come next; asked before each batch, and told of it afterwards."""

    def __init__(self, parquet: pq.ParquetFile, source: pa.NativeFile, batch_bytes: int) -> None:
        self._parquet, self._source = parquet, source
        self._batch_bytes = batch_bytes
        self._most = MAX_ROWS
        self._rows = _FIRST

    def read(self, index: int, group: RowGroup, paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group, of these columns."""
        wanted = frozenset(paths)
        chunks = {path: chunk for path, chunk in group.chunks.items() if is_within(path, wanted)}
        self._most = self._bound(index, group.rows, chunks)
        self._rows = min(self._rows, self._most)
        ready, held = list[pa.RecordBatch](), 0
        for batch in selected(self._parquet, index, self._rows, paths):
            size = expanded(batch)
            ready.append(batch)
            held += size
            if len(ready) == _AT_ONCE or held * _AT_ONCE >= self._batch_bytes:
                yield ready[0] if len(ready) == 1 else pa.concat_batches(ready)
                ready, held = [], 0
            # A batch that fitted says that the next one may have twice as many rows.
            fitting = rows_within(self._batch_bytes, size, batch.num_rows)
            self._rows = min(2 * self._rows, self._most, fitting)
            # The reader looks at this before each batch.
            self._parquet.reader.set_batch_size(self._rows)
        if ready:
            yield pa.concat_batches(ready)

    def _bound(self, index: int, rows: int, chunks: Mapping[Path, Chunk]) -> int:
        """Return rows of which the longest possible ones fit."""
        size = sum(chunk.uncompressed for chunk in chunks.values())
        if is_harmless(rows, size, self._batch_bytes):
            return MAX_ROWS
        longest = self._longest(index, [path for path in chunks if chunks[path].may_repeat])
        width = 0
        for path, chunk in chunks.items():
            average = chunk.uncompressed // max(1, chunk.values)
            # A dictionary may hold one value that is far longer than the average.
            each = _NUMBER if chunk.kind != _BYTE_ARRAY else max(average, longest.get(path, 0))
            width += each * max(1, chunk.values // rows)
        most = rows_within(self._batch_bytes, width, 1)
        return min(most, FEW) if any(map(self._is_suspect, chunks.values())) else most

    def _is_suspect(self, chunk: Chunk) -> bool:
        """Return whether a value may be far longer than the average."""
        swells = chunk.uncompressed > max(self._batch_bytes, _SWELLS * chunk.compressed)
        # Of a value, delta encoding stores only what differs from the value before.
        return chunk.kind == _BYTE_ARRAY and (swells or _DELTA_BYTE_ARRAY in chunk.encodings)

    def _longest(self, index: int, coded: Sequence[Path]) -> dict[Path, int]:
        """Return the longest value of the dictionary of each leaf."""
        if not coded:
            return {}
        parquet = pq.ParquetFile(
            self._source,
            metadata=self._parquet.metadata,
            read_dictionary=[".".join(path) for path in coded],
            pre_buffer=False,
            page_checksum_verification=True,
        )
        # One row: Arrow decodes the whole dictionary for it.
        probe = next(selected(parquet, index, 1, coded))
        longest: dict[Path, int] = {}
        for name, column in zip(probe.schema.names, probe.columns, strict=True):
            paths = [path for path in coded if path[0] == name]
            values = list(longest_values(column))
            # Leaves that Arrow decodes into no dictionary have one bound.
            if len(values) != len(paths):
                values = [max(values, default=0)] * len(paths)
            longest |= zip(paths, values, strict=True)
        return longest


def is_harmless(rows: int, size: int, batch_bytes: int) -> bool:
    """True if few times `batchBytes` is all that so many rows of so many bytes can swell to."""
    return rows <= FEW or (rows <= _FIRST and rows * size <= 4 * batch_bytes)


def selected(
    parquet: pq.ParquetFile, group: int, rows: int, paths: Sequence[Path]
) -> Iterator[pa.RecordBatch]:
    """Batches of one row group, of the columns at these paths and what is below them."""
    # `ParquetFile` itself takes dotted names only, which mean several paths at once.
    reader, wanted = parquet.reader, frozenset(paths)
    leaves = [i for i, names in enumerate(reader.column_paths) if is_within(tuple(names), wanted)]
    # Spark has a task on each core, so no core is left for threads of Arrow's.
    yield from reader.iter_batches(
        rows, row_groups=[group], column_indices=leaves, use_threads=False
    )
