"""Which checkpoints of a chain have data files, by their reader commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import StateMissingError
from .documents.batch_mark import NO_BATCH, BatchMark, Forked
from .documents.bootstrap_record import find_seed
from .documents.checkpoint import Checkpoint
from .documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from .documents.reader_assignment import readers_of
from .documents.reader_commit import ReaderCommits
from .documents.written_file import WrittenFile
from .history import CheckpointHistory
from .stores.contract import StateStore


def newest_written(
    history: CheckpointHistory, commits: ReaderCommits, ref: CheckpointRef
) -> BatchMark:
    """The newest batch with data files on the chain that ends with `ref`; NO_BATCH without one.

    A mark without digits if the chain has none as far as it is retained.
    """
    return next(
        (mark for mark, checkpoint in _chain(history, ref) if _has_files(commits, checkpoint)),
        NO_BATCH,
    )


def forked_from(store: StateStore) -> Forked | None:
    """The query whose batches a fork continues; None if it wrote to no table that is known."""
    seed = find_seed(store)
    forked = seed and seed.origin.get("forked")
    return Forked(**forked) if forked else None


def written_batches(
    history: CheckpointHistory, commits: ReaderCommits, ref: CheckpointRef
) -> Iterator[tuple[BatchMark, Sequence[WrittenFile]]]:
    """Yield the batches with data files on the chain that ends with `ref`, newest first.

    The last one is a mark without digits if the chain below it is not retained.
    """
    for mark, checkpoint in _chain(history, ref):
        files = [] if checkpoint is None else _files(commits, checkpoint)
        if files or checkpoint is None:
            yield mark, files


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


def _has_files(commits: ReaderCommits, checkpoint: Checkpoint | None) -> bool:
    if checkpoint is None:
        return True  # Not retained: it may have had some.
    # Mostly the first commit says so, and no other one is read.
    late = []
    for reader in readers_of(checkpoint):
        commit = commits.find(checkpoint.identity, reader)
        if commit is None:
            late.append(reader)
        elif commit.written_files:
            return True
    # A client of a network file system may see a commit later than the one that published it.
    awaited = (commits.wait_for(checkpoint.identity, reader) for reader in late)
    return any(commit is not None and commit.written_files for commit in awaited)


def _files(commits: ReaderCommits, checkpoint: Checkpoint) -> Sequence[WrittenFile]:
    all_commits = commits.find_all(checkpoint.identity, readers_of(checkpoint))
    return [file for commit in all_commits for file in commit.written_files or ()]
