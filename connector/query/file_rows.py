"""The rows of each file that was read, as long as nobody deletes the state: `keepFileRows`.

Reader commits say how many rows of each split were emitted and dropped, but retention deletes them.
Before it does, their sums go into an object of `rows/`, in order: an object continues the one
before it. Eight together become one, so an entry is written again a few times. A crash before an
object is there leaves the commits; after it they are deleted next time, and the object is not
written again, since its name says up to which checkpoint it goes.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot, snapshots
from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    CheckpointIdentity,
    CheckpointRef,
)
from ...checkpoint_meta.documents.layout import ROWS
from ...checkpoint_meta.documents.query_records import find_seed
from ...checkpoint_meta.documents.reader_assignment import (
    FindCommit,
    continuations_of,
    part_of,
    readers_of,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from ...checkpoint_meta.files.file_columns import (
    FileSplitSerializer,
    Numbers,
    numbers_array,
    numbers_in,
    ranges_in,
    ranges_of,
)
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.index.fingerprints import Names, names_in
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import OptionError, StateMissingError


@dataclass(frozen=True)
class AssignedPart:
    """The part of one reader in one checkpoint, in columns: there may be hundreds of thousands."""

    link: CheckpointSnapshot
    reader: int
    ranges: pa.RecordBatch
    """Rows of `RANGES`; without continuations of which nothing was left."""

    numbers: Numbers
    """The index of each range in the reader's commit."""

    @property
    def commit(self) -> ReaderCommit | None:
        """The commit that the reader has published itself."""
        return self.link.commits.get(self.reader)

    @cached_property
    def names(self) -> Names:
        """The fingerprint of the file of each range."""
        return names_in(self.ranges.column("path"))


def assigned_parts(links: Iterable[CheckpointSnapshot], find: FindCommit) -> Iterator[AssignedPart]:
    """The parts of some checkpoints; `find` finds the commit in which a continuation begins."""
    for link in links:
        checkpoint, batches = link.checkpoint, dict[int, list[pa.RecordBatch]]()
        for reader, batch in checkpoint.assigned:
            batches.setdefault(reader, []).append(ranges_in(batch))
        for reader in readers_of(checkpoint):
            if continuations_of(checkpoint, reader):
                part = part_of(checkpoint, reader, FileSplitSerializer(), find)
                there = {at: split for at, split in enumerate(part) if split is not None}
                numbers = np.array([*there], np.int64)
                yield AssignedPart(link, reader, ranges_of([*there.values()]), numbers)
            else:
                ranges = pa.concat_batches(batches[reader])
                yield AssignedPart(link, reader, ranges, np.arange(ranges.num_rows))


_TOGETHER: Final = 8
UNKNOWN: Final = -1
"""In a column of rows."""

_BEGUN: Final = "begun.json"
_COLUMNS: Final = ("key", "good", "bad", "filtered", "replaces")


@dataclass(frozen=True)
class FileRows:
    """Sums by file, sorted by the file's key."""

    key: Numbers
    """See `keys_of`."""

    good: Numbers
    """Rows that were emitted."""

    bad: Numbers
    """Malformed records that were dropped."""

    filtered: Numbers
    """Rows that the filter dropped; UNKNOWN if a part of the file was not opened."""

    replaces: Numbers
    """1 where the table has dropped the rows of what was read of the file before."""

    @classmethod
    def sums(cls, parts: Sequence[FileRows]) -> FileRows:
        """Of parts in order, in which a file may come several times."""
        key, good, bad, filtered, replaces = (
            np.concatenate([getattr(part, name) for part in parts] or [np.zeros(0, np.int64)])
            for name in _COLUMNS
        )
        order = np.argsort(key)
        if not np.any(key[order[1:]] == key[order[:-1]]):
            # The usual case.
            return cls(*(column[order] for column in (key, good, bad, filtered, replaces)))
        keys, of = np.unique(key, return_inverse=True)
        at, since = np.arange(len(key)), np.zeros(len(keys), np.int64)
        np.maximum.at(since, of, np.where(replaces, at, 0))
        counts = at >= since[of]
        totals = [np.zeros(len(keys), np.int64) for _ in range(4)]
        for total, column in zip(totals, (good, bad, filtered, replaces), strict=True):
            np.add.at(total, of[counts], column[counts])
        totals[2][of[counts & (filtered == UNKNOWN)]] = UNKNOWN
        return cls(keys, totals[0], totals[1], totals[2], np.minimum(totals[3], 1))

    def to_bytes(self) -> bytes:
        """As Parquet: differences of neighbours, four to six bytes a key."""
        arrays = [numbers_array(getattr(self, name)) for name in _COLUMNS]
        sink = io.BytesIO()
        encoding = dict.fromkeys(_COLUMNS, "DELTA_BINARY_PACKED")
        options = {"use_dictionary": False, "compression": "zstd", "write_statistics": False}
        pq.write_table(pa.table(arrays, _COLUMNS), sink, column_encoding=encoding, **options)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> FileRows:
        """The inverse of `to_bytes`."""
        table = pq.read_table(io.BytesIO(data))
        return cls(*(table.column(name).to_numpy() for name in _COLUMNS))


