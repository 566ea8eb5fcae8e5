"""The fate of a checkpoint, from durable state: what is in flight, committed, counted and complete.

The one place that says so. Restoring, views, forks and checks use it, so they agree.

Complete means that the sink has it. The host's log of committed batches says that, where it is at
hand. Elsewhere only a later batch proves it: one that was cut or handed out after it. That all
readers have committed proves nothing: the sink may have failed after them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import StateMissingError
from .documents.batch_mark import NO_BATCH, BatchMark, Forked
from .documents.checkpoint import Checkpoint
from .documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from .documents.layout import ABANDONED, READERS
from .documents.orders import Order, Orders
from .documents.query_records import find_seed
from .documents.reader_assignment import readers_of
from .documents.reader_commit import Abandonment, ReaderCommit, ReaderCommits
from .documents.written_file import Removal, WrittenFile
from .history import CheckpointHistory
from .stores.contract import StateStore, in_parallel


@dataclass(frozen=True)
class CheckpointSnapshot:
    """A checkpoint of a chain, and what became of each reader's part."""

    checkpoint: Checkpoint
    commits: Mapping[int, ReaderCommit] = field(default_factory=dict)
    """Commits that the readers published themselves."""

    given_up: Mapping[int, ReaderCommit] = field(default_factory=dict)
    """Abandonments: published by the driver for readers without which Spark completed the batch."""

    closed: frozenset[int] = frozenset()
    """Readers of which an attempt was closed half-way; some have a commit."""

    completed: int | None = None
    """When the first checkpoint was cut that knows it to be complete; microseconds, None before."""

    is_complete: bool = False
    """True if the sink is known to have it: a reader without a commit will never have one."""

    counted: frozenset[int] = frozenset()
    """Readers whose commits are in the state as of the newest checkpoint of the chain."""

    waived: Sequence[Order] = ()
    """Orders that give up splits of it."""

    @property
    def ref(self) -> CheckpointRef:
        """Id and epoch of the checkpoint."""
        return self.checkpoint.ref

    @property
    def abandoned(self) -> frozenset[int]:
        """Readers that were closed half-way, or that the driver has given up."""
        return self.closed.union(self.given_up)

    @property
    def is_read(self) -> bool:
        """True once all readers have ended: each has committed, or the checkpoint is complete."""
        return self.is_complete or set(readers_of(self.checkpoint)) <= set(self.commits)

    def verdict(self, reader: int) -> ReaderCommit | None:
        """The commit under the reader's name, of the reader or of the driver."""
        return self.commits.get(reader) or self.given_up.get(reader)

    def outcome(self, reader: int) -> str:
        """Fate of a reader's assignment: read, abandoned, or still assigned."""
        if reader in self.commits:
            return "read"
        return "abandoned" if self.is_complete else "assigned"


def in_flight(
    history: CheckpointHistory, ref: CheckpointRef, complete: CheckpointRef = NO_CHECKPOINT
) -> list[CheckpointSnapshot]:
    """Return what was in flight when `ref` was cut, and `ref`: newest first, without commits.

    Spark has read `complete` and all before it.
    """
    if ref == NO_CHECKPOINT:
        return []
    counted = history.load(ref).header.in_flight
    return [
        CheckpointSnapshot(
            history.load(each), is_complete=each <= complete, counted=frozenset(counted[each])
        )
        for each in sorted(counted, reverse=True)
    ]


