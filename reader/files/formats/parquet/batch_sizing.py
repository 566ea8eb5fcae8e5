"""How many rows of Parquet are decoded at a time, so that a batch stays within `batchBytes`.

A page of a few bytes can stand for gigabytes: a dictionary says its longest value once, and rows
name it by number. So the dictionaries are looked at before the rows that use them. Where nothing
bounds a value beforehand, few rows are decoded at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from ...values.expanded_size import expanded, longest_values
from ...values.map_nested import Path
from ..blocks import MAX_ROWS, rows_within
from .footer import Chunk, RowGroup

__all__ = ["FEW", "BatchRows", "is_harmless", "selected"]

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
        """The rows of a row group, of these columns."""
        chunks = {path: chunk for path, chunk in group.chunks.items() if _is_below(path, paths)}
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
        """Rows of which the longest possible ones fit."""
        size = sum(chunk.uncompressed for chunk in chunks.values())
        if is_harmless(rows, size, self._batch_bytes):
            return MAX_ROWS
        longest = self._longest(index, [path for path in chunks if chunks[path].may_repeat])
        width = 0
        for path, chunk in chunks.items():
            average = chunk.uncompressed // max(1, chunk.values)
            each = _NUMBER if chunk.kind != _BYTE_ARRAY else max(average, longest.get(path[0], 0))
            width += each * max(1, chunk.values // rows)
        most = rows_within(self._batch_bytes, width, 1)
        return min(most, FEW) if any(map(self._is_suspect, chunks.values())) else most

    def _is_suspect(self, chunk: Chunk) -> bool:
        """True if a value may be far longer than the average."""
        swells = chunk.uncompressed > max(self._batch_bytes, _SWELLS * chunk.compressed)
        return chunk.kind == _BYTE_ARRAY and (swells or _DELTA_BYTE_ARRAY in chunk.encodings)

    def _longest(self, index: int, coded: Sequence[Path]) -> dict[str, int]:
        """The longest value of the dictionaries in each column."""
        if not coded:
            return {}
        parquet = pq.ParquetFile(
            self._source,
            metadata=self._parquet.metadata,
            read_dictionary=[".".join(path) for path in coded],
            pre_buffer=False,
            page_checksum_verification=True,
        )
        probe = next(selected(parquet, index, 1, coded))
        columns = zip(probe.schema.names, probe.columns, strict=True)
        return {name: max(longest_values(column), default=0) for name, column in columns}


def is_harmless(rows: int, size: int, batch_bytes: int) -> bool:
    """True if few times `batchBytes` is all that so many rows of so many bytes can swell to."""
    return rows <= FEW or (rows <= _FIRST and rows * size <= 4 * batch_bytes)


def selected(
    parquet: pq.ParquetFile, group: int, rows: int, paths: Sequence[Path]
) -> Iterator[pa.RecordBatch]:
    """Batches of one row group, of the columns at these paths and what is below them."""
    # `ParquetFile` itself takes dotted names only, which stand for several paths at once.
    reader = parquet.reader
    leaves = [i for i, names in enumerate(reader.column_paths) if _is_below(tuple(names), paths)]
    yield from reader.iter_batches(
        rows, row_groups=[group], column_indices=leaves, use_threads=False
    )


def _is_below(leaf: Path, paths: Sequence[Path]) -> bool:
    return any(leaf[: len(path)] == path for path in paths)
