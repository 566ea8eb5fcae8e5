"""Parquet: cut at row groups, pruned by column and by statistics, read in bounded batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ...filter.predicate import Predicate, Range
from ...io.source_file import is_local
from ...options import ReaderOptions
from ...values.column_fitter import only_rows
from ...values.map_nested import Change, Path, on_columns
from ..api import Block
from ..blocks import BlockFormat, contiguous, malformed, starting_in
from . import int96 as int96s
from .batch_sizing import FEW, BatchRows, is_harmless, selected
from .calendar_rebasing import rebasing
from .footer import RowGroup, Statistics, bound, footer_of, row_groups


class ParquetFormat(BlockFormat):
    """Parquet files; the footer says where row groups begin and how many rows they have.

    INT96 timestamps are shown in microseconds, as Spark does, and read as bytes; see `int96.py`.
    """

    counts_rows = True
    what = "Parquet file"

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        super().__init__(schema, options)
        self._predicate = Predicate.of_options(options, schema)
        self._known: tuple[FileVersion, list[RowGroup]] | None = None

    @classmethod
    @override
    def _schema_in(cls, source: pa.NativeFile) -> pa.Schema:
        return pq.ParquetFile(source, coerce_int96_timestamp_unit="us").schema_arrow

    def _blocks(self, file: FileVersion, source: pa.NativeFile) -> Sequence[Block]:
        return _layout(self._row_groups(file, source), file.size)

    def _batches(self, split: FileSplit, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        parquet = self._file(split.file, source)
        groups = self._groups(split.file, source, parquet)
        int96 = int96s.paths_of(parquet)
        rebased = rebasing(parquet, int96, self.options, split.file.path)
        stored, decoded = parquet, dict[str, Change]()
        if int96:
            stored = self._file(split.file, source, int96s.as_bytes(footer_of(source)))
            decoded = int96s.changes(stored.schema_arrow, int96)
        chosen = starting_in(split, _layout(groups, split.file.size), len(groups))
        paths = self._fitter.paths(parquet.schema_arrow, split.file.path)
        rows = BatchRows(stored, source, self.options.batch_bytes)
        for index in chosen:
            group = groups[index]
            if not self._may_hold(parquet.schema_arrow, group, rebased):
                continue
            if not paths:
                yield from only_rows(group.rows)
                continue
            read = 0
            for batch in _read(rows, stored, index, group, paths):
                read += batch.num_rows
                yield on_columns(on_columns(batch, decoded), rebased)
            if read != group.rows:
                found = f"{read} rows in row group {index}, where the footer says {group.rows}"
                raise malformed(split.file, self.what, found)

    def _file(
        self, file: FileVersion, source: pa.NativeFile, footer: pq.FileMetaData | None = None
    ) -> pq.ParquetFile:
        return pq.ParquetFile(
            source,
            metadata=footer,
            pre_buffer=False,
            buffer_size=self._buffer_size(file),
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    def _buffer_size(self, file: FileVersion) -> int:
        """Bytes read of a column at a time.

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
                return [RowGroup(0, only.num_rows, {}, {})]
        groups = self._row_groups(file, source)
        if len(groups) != parquet.num_row_groups:
            found = f"{len(groups)} row groups here and {parquet.num_row_groups} for Arrow"
            raise malformed(file, self.what, found)
        return groups

    def _row_groups(self, file: FileVersion, source: pa.NativeFile) -> list[RowGroup]:
        # Several splits of one file often come one after the other.
        if self._known is None or self._known[0] != file:
            self._known = file, row_groups(source)
        return self._known[1]

    def _may_hold(self, found: pa.Schema, group: RowGroup, rebased: dict[str, Change]) -> bool:
        ranges: dict[str, Range] = {}
        for name in self._predicate.columns():
            source = self._fitter.source_of(name, found)
            # Bounds that are rebased may come out in another order.
            if source is None or source.name in rebased:
                continue
            known = group.columns.get((source.name,))
            if known is not None:
                target = self.schema.field(name).type
                ranges[name] = _range(known, source.type, target, group.rows)
        return self._predicate.may_hold(ranges)


def _read(
    rows: BatchRows, parquet: pq.ParquetFile, index: int, group: RowGroup, paths: list[Path]
) -> Iterator[pa.RecordBatch]:
    """Batches of one row group.

    Raises:
        ValueError: a column does not decode; it is named.
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
            reason = (
                f"column {'.'.join(path)!r}, which does not decode in row group {group} ({err}); "
                "if others can read it, have it written with another encoding, or leave it out of "
                "the schema"
            )
            raise ValueError(reason) from err


def _layout(groups: Sequence[RowGroup], size: int) -> list[Block]:
    return contiguous([group.start for group in groups], [group.rows for group in groups], size)


def _range(statistics: Statistics, found: pa.DataType, target: pa.DataType, rows: int) -> Range:
    low = _as_target(statistics.low, found, target)
    high = _as_target(statistics.high, found, target)
    return Range(low, high, statistics.nulls, rows)


def _as_target(raw: bytes | None, found: pa.DataType, target: pa.DataType) -> pa.Scalar | None:
    """A stored bound as a value of the target type; None where it is no such value."""
    try:
        value = bound(raw, found)
        return None if value is None else value.cast(target)
    except (pa.ArrowException, ValueError):
        return None
