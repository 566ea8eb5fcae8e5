"""The durable, create-only record by which a reader acknowledges a checkpoint.

The first commit of a (checkpoint, reader) wins for ever: every later attempt follows its verdicts
or fails. It is counted once, in the checkpoint after it. This closes the direction from reader to
coordinator, which Flink left open (FLINK-28639).

A commit names the lineage of its query: an executor of a query that was deleted may still be at
work, and has the same names as one of the query that has begun in its place.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from ...errors import StateNotSharedError
from ..stores.contract import StateStore, in_parallel
from .checkpoint_ref import CheckpointRef, refs_in
from .checksummed_json import OfCheckpoint
from .layout import (
    READERS,
    REREADS,
    abandoned_directory,
    abandoned_object,
    numbers_in,
    order_of,
    reader_directory,
    reader_object,
    reread_object,
)
from .serializer import VersionedSerializer, read_columns
from .visibility_check import look_again
from .written_file import BadRecordsFile, WrittenFile

T = TypeVar("T")


class ReturnedSplit(BaseModel):
    """Verdict: sent back whole, no row of it was emitted."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    index: int
    reason: str


class UnfinishedSplit(BaseModel):
    """Verdict: read up to the start of the remainder."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    index: int
    remainder: dict[str, list[Any]]
    """The remainder as the split serializer's columns, one row."""


class NotBegun(BaseModel):
    """Verdict: the budget of the part was spent before these splits."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    indexes: Sequence[int] = ()
    splits: dict[str, list[Any]] = {}
    """The splits as the serializer's columns, a row for each index: who continues the part needs
    no other document."""


class _OfAttempt(OfCheckpoint):
    """A record of one attempt of one reader about one checkpoint."""

    reader: int
    attempt: int
    lineage: str = ""
    """That of its query's checkpoints; empty in what is of any."""

    query_id: str = ""
    """Spark's `sql.streaming.queryId`, empty if not set."""

    batch_start: int = 0
    """Id of the checkpoint after which the batch begins that this attempt was part of. The host ran
    that batch, so this checkpoint and all before it are complete; 0 proves nothing."""


class ReaderCommit(_OfAttempt):
    """The amounts that one reader read of each split of one checkpoint, and what it sends back.

    Splits are named by their index in the reader's assignment, and figures are columns in that
    order, so that fifty thousand packed splits stay a small document. A split that is neither
    returned nor unfinished was read to its end.
    """

    noun = "a reader commit"
    remedy = "Restore the object from a copy."

    rows: Sequence[int]
    """Rows emitted of each split."""

    input_bytes: Sequence[int]
    microseconds: Sequence[int]
    split_version: int = 1
    """Version of the split serializer that wrote the remainders."""

    unfinished: Sequence[UnfinishedSplit] = ()
    not_begun: NotBegun = NotBegun()
    returned: Sequence[ReturnedSplit] = ()
    dropped_records: Mapping[int, int] = {}
    """Index -> malformed records dropped; only where any were."""

    skipped: Mapping[int, str] = {}
    """Index -> why configuration skipped it."""

    finished: int = 0
    """Wall clock of the executor at the end, microseconds since the epoch. For people;
    nothing depends on it."""

    events: Sequence[tuple[str, Any]] = ()
    """(type, JSON value) for the enumerator, in order."""

    shape: Mapping[str, Any] = {}
    """What else than the splits shaped the rows, as JSON values; never a secret. A later attempt
    reads under the same."""

    written_files: Sequence[WrittenFile] | None = None
    """Data files that hold the rows, where they are not handed to Spark; else None."""

    written_schema: Mapping[str, Any] | None = None
    """Spark's JSON of the struct of these rows, partition columns included."""

    bad_records: Sequence[BadRecordsFile] = ()
    """Files of records and files that were left out of the rows, where those are recorded."""

    abandoned: bool = False
    """True if Spark completed the checkpoint without this reader, which says the driver. Bounded
    splits count as read; unbounded ones are unfinished at their old start."""

    def remainders(self, serializer: VersionedSerializer[Sequence[T]]) -> dict[int, T]:
        """Index -> what is left of that split, for those that were not read to their end."""
        remainders = dict[int, T]()
        left = [([part.index], part.remainder) for part in self.unfinished]
        for indexes, columns in [*left, (self.not_begun.indexes, self.not_begun.splits)]:
            if indexes:
                splits = read_columns(serializer, self.split_version, columns)
                remainders |= dict(zip(indexes, splits, strict=True))
        return remainders

    def verdict(self, index: int) -> str:
        """Return what was decided for one split; equal texts for equal outcomes, no figures."""
        for split in self.returned:
            if split.index == index:
                return "sent back"
        for part in self.unfinished:
            if part.index == index:
                return f"{self.rows[index]} rows read, remainder {part.remainder}"
        if index in self.not_begun.indexes:
            return "not begun"
        return f"{self.rows[index]} rows read to the end"

    def first_difference(self, other: ReaderCommit) -> int | None:
        """Index of the first split with another verdict in `other`, None where all agree."""
        # `verdict` searches lists, which is quadratic for the thousands of splits of packed files.
        mine, theirs = (
            (list(c.rows), c.returned_indexes, list(c.unfinished), list(c.not_begun.indexes))
            for c in (self, other)
        )
        if mine == theirs:
            return None
        pairs = range(max(len(self.rows), len(other.rows)))
        return next((i for i in pairs if self.verdict(i) != other.verdict(i)), None)

    @property
    def written(self) -> Sequence[str]:
        """The paths of all files that the attempt wrote in addition to this commit."""
        return [f.path for f in self.written_files or ()] + [f.path for f in self.bad_records]

    @property
    def returned_indexes(self) -> Sequence[int]:
        """Indexes of the splits sent back, ascending."""
        return sorted(split.index for split in self.returned)

    @property
    def unread_indexes(self) -> Sequence[int]:
        """Indexes of the splits of which no row was read: sent back, or not begun."""
        return [*self.returned_indexes, *self.not_begun.indexes]