def snapshots(
    history: CheckpointHistory,
    commits: ReaderCommits,
    chain: Iterable[CheckpointRef],
    *,
    by_name: bool = False,
    proven: int = 0,
    committed: int | None = None,
) -> list[CheckpointSnapshot]:
    """Snapshots of checkpoints of one chain, in the given order.

    Args:
        history: where they are.
        commits: what their readers have written.
        chain: the newest first.
        by_name: look for each reader's commit by its name; a listing may be old.
        proven: up to this id they are known to be complete.
        committed: see `described_by`.

    Raises:
        StateError: one of them is damaged, or newer than this release.
    """
    links = [history.load(ref) for ref in chain]
    read = set(commits.store.list(READERS))
    # Most checkpoints have no record of an abandoned reader, and on a bucket each listing is a
    # request.
    left = set(commits.store.list(ABANDONED))

    def described(link: Checkpoint) -> tuple[Sequence[ReaderCommit], Sequence[Abandonment]]:
        checkpoint = link.identity
        closed = commits.abandoned(checkpoint) if checkpoint.name in left else ()
        if by_name:
            return commits.find_all(checkpoint, readers_of(link)), closed
        return commits.of(checkpoint) if checkpoint.name in read else (), closed

    oldest = min((link.header.orders for link in links), default=0)
    waived = Orders(commits.store).waived(oldest) if links else {}
    return described_by(links, in_parallel(described, links), waived, proven, committed)


def described_by(
    links: Sequence[Checkpoint],
    readers: Iterable[tuple[Sequence[ReaderCommit], Sequence[Abandonment]]],
    waived: Mapping[CheckpointRef, Sequence[Order]] | None = None,
    proven: int = 0,
    committed: int | None = None,
) -> list[CheckpointSnapshot]:
    """Snapshots of checkpoints of one chain.

    Args:
        links: the newest first.
        readers: for each of them the commits, and the records of attempts that were closed.
        waived: orders that give up splits.
        proven: up to this id they are known to be complete.
        committed: up to this id, and no further, they are complete by the host's log, which
            overrides everything else; None if it is not at hand.
    """
    counted = links[0].header.in_flight if links else {}
    snapshots: list[CheckpointSnapshot] = []
    for at, (link, (published, closed)) in enumerate(zip(links, readers, strict=True)):
        mine = {commit.reader: commit for commit in published if not commit.abandoned}
        given_up = {commit.reader: commit for commit in published if commit.abandoned}
        completed, by = _completed(link.ref, links[:at]), (waived or {}).get(link.ref, ())
        # What the driver says in the place of a reader, it says when Spark has completed it.
        if completed is not None or given_up:
            proven = max(proven, link.ref.checkpoint)
        # A host runs a batch only when the sink has the one before. A later checkpoint of the same
        # batch proves nothing.
        proven = max([proven, *(each.batch_start for each in (*published, *closed))])
        is_complete = link.ref.checkpoint <= (proven if committed is None else committed)
        # What is no longer in flight is counted in full.
        done = frozenset(counted.get(link.ref, readers_of(link)))
        left = frozenset(each.reader for each in closed)
        snapshots.append(
            CheckpointSnapshot(link, mine, given_up, left, completed, is_complete, done, by)
        )
    return snapshots


def committed_on(
    parent_of: Callable[[CheckpointRef], CheckpointRef],
    chain: Sequence[CheckpointRef],
    newest: CheckpointRef | None,
) -> int | None:
    """Id up to which a chain is complete by the host's log; None if the log does not say it.

    Args:
        parent_of: the parent of a checkpoint.
        chain: may have been left by the host, or be newer or older than what it has committed.
        newest: the checkpoint that the host's log has committed last; None without a log.
    """
    if newest is None or not chain:
        return None
    oldest = min(ref.checkpoint for ref in chain)
    with contextlib.suppress(StateMissingError, LookupError):
        while newest.checkpoint >= oldest and newest not in chain:
            newest = parent_of(newest)
        return newest.checkpoint
    return None


def _completed(ref: CheckpointRef, newer: Sequence[Checkpoint]) -> int | None:
    # One that is cut while `ref` runs says which of its commits it counts.
    headers = (link.header for link in reversed(newer) if ref.name not in link.header.counted)
    return next((header.created for header in headers), None)


