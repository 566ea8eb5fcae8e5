"""Which checkpoints of a chain change the table, by their reader commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import StateMissingError
from .documents.batch_mark import NO_BATCH, BatchMark, Forked
from .documents.bootstrap_record import find_seed
from .documents.checkpoint import Checkpoint
from .documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from .documents.reader_assignment import readers_of
from .documents.reader_commit import ReaderCommit, ReaderCommits
from .documents.written_file import Removal, WrittenFile
from .history import CheckpointHistory
from .stores.contract import StateStore


@dataclass(frozen=True)
class BatchFiles:
    """What one batch changes in the table."""

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
