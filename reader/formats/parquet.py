"""Parquet: cut at row groups, pruned by column and by statistics, read in bounded batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from ...checkpoint_meta.splits import FileSplit, FileVersion
from .api import Block
from .blocks import MAX_ROWS, BlockFormat, contiguous, malformed, rows_within, starting_in
from .columns import empty_columns
from .predicate import Range

_PROBE_ROWS = 1024


class ParquetFormat(BlockFormat):
    """Parquet files; the footer says where row groups begin and how many rows they have.

    INT96 timestamps are read in microseconds, as Spark does: in nanoseconds they would overflow
    outside the years 1677 to 2262 without a word.
    """

    what = "Parquet file"

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        return _layout(pq.read_metadata(source), file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        # Without pre-buffering and with buffered column streams, memory is a page and a buffer
        # a column, not the row group.
        columns = max(1, len(self._schema))
        parquet = pq.ParquetFile(
            source,
            pre_buffer=False,
            buffer_size=min(1 << 20, max(1 << 16, self._options.batch_bytes // columns)),
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
        metadata = parquet.metadata
        paths = self._fitter.paths(parquet.schema_arrow, split.file.path)
        blocks = _layout(metadata, split.file.size)
        groups = starting_in(split, blocks, metadata.num_row_groups)
        chosen = [group for group in groups if self._may_hold(parquet, group)]
        batch_rows = 0
        for group in chosen:
            rows = metadata.row_group(group).num_rows
            if not paths:
                yield from _only_rows(rows)
                continue
            batch_rows = batch_rows or self._batch_rows(parquet, group, paths)
            read = 0
            for batch in parquet.iter_batches(
                batch_rows, row_groups=[group], columns=paths, use_threads=False
            ):
                read += batch.num_rows
                yield batch
            if read != rows:
                found = f"{read} rows in row group {group}, where the footer says {rows}"
                raise malformed(split.file, self.what, found)

    def _batch_rows(self, parquet: pq.ParquetFile, group: int, paths: list[str]) -> int:
        """Rows a batch, from the width of the first rows: the footer does not tell it.

        Dictionary encoding lets a page of a few bytes stand for megabytes of text.
        """
        rows = parquet.metadata.row_group(group).num_rows
        if rows <= _PROBE_ROWS:
            return _PROBE_ROWS
        probe = next(
            parquet.iter_batches(_PROBE_ROWS, row_groups=[group], columns=paths, use_threads=False)
        )
        return rows_within(self._options.batch_bytes, probe.nbytes, probe.num_rows)

    def _may_hold(self, parquet: pq.ParquetFile, group: int) -> bool:
        if not self._predicate:
            return True
        meta = parquet.metadata.row_group(group)
        found = parquet.schema_arrow
        leaves = {parquet.schema.column(i).path: i for i in range(meta.num_columns)}
        ranges: dict[str, Range] = {}
        for name in self._predicate.columns():
            source = self._fitter.source_of(name, found)
            if source is not None and source.name in leaves:
                chunk = meta.column(leaves[source.name])
                target = self._schema.field(name).type
                ranges[name] = _range(chunk.statistics, source.type, target, meta.num_rows)
        return self._predicate.may_hold(ranges)


def _layout(metadata: pq.FileMetaData, size: int) -> list[Block]:
    starts, rows = [], []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        starts.append(_start(group))
        rows.append(group.num_rows)
    return contiguous(starts, rows, size)


def _start(group: pq.RowGroupMetaData) -> int:
    """Where the first column chunk begins: at its dictionary page, if it has one."""
    if not group.num_columns:
        return -1
    chunk = group.column(0)
    dictionary = chunk.dictionary_page_offset
    data: int = chunk.data_page_offset
    return min(dictionary, data) if dictionary else data


def _only_rows(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, MAX_ROWS):
        yield empty_columns(pa.schema([]), min(MAX_ROWS, rows - start))


def _range(
    statistics: pq.Statistics | None, found: pa.DataType, target: pa.DataType, rows: int
) -> Range:
    if statistics is None:
        return Range(None, None, None, rows)
    nulls = statistics.null_count if statistics.has_null_count else None
    low = high = None
    if statistics.has_min_max:
        low = _bound(statistics.min, found, target)
        high = _bound(statistics.max, found, target)
    return Range(low, high, nulls, rows)


def _bound(value: object, found: pa.DataType, target: pa.DataType) -> pa.Scalar | None:
    """A statistic as a value of the target type; None where it is no such value."""
    try:
        return pa.scalar(value, found).cast(target)
    except (pa.ArrowException, TypeError, ValueError):
        return None