class Abandonment(_OfAttempt):
    """An attempt was closed half-way: Spark wanted no more of its rows, or ended it.

    An object of its own next to the commit, so that it can never block one: the
    loser of two speculative attempts is closed too, before or after the winner acknowledges.
    Where a reader has no commit it explains why, and no one waits for one.
    """

    noun = "a record of an attempt"

    reported: int
    """Splits it had come to the end of."""


Rereads: TypeAlias = Mapping[CheckpointRef, Sequence[int]]
"""Checkpoint -> the orders by which it was given back, ascending."""


def rereads_in(store: StateStore) -> Rereads:
    """The checkpoints of a state directory that were given back and are read again."""
    rereads: dict[CheckpointRef, list[int]] = {}
    for leaf in store.list(REREADS):
        for ref in refs_in([leaf]):
            rereads.setdefault(ref, []).extend(numbers_in([leaf.partition(".")[2]]))
    return {ref: sorted(orders) for ref, orders in rereads.items() if orders}


def give_back(store: StateStore, ref: CheckpointRef, order: int) -> None:
    """Let a checkpoint be read again by an order: what its readers have committed no longer counts.

    Durable when this returns, and the same again after a crash. Before it, the commits count; after
    it, those that are made under the order. The others stay, since an executor that does not know
    of the order may still be at work; retention deletes them.
    """
    with contextlib.suppress(FileExistsError):
        store.publish(reread_object(ref, order), b"{}\n")