def keys_of(names: Names) -> Numbers:
    """The first 56 bits of fingerprints.

    Of ten million files two share them with a chance of 1 in 1,400. Their rows are then one sum,
    which an audit reports as a difference; nothing else goes by it.
    """
    return (names.high >> np.uint64(8)).astype(np.int64)


def rows_in(part: AssignedPart) -> Iterator[FileRows]:
    """The counts in the commit of a part, if it is there: a range a row."""
    commit = part.commit
    if commit is None:
        return
    good = np.asarray(commit.rows, np.int64)
    bad, filtered = np.zeros(len(good), np.int64), np.zeros(len(good), np.int64)
    for column, counts in ((bad, commit.dropped_records), (filtered, commit.filtered_rows)):
        column[list(counts)] = list(counts.values())
    replaces = (numbers_in(part.ranges, "replaces") > 0).astype(np.int64)
    at = part.numbers
    yield FileRows(keys_of(part.names), good[at], bad[at], filtered[at], replaces)


def rows_of(links: Sequence[CheckpointSnapshot], find: FindCommit) -> FileRows:
    """What the reader commits of some checkpoints say, the oldest first.

    `find` finds those in which continuations begin, too.
    """
    return FileRows.sums([rows for part in assigned_parts(links, find) for rows in rows_in(part)])


def recorded_rows(
    store: StateStore,
    chain: Sequence[CheckpointSnapshot],
    names: Names,
    read: Mapping[CheckpointRef, Sequence[FileRows]] | None = None,
) -> tuple[Numbers, Numbers, Numbers]:
    """The rows that readers emitted of each file, the records and the filtered rows they dropped.

    UNKNOWN where only checkpoints say it that are not retained any more.

    Args:
        store: the state directory.
        chain: what is retained, the newest first.
        names: of the files.
        read: the rows of the parts of each checkpoint in the chain, where they are at hand.
    """
    recorded = RecordedRows(store)
    newest = recorded.newest
    later = [link for link in chain if link.ref.checkpoint > newest.checkpoint]
    parent = later[-1].checkpoint.header.parent if later else newest
    # Else checkpoints between are neither recorded nor retained.
    is_whole = parent in (newest, NO_CHECKPOINT) and find_seed(store) is None
    if read is None:
        parts = [rows_of(later[::-1], ReaderCommits(store).find)]
    else:
        parts = [rows for link in later[::-1] for rows in read[link.ref]]
    rows = FileRows.sums([*recorded.read(), *parts])
    if not is_whole or not len(rows.key):
        nothing = np.full(len(names), 0 if is_whole else UNKNOWN, np.int64)
        return nothing, nothing, nothing
    wanted = keys_of(names)
    at = np.minimum(np.searchsorted(rows.key, wanted), len(rows.key) - 1)
    is_there = rows.key[at] == wanted
    good, bad, filtered = (
        np.where(is_there, column[at], 0) for column in (rows.good, rows.bad, rows.filtered)
    )
    return good, bad, filtered