def snapshot_of(
    history: CheckpointHistory,
    commits: ReaderCommits,
    ref: CheckpointRef,
    committed: int | None = None,
) -> CheckpointSnapshot:
    """The snapshot of one checkpoint, on whichever chain it is.

    That a later checkpoint is there proves nothing: it may have been cut ahead, or never been taken
    up. That a reader of a later batch has written anything proves that the sink has this one.
    """
    refs = (other for other in history.checkpoints() if other.checkpoint > ref.checkpoint)
    later = (history.load(other).identity for other in refs if _descends(history, other, ref))
    is_proven = any(
        record.batch_start >= ref.checkpoint
        for other in later
        for record in (*commits.of(other), *commits.abandoned(other))
    )
    proven = ref.checkpoint if is_proven else 0
    (snapshot,) = snapshots(history, commits, [ref], proven=proven, committed=committed)
    return snapshot


def _descends(history: CheckpointHistory, ref: CheckpointRef, ancestor: CheckpointRef) -> bool:
    # Of a chain that was left, what comes before may be gone; what comes after `ancestor` is not.
    with contextlib.suppress(StateMissingError):
        while ref.checkpoint > ancestor.checkpoint:
            ref = history.load(ref).header.parent
    return ref == ancestor


# Batches: which checkpoints of a chain change the table, by their reader commits -------------


@dataclass(frozen=True)
class BatchFiles:
    """The changes of one batch to the table."""

    mark: BatchMark
    files: Sequence[WrittenFile] = ()
    removals: Sequence[Removal] = ()

    @property
    def is_mark(self) -> bool:
        """True if nothing is known of it but the mark."""
        return not self.files and not self.removals


def newest_written(
    history: CheckpointHistory, commits: ReaderCommits, ref: CheckpointRef
) -> BatchMark:
    """The newest batch that changes the table on the chain that ends with `ref`.

    NO_BATCH without one. A mark without digits if the chain has none as far as it is retained.
    """
    return next(
        (mark for mark, checkpoint in _chain(history, ref) if _changes(commits, checkpoint)),
        NO_BATCH,
    )


def forked_from(store: StateStore) -> Forked | None:
    """The query whose batches a fork continues; None if it wrote to no table that is known."""
    seed = find_seed(store)
    forked = seed and seed.origin.get("forked")
    return Forked(**forked) if forked else None


def written_batches(
    history: CheckpointHistory, commits: ReaderCommits, ref: CheckpointRef
) -> Iterator[BatchFiles]:
    """Yield the batches that change the table on the chain that ends with `ref`, newest first.

    The last one is a mark without digits if the chain below it is not retained.
    """
    for mark, checkpoint in _chain(history, ref):
        if checkpoint is None:
            yield BatchFiles(mark)
            return
        all_commits = commits.find_all(checkpoint.identity, readers_of(checkpoint))
        files = [file for commit in all_commits for file in commit.written_files or ()]
        removals = [removal for commit in all_commits for removal in commit.removals]
        if files or removals:
            yield BatchFiles(mark, files, removals)


def _chain(
    history: CheckpointHistory, ref: CheckpointRef
) -> Iterator[tuple[BatchMark, Checkpoint | None]]:
    while ref != NO_CHECKPOINT:
        try:
            checkpoint = history.load(ref)
        except StateMissingError:
            yield BatchMark(ref.checkpoint), None
            return
        yield BatchMark.of(checkpoint.identity), checkpoint
        ref = checkpoint.header.parent


def _changes(commits: ReaderCommits, checkpoint: Checkpoint | None) -> bool:
    if checkpoint is None:
        return True  # Not retained: it may have had files.
    # Mostly the first commit says so, and no other one is read.
    late = []
    for reader in readers_of(checkpoint):
        commit = commits.find(checkpoint.identity, reader)
        if commit is None:
            late.append(reader)
        elif _changes_table(commit):
            return True
    # A client of a network file system may see a commit later than the one that published it.
    awaited = (commits.wait_for(checkpoint.identity, reader) for reader in late)
    return any(commit is not None and _changes_table(commit) for commit in awaited)


def _changes_table(commit: ReaderCommit) -> bool:
    return bool(commit.written_files or commit.removals)