class ReaderCommits:
    """The reader commits of a state directory, of one lineage or, to look at, of all."""

    def __init__(
        self, store: StateStore, lineage: str = "", rereads: Rereads | None = None
    ) -> None:
        """Leave out what others than `lineage` have written; empty for all.

        `rereads` are those of the directory; None to look for them once.
        """
        self.store = store
        self._lineage = lineage
        if rereads is not None:
            self.rereads = rereads

    def of_lineage(self, lineage: str) -> ReaderCommits:
        """The commits of one query in the same directory."""
        return ReaderCommits(self.store, lineage, self.rereads)

    @cached_property
    def rereads(self) -> Rereads:
        """The checkpoints that were given back, as this object has seen them first."""
        return rereads_in(self.store)

    def publish(
        self, commit: ReaderCommit, sleep: Callable[[float], None] = time.sleep
    ) -> ReaderCommit:
        """Publish `commit` unless another attempt was first; return the one that counts.

        Raises:
            StateNotSharedError: another attempt was first, and its commit cannot be seen from here.
        """
        commit = commit.model_copy(update={"lineage": commit.lineage or self._lineage})
        for name in self._commit_names(commit.ref, commit.reader):
            try:
                self.store.publish(name, commit.to_bytes())
            except FileExistsError as found:
                # A network file system may refuse to create an object before it shows it.
                first = self._awaited(
                    partial(ReaderCommit.read, self.store, name), commit.ref, sleep
                )
                if first is None:
                    raise StateNotSharedError(
                        "the commit of an earlier attempt cannot be read",
                        where=f"{self.store.location}/{name}",
                        found="the store reports that the object exists, but does not return it",
                        expected="a store that returns every object that it reports as existing",
                        remedy="Start the query again. If this happens again, move the state to "
                        "another store.",
                    ) from found
                if self._is_ours(first):
                    return first
            else:
                return commit
        raise AssertionError(f"{name} is of the lineage that it names")

    def _names(
        self, name: Callable[[CheckpointRef, int, str], str], ref: CheckpointRef, reader: int
    ) -> list[str]:
        """Return where to look, in order: an object is never deleted while others may look."""
        return [name(ref, reader, lineage) for lineage in dict.fromkeys(("", self._lineage))]

    def _commit_names(self, ref: CheckpointRef, reader: int) -> list[str]:
        return self._names(partial(reader_object, reread=self._reread(ref)), ref, reader)

    def _reread(self, ref: CheckpointRef) -> int:
        return max(self.rereads.get(ref, ()), default=0)

    def replaced(self, ref: CheckpointRef, reader: int) -> Iterator[ReaderCommit]:
        """The commits that counted before the checkpoint was given back."""
        for order in (0, *self.rereads.get(ref, ()))[:-1]:
            for name in self._names(partial(reader_object, reread=order), ref, reader):
                with contextlib.suppress(FileNotFoundError):
                    commit = ReaderCommit.read(self.store, name)
                    if self._is_ours(commit):
                        yield commit

    def _is_ours(self, document: _OfAttempt) -> bool:
        return self._lineage in ("", document.lineage) or not document.lineage

    def find(self, ref: CheckpointRef, reader: int) -> ReaderCommit | None:
        """The commit of `reader` for `ref`, looked for by its name; None if not published yet."""
        for name in self._commit_names(ref, reader):
            try:
                commit = ReaderCommit.read(self.store, name)
            except FileNotFoundError:
                return None
            if self._is_ours(commit):
                return commit
        return None

    def wait_for(
        self, ref: CheckpointRef, reader: int, sleep: Callable[[float], None] = time.sleep
    ) -> ReaderCommit | None:
        """A commit that exists; this host may see it a little later than the one that made it."""
        return self._awaited(lambda: self.find(ref, reader), ref, sleep)

    def _awaited(
        self, look: Callable[[], T | None], ref: CheckpointRef, sleep: Callable[[float], None]
    ) -> T | None:
        def found() -> T | None:
            with contextlib.suppress(FileNotFoundError):
                return look()
            return None

        return look_again(found, lambda each: each is None, lambda: self.refresh(ref), sleep)

    def find_all(self, ref: CheckpointRef, readers: Sequence[int]) -> list[ReaderCommit]:
        """The commits of `readers` for `ref` that are there, in that order; looked for at once."""
        commits = in_parallel(lambda reader: self.find(ref, reader), readers)
        return [commit for commit in commits if commit is not None]

    def readers(self, ref: CheckpointRef) -> list[int]:
        """Readers whose commit for `ref` a listing shows, ascending.

        A network file system may show an old listing: good enough for views and for looking
        early, not for believing that a commit is not there.
        """
        # Names of another form, such as temporary files of a mount, are no commits.
        leaves, reread = self.store.list(reader_directory(ref)), self._reread(ref)
        suffix = f".r{reread}" if reread else ""
        return numbers_in(leaf.replace(suffix, "") for leaf in leaves if order_of(leaf) == reread)

    def of(self, ref: CheckpointRef) -> list[ReaderCommit]:
        """All commits for `ref` that a listing shows, in the order of readers."""
        return self.find_all(ref, self.readers(ref))

    def abandon(self, abandonment: Abandonment) -> None:
        """Record that an attempt was closed half-way; the first record of a reader stays."""
        record = abandonment.model_copy(update={"lineage": self._lineage})
        for name in self._names(abandoned_object, record.ref, record.reader):
            # Of several attempts one record is enough to say why a commit is missing.
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                self.store.publish(name, record.to_bytes())
                return

    def abandoned(self, ref: CheckpointRef) -> list[Abandonment]:
        """Records of readers of `ref` that an attempt has abandoned; some may have a commit."""
        readers = numbers_in(self.store.list(abandoned_directory(ref)))
        return [record for reader in readers if (record := self._abandonment(ref, reader))]

    def _abandonment(self, ref: CheckpointRef, reader: int) -> Abandonment | None:
        with contextlib.suppress(FileNotFoundError):
            for name in self._names(abandoned_object, ref, reader):
                if self._is_ours(record := Abandonment.read(self.store, name)):
                    return record
        return None

    def refresh(self, ref: CheckpointRef) -> None:
        """The next look for what `ref`'s readers have written is a real one."""
        for directory in (READERS, reader_directory(ref), abandoned_directory(ref)):
            self.store.refresh(directory)
