"""Takes in what readers of another directory have said of a savepoint.

A new query counts every commit that the savepoint's state has not: its events, the splits sent
back, the remainders. What a reader has no commit for is read by the new query, unless the old one
is known to have gone on without it.

Not here: restoring the state (`restore.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.reader_assignment import (
    continuations_of,
    part_of,
    readers_of,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ..settings import StartingState
from .acknowledgements import CommitCounter


class Adoption:
    """Takes over one savepoint, under the lock of the new query's coordinator."""

    def __init__(
        self,
        savepoint: StartingState,
        counter: CommitCounter[Any],
        send_again: Callable[[int, Sequence[Any]], None],
    ) -> None:
        self._savepoint = savepoint
        self._history = CheckpointHistory(savepoint.store)
        self._commits = ReaderCommits(savepoint.store)
        self._counter = counter
        self._send_again = send_again

    def run(self, counted: Mapping[str, Sequence[int]]) -> None:
        """Count what the savepoint's state, which names what it has `counted`, has not."""
        known = {CheckpointRef.from_name(name): of for name, of in counted.items()}
        refs = {**known, self._savepoint.ref: ()}
        checkpoints = {ref: self._history.load(ref) for ref in sorted(refs)}
        for ref, checkpoint in checkpoints.items():
            later = [found for other, found in checkpoints.items() if other > ref]
            for reader in readers_of(checkpoint):
                if reader not in refs[ref]:
                    uncounted = {other for other, of in refs.items() if reader not in of}
                    self._adopt(checkpoint, reader, later, uncounted)

    def _adopt(
        self,
        checkpoint: Checkpoint,
        reader: int,
        later: Sequence[Checkpoint],
        uncounted: Collection[CheckpointRef],
    ) -> None:
        serializer = self._counter.source.split_serializer
        commit = self._commits.find(checkpoint.ref, reader)
        part = part_of(checkpoint, reader, serializer, self._commits.find)
        if commit is not None:
            self._counter.count(commit, part, self._continued(checkpoint.ref, reader, later))
            return
        # A continuation that nobody has read is dropped where what it continues comes back with the
        # commit that it resumes from. Where that is counted already, the continuation has it.
        continuations = continuations_of(checkpoint, reader)
        assigned = len(part) - len(continuations)
        origins = [None] * assigned + [continuation.origin for continuation in continuations]
        splits = [
            split
            for split, origin in zip(part, origins, strict=True)
            if split is not None and origin not in uncounted
        ]
        if is_known_to_be_complete(checkpoint.ref, self._history, self._commits):
            self._counter.gave_up(reader, checkpoint.ref, len(splits))
            splits = [split for split in splits if self._counter.source.is_unbounded(split)]
        else:
            self._send_again(reader, checkpoint.header.events.get(str(reader), ()))
        if splits:
            self._counter.enumerator.add_splits_back(splits, reader)

    def _continued(self, ref: CheckpointRef, reader: int, later: Sequence[Checkpoint]) -> set[int]:
        """Indexes whose remainder a later reader has read, as far as the savepoint goes."""
        return {
            continuation.index
            for checkpoint in later
            for continuation in continuations_of(checkpoint, reader)
            if continuation.origin == ref and self._commits.find(checkpoint.ref, reader) is not None
        }


def is_known_to_be_complete(
    ref: CheckpointRef, history: CheckpointHistory, commits: ReaderCommits
) -> bool:
    """True if Spark went on after `ref`: its rows were read, or not wanted (a `limit`).

    Spark runs a batch only when the one before has finished, so what proves it is that a reader of
    a later checkpoint has written anything. That a later checkpoint is there proves nothing: it
    may have been cut ahead, or never been taken up.
    """
    later = (known for known in history.checkpoints() if known.checkpoint > ref.checkpoint)
    return any(
        (commits.readers(known) or commits.abandoned(known)) and _descends(known, ref, history)
        for known in later
    )


def _descends(ref: CheckpointRef, ancestor: CheckpointRef, history: CheckpointHistory) -> bool:
    while ref.checkpoint > ancestor.checkpoint:
        ref = history.load(ref).header.parent
    return ref == ancestor