class RecordedRows:
    """The objects of `rows/` in a state directory."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def objects(self) -> list[tuple[int, CheckpointRef]]:
        """Of each object its first checkpoint's id and its last one, ascending, none twice.

        A crash while several become one leaves both: the longer counts.
        """
        found = sorted(filter(None, map(_parsed, self._store.list(ROWS))))
        kept: list[tuple[int, CheckpointRef]] = []
        for first, last in found:
            while kept and kept[-1][0] >= first:
                kept.pop()
            if not kept or last > kept[-1][1]:
                kept.append((first, last))
        return kept

    @property
    def newest(self) -> CheckpointRef:
        """The checkpoint up to which there are objects."""
        return max((last for _, last in self.objects()), default=NO_CHECKPOINT)

    def read(self) -> Iterator[FileRows]:
        """All of them."""
        for first, last in self.objects():
            yield FileRows.from_bytes(self._store.read(_name(first, last)))

    @property
    def are_kept(self) -> bool:
        """True for the state of a query with `keepFileRows`."""
        return _BEGUN in self._store.list(ROWS)

    def begun(self, *, keeps: bool) -> None:
        """A query starts, which keeps rows if it has done so from its beginning.

        Raises:
            OptionError: `keepFileRows` is not what it was.
        """
        if self.are_kept == keeps:
            return
        if keeps and not CheckpointHistory(self._store).checkpoints():
            with contextlib.suppress(FileExistsError):
                self._store.publish(f"{ROWS}/{_BEGUN}", b"{}\n")
            return
        raise OptionError(
            "keepFileRows cannot change for a state that has begun",
            self._store.location,
            f"keepFileRows={str(keeps).lower()}",
            f"keepFileRows={str(not keeps).lower()}, as when the state began",
            "Nothing was read or stored. Set it as it was. Without it `sluice audit` counts by the "
            "table's column of files (writeFileColumn).",
        )

    def add(self, going: Collection[CheckpointIdentity]) -> Collection[CheckpointIdentity]:
        """Write down the rows of checkpoints whose reader commits are about to be deleted.

        Args:
            going: those checkpoints, on any chain.

        Returns:
            Those whose commits may go: not where a later checkpoint continues what they began.
        """
        history, newest = CheckpointHistory(self._store), self.newest
        refs = {each.ref for each in going}
        chain: list[CheckpointRef] = []
        begun: set[CheckpointRef] = set()
        # The newest incarnation continues the chain of the one that deletes.
        ref = max(history.checkpoints(), key=lambda ref: (ref.epoch, ref.checkpoint))
        with contextlib.suppress(StateMissingError):
            while ref.checkpoint > newest.checkpoint:
                header = history.header(ref)
                if chain or ref in refs:
                    chain.append(ref)
                else:
                    begun |= header.origins
                ref = header.parent
        if chain:
            commits = ReaderCommits(self._store)
            links = snapshots(history, commits, chain, by_name=True)
            self._publish(newest.checkpoint + 1, chain[0], rows_of(links[::-1], commits.find))
            self._merge()
        return [each for each in going if each.ref not in begun]

    def _merge(self) -> None:
        objects = self.objects()
        if len(objects) < _TOGETHER:
            return
        # The newest few of about one length.
        group = objects[1:] if self._is_long(objects[0]) else objects
        parts = [FileRows.from_bytes(self._store.read(_name(*each))) for each in group]
        self._publish(group[0][0], group[-1][1], FileRows.sums(parts))
        for each in group:
            self._store.delete(_name(*each))

    def _is_long(self, each: tuple[int, CheckpointRef]) -> bool:
        first, last = each
        newest = self.newest.checkpoint
        return last.checkpoint - first > _TOGETHER * (newest - last.checkpoint)

    def _publish(self, first: int, last: CheckpointRef, rows: FileRows) -> None:
        # It is there already after a crash before the commits were deleted.
        with contextlib.suppress(FileExistsError):
            self._store.publish(_name(first, last), rows.to_bytes())


def _name(first: int, last: CheckpointRef) -> str:
    return f"{ROWS}/{first:010d}-{last.name}.parquet"


def _parsed(leaf: str) -> tuple[int, CheckpointRef] | None:
    parts = leaf.removesuffix(".parquet").split("-")
    if len(parts) != 3 or not all(map(str.isdecimal, parts)):
        return None
    first, checkpoint, epoch = map(int, parts)
    return first, CheckpointRef(checkpoint, epoch)
