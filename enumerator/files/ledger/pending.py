"""Ranges that are not assigned yet, in order, in columns.

Ranges come in chunks, each sorted; the next one is the least of all chunks' heads. So nothing is
sorted again when more is found, and only the ranges near the heads are ever objects.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from ....checkpoint_meta.files.file_columns import (
    numbers_array,
    numbers_in,
    ranges_of,
    splits_in,
)
from ....checkpoint_meta.files.file_split import FileSplit, FileVersion, directory_of
from ..discovery.selection.event_times import FileTimes
from .byte_ranges import ByteRanges, byte_ranges_of, splits_without
from .new_files import filter_rows

_WINDOW = 1024
"""Most rows of a chunk that are objects at a time."""

_MOST_CHUNKS = 64
"""Above this the small ones are made one."""

_SMALL = 20_000
"""Rows up to which sorting objects is cheaper than loading what sorts columns."""


class RangeOrder(Protocol):
    """A total order of ranges: of equal ranges it is the same in every run."""

    @property
    def key(self) -> Callable[[FileSplit], Any]:
        """Return what ranges are compared by."""

    def indices(self, ranges: pa.RecordBatch) -> pa.Array:
        """The rows of `ranges` in order, by columns."""


class FileOrder(Enum):
    """In which order files are read."""

    MTIME = "mtime"
    NAME = "name"
    NEWEST_FIRST = "newestFirst"
    EVENT_TIME = "eventTime"
    """Needs the options that say where the time is: `EventTimeOrder` is this order."""

    @property
    def key(self) -> Callable[[FileSplit], Any]:
        """Return what ranges are compared by."""
        return _KEYS[self]

    def indices(self, ranges: pa.RecordBatch) -> pa.Array:
        """The rows of `ranges` in order, by columns."""
        # Loaded late, since most queries never sort so many rows at once.
        import pyarrow.compute as pc

        return pc.sort_indices(ranges, sort_keys=self._columns)

    @property
    def _columns(self) -> list[tuple[str, str]]:
        path, start = ("path", "ascending"), ("start", "ascending")
        if self is FileOrder.NAME:
            return [path, ("modified", "ascending"), start]
        way = "ascending" if self is FileOrder.MTIME else "descending"
        return [("modified", way), path, start]


_KEYS: dict[FileOrder, Callable[[FileSplit], Any]] = {
    FileOrder.MTIME: lambda split: (split.file.modified, split.file.path, split.start),
    FileOrder.NAME: lambda split: (split.file.path, split.file.modified, split.start),
    FileOrder.NEWEST_FIRST: lambda split: (-split.file.modified, split.file.path, split.start),
}


class EventTimeOrder:
    """Earliest event time first; of one time what was modified first, then by path.

    Where there is no event time, the modification time serves.
    """

    def __init__(self, times: FileTimes) -> None:
        self._times = times

    def key(self, split: FileSplit) -> tuple[int, int, str, int]:
        """Return what ranges are compared by.

        Raises:
            SourceUnavailable: the path names no event time.
        """
        file = split.file
        return self._time(file), file.modified, file.path, split.start

    def _time(self, file: FileVersion) -> int:
        time = None if file.is_gone else self._times.find(file)
        return file.modified if time is None else time

    def indices(self, ranges: pa.RecordBatch) -> pa.Array:
        """The rows of `ranges` in order."""
        import pyarrow.compute as pc

        files = (split.file for split in splits_in(ranges))
        times = numbers_array(np.fromiter(map(self._time, files), np.int64, ranges.num_rows))
        names = ["time", "modified", "path", "start"]
        columns = [times, *(ranges.column(name) for name in names[1:])]
        keys = [(name, "ascending") for name in names]
        return pc.sort_indices(pa.record_batch(columns, names=names), sort_keys=keys)


class _Chunk:
    """Sorted ranges of one origin; taken from either end."""

    __slots__ = (
        "_ends", "_first", "_last", "_windows", "back", "batch", "fresh", "front", "is_parked",
        "replaces", "returned",
    )  # fmt: skip

    def __init__(
        self, batch: pa.RecordBatch, *, fresh: bool, returned: bool, replaces: bool
    ) -> None:
        self.batch = batch
        self.replaces = replaces
        """Of one kind, see `PendingRanges`."""
        self.front = 0
        self.back: int = batch.num_rows
        self.fresh = fresh
        """Not in a snapshot yet."""
        self.returned = returned
        """Sent back by a reader: not cut again, since attempts are counted by split."""
        self.is_parked = False
        """Pending, and not to be taken yet."""
        self._first = 0
        self._windows: list[FileSplit] = []
        self._last: int = self.back
        self._ends: list[FileSplit] = []
        """Those before `_last`."""

    def __len__(self) -> int:
        return self.back - self.front

    def rows(self) -> pa.RecordBatch:
        return self.batch.slice(self.front, len(self))

    def head(self) -> FileSplit:
        at = self.front - self._first
        if at >= len(self._windows):
            self._first, at = self.front, 0
            self._windows = splits_in(self.batch.slice(self.front, self._next_size(self._windows)))
        return self._windows[at]

    def tail(self) -> FileSplit:
        at = len(self._ends) - 1 - (self._last - self.back)
        if at < 0:
            size = self._next_size(self._ends)
            self._last, at = self.back, size - 1
            self._ends = splits_in(self.batch.slice(self.back - size, size))
        return self._ends[at]

    def upcoming(self) -> Sequence[FileSplit]:
        """Return some ranges from its head on, which are objects already."""
        return self._windows[self.front - self._first :]

    def _next_size(self, window: Sequence[FileSplit]) -> int:
        # Small at first: a batch of few files should not make a thousand objects.
        return min(_WINDOW, max(1, 4 * len(window)), len(self))


_Heap: TypeAlias = list[tuple[Any, int, _Chunk]]
"""Key of its head, number, chunk; one entry for each chunk, and stale ones."""


class PendingRanges:
    """All that is pending. Under the coordinator's lock.

    Ranges that replace rows are never in one batch with others: one of these two kinds is looked at
    and taken.
    """

    def __init__(
        self, order: RangeOrder = FileOrder.MTIME, *, whole_directories: bool = False
    ) -> None:
        """With `whole_directories` those that replace rows come by directory, then in `order`."""
        self._order = order
        self.whole_directories = whole_directories
        self._chunks: list[_Chunk] = []
        self._heaps: tuple[_Heap, _Heap] = ([], [])
        """Of the others, and of those that replace rows."""
        self._numbers = 0
        self._end: _Chunk | None = None
        """The chunk at the end of the order, while nothing has been added or taken."""
        self._rows = [0, 0]
        self.replaces = False
        """True while ranges that replace rows are taken, in place of the others."""
        self._has_replaced = False
        """The range that was taken last replaces rows."""
        self.bytes = 0
        """Bytes in all ranges."""

    def __len__(self) -> int:
        return sum(self._rows)

    def begin_batch(self) -> None:
        """Choose what is taken: the kinds take turns while there are ranges of both."""
        others, replacing = self._rows
        self.replaces = replacing > 0 and not (others and self._has_replaced)
        self._end = None

    def add(self, ranges: pa.RecordBatch, *, fresh: bool = True, returned: bool = False) -> None:
        """More ranges, in any order, none of them empty.

        Args:
            ranges: rows of `RANGES`.
            fresh: no snapshot has them yet.
            returned: by a reader, to be assigned again as they are.
        """
        if ranges.num_rows == 0:
            return
        self._insert(self.sort(ranges), fresh=fresh, returned=returned)
        self.bytes += sum(
            sign * int(numbers_in(ranges, name).sum())
            for name, sign in (("end", 1), ("start", -1), ("read_bytes", -1))
        )

    def sort(self, ranges: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows in order. Needs no lock."""
        if ranges.num_rows < 2:
            return ranges
        if ranges.num_rows <= _SMALL:
            keys = list(map(self._order.key, splits_in(ranges)))
            order = sorted(range(len(keys)), key=keys.__getitem__)
            # Often a listing is in order already, and nothing is copied.
            if order == list(range(len(keys))):
                return ranges
            return ranges.take(pa.array(order, pa.int64()))
        return ranges.take(self._order.indices(ranges))

    def _insert(self, ranges: pa.RecordBatch, *, fresh: bool, returned: bool) -> None:
        self._end = None
        replaces = numbers_in(ranges, "replaces") > 0
        for kind in sorted({*replaces.tolist()}):
            rows = self._sorted(filter_rows(ranges, replaces == kind), replaces=kind)
            self._rows[kind] += rows.num_rows
            chunk = _Chunk(rows, fresh=fresh, returned=returned, replaces=kind)
            self._chunks.append(chunk)
            self._push(chunk)
        if len(self._chunks) > _MOST_CHUNKS:
            self._tidy()

    def _sorted(self, ranges: pa.RecordBatch, *, replaces: bool) -> pa.RecordBatch:
        if not (replaces and self.whole_directories):
            return ranges
        keys = list(map(partial(self._key, replaces=True), splits_in(ranges)))
        return ranges.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))

    def _key(self, split: FileSplit, *, replaces: bool) -> Any:
        key = self._order.key(split)
        if not (replaces and self.whole_directories):
            return key
        # What is gone has no event time, and comes behind the files that have one.
        return directory_of(split.file.path), split.file.is_gone, key

    def _push(self, chunk: _Chunk) -> None:
        self._numbers += 1
        head = (self._key(chunk.head(), replaces=chunk.replaces), self._numbers, chunk)
        heapq.heappush(self._heaps[chunk.replaces], head)

    def _tidy(self) -> None:
        """Make one chunk of all small ones that are alike."""
        # Half of those allowed, so that the next few additions need not tidy again.
        small = sorted(filter(len, self._chunks), key=len)[: _MOST_CHUNKS // 2]
        small = [chunk for chunk in small if not chunk.is_parked]
        kept = [chunk for chunk in self._chunks if len(chunk) and chunk not in small]
        alike: dict[tuple[bool, bool, bool], list[_Chunk]] = {}
        for chunk in small:
            alike.setdefault((chunk.fresh, chunk.returned, chunk.replaces), []).append(chunk)
        self._chunks, self._heaps = [], ([], [])
        for chunk in kept:
            self._chunks.append(chunk)
            if not chunk.is_parked:
                self._push(chunk)
        for (fresh, returned, replaces), chunks in alike.items():
            ranges = self.sort(_one([chunk.rows() for chunk in chunks]))
            ranges = self._sorted(ranges, replaces=replaces)
            merged = _Chunk(ranges, fresh=fresh, returned=returned, replaces=replaces)
            self._chunks.append(merged)
            self._push(merged)

    # Taking ---------------------------------------------------------------------------------

    def first(self) -> FileSplit | None:
        """The next range in order; None if nothing of its kind is pending."""
        chunk = self._first_chunk()
        return None if chunk is None else chunk.head()

    def _first_chunk(self) -> _Chunk | None:
        heap = self._heaps[self.replaces]
        while heap:
            key, _, chunk = heap[0]
            if len(chunk) and key == self._key(chunk.head(), replaces=chunk.replaces):
                return chunk
            # An entry is stale if its chunk was emptied from the other end, or withdrawn.
            heapq.heappop(heap)
        return None

    def last(self) -> FileSplit | None:
        """The range at the end of the order; None if nothing of its kind is pending."""
        chunk = self._last_chunk()
        return None if chunk is None else chunk.tail()

    def _last_chunk(self) -> _Chunk | None:
        if self._end is None:
            chunks = (c for c in self._chunks if len(c) and not c.is_parked)
            nonempty = (c for c in chunks if c.replaces == self.replaces)
            key = partial(self._key, replaces=self.replaces)
            self._end = max(nonempty, key=lambda chunk: key(chunk.tail()), default=None)
        return self._end

    def is_returned(self, *, last: bool = False) -> bool:
        """True if the range at that end was sent back by a reader."""
        chunk = self._last_chunk() if last else self._first_chunk()
        return chunk is not None and chunk.returned

    def take(self, remainder: FileSplit | None, *, last: bool = False) -> None:
        """The range at that end is assigned, but for `remainder`."""
        chunk = self._last_chunk() if last else self._first_chunk()
        assert chunk is not None
        taken = chunk.tail() if last else chunk.head()
        self._end = None
        if last:
            chunk.back -= 1
        else:
            chunk.front += 1
            heapq.heappop(self._heaps[self.replaces])
        self._rows[self.replaces] -= 1
        self._has_replaced = self.replaces
        self.bytes -= taken.length
        if len(chunk) and not last:
            self._push(chunk)
        elif not len(chunk):
            self._chunks.remove(chunk)
        if remainder is not None:
            # A remainder is a split of its own, which no reader has sent back.
            self._insert(ranges_of([remainder]), fresh=chunk.fresh, returned=False)
            self.bytes += remainder.length

    # Parking --------------------------------------------------------------------------------

    def upcoming(self, *, last: bool = False) -> Sequence[FileSplit]:
        """Some of the ranges that come next, the first one among them."""
        chunk = self._last_chunk() if last else self._first_chunk()
        if chunk is None:
            return ()
        return [chunk.tail()] if last else chunk.upcoming()

    def is_fresh(self, *, last: bool = False) -> bool:
        """True if no snapshot has the range at that end."""
        chunk = self._last_chunk() if last else self._first_chunk()
        return chunk is not None and chunk.fresh

    def park(self, splits: Sequence[FileSplit], *, fresh: bool) -> None:
        """These stay pending, and are not taken before `unpark`."""
        if not splits:
            return
        parked = [c for c in self._chunks if c.is_parked and c.fresh == fresh and len(c)]
        self._chunks = [chunk for chunk in self._chunks if chunk not in parked]
        rows = _one([*(chunk.rows() for chunk in parked), ranges_of(splits)])
        chunk = _Chunk(rows, fresh=fresh, returned=False, replaces=False)
        chunk.is_parked = True
        self._rows[False] += len(splits)
        self.bytes += sum(split.length for split in splits)
        self._chunks.append(chunk)

    def unpark(self) -> None:
        """Let all that was parked be taken."""
        parked = [chunk for chunk in self._chunks if chunk.is_parked and len(chunk)]
        for chunk in parked:
            self._chunks.remove(chunk)
            self._rows[False] -= len(chunk)
            self._insert(self.sort(chunk.rows()), fresh=chunk.fresh, returned=False)

    # Orders ---------------------------------------------------------------------------------

    def of_paths(self, paths: Collection[str]) -> list[FileSplit]:
        """Return what is pending of some files, in any version; a look at all there is."""
        return [split for chunk in self._chunks for split in _of_paths(chunk.rows(), paths)[0]]

    def withdraw(self, unwanted: ByteRanges) -> list[FileSplit]:
        """Some bytes are pending no longer; which of them were. A look at all there is."""
        gone: list[FileSplit] = []
        for chunk in list(self._chunks):
            touched, rest = _of_paths(chunk.rows(), {file.path for file in unwanted})
            left = splits_without(touched, unwanted)
            taken = splits_without(touched, byte_ranges_of(left))
            if not taken:
                continue
            gone += taken
            self._end = None
            self._chunks.remove(chunk)
            self._rows[chunk.replaces] -= len(chunk)
            # An entry of the heap may still lead to it.
            chunk.front = chunk.back
            kept = _one([rest, ranges_of(left)])
            if kept.num_rows:
                self._insert(self.sort(kept), fresh=chunk.fresh, returned=chunk.returned)
        self.bytes -= sum(split.length for split in gone)
        return gone

    # Checkpoints ----------------------------------------------------------------------------

    def take_fresh(self) -> list[pa.RecordBatch]:
        """Take what became pending since this was called before and still is; in no order."""
        fresh = [chunk for chunk in self._chunks if chunk.fresh]
        for chunk in fresh:
            chunk.fresh = False
        return [chunk.rows() for chunk in fresh]

    def frozen(self) -> Sequence[pa.RecordBatch]:
        """All ranges as of now; never changed by what happens later."""
        return [chunk.rows() for chunk in self._chunks if len(chunk)]

    def __iter__(self) -> Iterator[FileSplit]:
        """All ranges in no order, for tests and views."""
        for chunk in self._chunks:
            yield from splits_in(chunk.rows())


def _of_paths(
    ranges: pa.RecordBatch, paths: Collection[str]
) -> tuple[list[FileSplit], pa.RecordBatch]:
    """The ranges of some files, and the other rows."""
    import pyarrow.compute as pc

    # An order may name thousands of files among millions of ranges, which are no objects.
    chosen = pc.is_in(ranges.column("path"), value_set=pa.array(sorted(paths), pa.string()))
    return splits_in(ranges.filter(chosen)), ranges.filter(pc.invert(chosen))


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(list(batches)) if len(batches) != 1 else batches[0]
