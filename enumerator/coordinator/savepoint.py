"""Takes in what readers of another directory have said of a savepoint.

A new query counts every commit that the savepoint's state has not: its events, the splits sent
back, the remainders. What a reader has no commit for is read by the new query, unless the old one
is known to have gone on without it.

Not here: restoring the state (`restore.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.reader_assignment import part_of
from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ..settings import StartingState
from .acknowledgements import CommitCounter
from .in_flight import CheckpointRecord, continued_in
from .restore import restored_records


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

    def run(self) -> None:
        """Count what the savepoint's state has not counted."""
        records = restored_records(self._history, self._savepoint.ref)
        for record in records:
            for reader in record.readers:
                if reader not in record.committed:
                    self._adopt(record, reader, records)

    def _adopt(
        self, record: CheckpointRecord, reader: int, records: Sequence[CheckpointRecord]
    ) -> None:
        ref, find = record.ref, self._commits.find
        part = part_of(record.checkpoint, reader, self._counter.source.split_serializer, find)
        commit = find(ref, reader)
        if commit is not None:
            # What a later reader has gone on with is that one's, as far as the savepoint goes.
            # Each look is a request to the store, so only at those that go on with this part.
            later = [r for r in records if continued_in([r], ref, reader)]
            read = [r for r in later if find(r.ref, reader) is not None]
            self._counter.count(commit, part, continued_in(read, ref, reader))
            return
        # A continuation that nobody has read is dropped where what it continues comes back with the
        # commit that it resumes from. Where that is counted already, the continuation has it.
        comes_back = {other.ref for other in records if reader not in other.committed}
        continuations = record.continuations(reader)
        origins = [None] * (len(part) - len(continuations)) + [c.origin for c in continuations]
        splits = [
            split
            for split, origin in zip(part, origins, strict=True)
            if split is not None and origin not in comes_back
        ]
        if is_known_to_be_complete(ref, self._history, self._commits):
            self._counter.gave_up(reader, ref, len(splits))
            splits = [split for split in splits if self._counter.source.is_unbounded(split)]
        else:
            self._send_again(reader, record.events(reader))
        if splits:
            self._counter.enumerator.add_splits_back(splits, reader)


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
