"""The durable, create-only record by which a reader acknowledges a checkpoint.

The first commit of a (checkpoint, reader) wins for ever: every later attempt follows its verdicts
or fails. It is counted once, in the checkpoint after it. This closes the direction from reader to
coordinator, which Flink left open (FLINK-28639).

A commit names which checkpoint it is of, with digits of its checksum, in its folder and in itself.
After a restore from a backup, or in a directory that was emptied, an executor of an earlier query
may still be at work on a checkpoint of the same id and epoch: what it writes belongs to that one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from ...errors import StateNotSharedError
from ..stores.contract import StateStore, in_parallel
from .checkpoint_ref import CheckpointIdentity, CheckpointRef, refs_in
from .checksummed_json import OfIdentity
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
from .written_file import BadRecordsFile, Removal, WrittenFile

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


class _OfAttempt(OfIdentity):
    """A record of one attempt of one reader about one checkpoint."""

    reader: int
    attempt: int
    lineage: str = ""
    checkpoint_checksum: str = ""
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

    filtered_rows: Mapping[int, int] = {}
    """Index -> rows that the filter dropped, -1 if unknown; only where any were."""

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

    removals: Sequence[Removal] = ()
    """Rows of earlier batches that leave the table with this commit."""

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


def about(checkpoint: CheckpointIdentity) -> dict[str, Any]:
    """The keys by which a record names its checkpoint."""
    names = {"lineage": checkpoint.lineage, "checkpoint_checksum": checkpoint.checksum}
    return {**asdict(checkpoint.ref), **names}


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
    """The reader commits of a state directory."""

    def __init__(self, store: StateStore, rereads: Rereads | None = None) -> None:
        """`rereads` are those of the directory; None to look for them once."""
        self.store = store
        if rereads is not None:
            self.rereads = rereads

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
        checkpoint = commit.identity
        name = reader_object(checkpoint, commit.reader, self._reread(checkpoint))
        try:
            self.store.publish(name, commit.to_bytes())
        except FileExistsError as found:
            # A network file system may refuse to create an object before it shows it.
            first = self.wait_for(checkpoint, commit.reader, sleep)
            if first is None:
                raise StateNotSharedError(
                    "the commit of an earlier attempt cannot be read",
                    where=f"{self.store.location}/{name}",
                    found="the store reports that the object exists, but does not return it",
                    expected="a store that returns every object that it reports as existing",
                    remedy="Start the query again. If this happens again, move the state to "
                    "another store.",
                ) from found
            return first
        return commit

    def _reread(self, checkpoint: CheckpointIdentity) -> int:
        return max(self.rereads.get(checkpoint.ref, ()), default=0)

    def replaced(self, checkpoint: CheckpointIdentity, reader: int) -> Iterator[ReaderCommit]:
        """The commits that counted before the checkpoint was given back."""
        for order in (0, *self.rereads.get(checkpoint.ref, ()))[:-1]:
            with contextlib.suppress(FileNotFoundError):
                yield ReaderCommit.read(self.store, reader_object(checkpoint, reader, order))

    def find(self, checkpoint: CheckpointIdentity, reader: int) -> ReaderCommit | None:
        """The commit of `reader`, looked for by its name; None if not published yet."""
        name = reader_object(checkpoint, reader, self._reread(checkpoint))
        with contextlib.suppress(FileNotFoundError):
            return ReaderCommit.read(self.store, name)
        return None

    def wait_for(
        self,
        checkpoint: CheckpointIdentity,
        reader: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> ReaderCommit | None:
        """A commit that exists; this host may see it a little later than the one that made it."""
        return look_again(
            lambda: self.find(checkpoint, reader),
            lambda each: each is None,
            lambda: self.refresh(checkpoint),
            sleep,
        )

    def find_all(
        self, checkpoint: CheckpointIdentity, readers: Sequence[int]
    ) -> list[ReaderCommit]:
        """The commits of `readers` that are there, in that order; looked for at once."""
        commits = in_parallel(lambda reader: self.find(checkpoint, reader), readers)
        return [commit for commit in commits if commit is not None]

    def readers(self, checkpoint: CheckpointIdentity) -> list[int]:
        """Readers whose commit a listing shows, ascending.

        A network file system may show an old listing: good enough for views and for looking
        early, not for believing that a commit is not there.
        """
        # Names of another form, such as temporary files of a mount, are no commits.
        leaves, reread = self.store.list(reader_directory(checkpoint)), self._reread(checkpoint)
        suffix = f".r{reread}" if reread else ""
        return numbers_in(leaf.replace(suffix, "") for leaf in leaves if order_of(leaf) == reread)

    def of(self, checkpoint: CheckpointIdentity) -> list[ReaderCommit]:
        """All commits that a listing shows, in the order of readers."""
        return self.find_all(checkpoint, self.readers(checkpoint))

    def abandon(self, abandonment: Abandonment) -> None:
        """Record that an attempt was closed half-way; the first record of a reader stays."""
        name = abandoned_object(abandonment.identity, abandonment.reader)
        # Of several attempts one record is enough to say why a commit is missing.
        with contextlib.suppress(FileExistsError):
            self.store.publish(name, abandonment.to_bytes())

    def abandoned(self, checkpoint: CheckpointIdentity) -> list[Abandonment]:
        """Records of readers that an attempt has abandoned; some may have a commit."""
        found = []
        for reader in numbers_in(self.store.list(abandoned_directory(checkpoint))):
            with contextlib.suppress(FileNotFoundError):
                found.append(Abandonment.read(self.store, abandoned_object(checkpoint, reader)))
        return found

    def refresh(self, checkpoint: CheckpointIdentity) -> None:
        """The next look for what its readers have written is a real one."""
        folders = reader_directory(checkpoint), abandoned_directory(checkpoint)
        for directory in (READERS, *folders):
            self.store.refresh(directory)
