"""Takes in reader commits: what readers tell the coordinator around a checkpoint.

Invariant I5: a commit is counted once, in the first checkpoint that is cut after it was. A
checkpoint that is cut while another is in flight says which of that one's commits it counts
(`CheckpointHeader.counted`); what a crash forgets is read again by that.

Not here: writing commits (reader) and what becomes of splits sent back (`sent_back.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Generic

import pyarrow as pa

from ..checkpoint_meta.checkpoint import Checkpoint
from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.reader_commit import ReaderCommit, ReaderCommits
from ..checkpoint_meta.reference import CheckpointRef
from ..errors import ProtocolError
from .api import EnumeratorSource, SplitEnumerator, SplitT
from .bounded_lock import BoundedLock
from .commit_search import CommitSearch
from .context import CoordinatorContext
from .savepoint import is_known_to_be_complete
from .sent_back import SentBackSplits
from .settings import StartingState


class Acknowledgements(Generic[SplitT]):
    """Counts the reader commits of the checkpoints in flight, and of those just completed."""

    def __init__(
        self,
        source: EnumeratorSource[SplitT, Any],
        history: CheckpointHistory,
        search: CommitSearch,
        lock: BoundedLock,
        context: CoordinatorContext[SplitT],
        enumerator: SplitEnumerator[SplitT, Any],
        sent_back: SentBackSplits,
    ) -> None:
        self._source = source
        self._history = history
        self._search = search
        self._lock = lock
        self._context = context
        self._enumerator = enumerator
        self._sent_back = sent_back
        self._open: dict[CheckpointRef, set[int]] = {}
        """Checkpoints not counted in full, oldest first -> readers that are counted."""
        self._read: dict[CheckpointRef, tuple[int, int]] = {}
        """Rows and bytes of checkpoints not complete, as far as they are counted."""
        self.abandoned_readers = 0
        """Assignments of completed checkpoints that no reader acknowledged, in this incarnation."""
        self.abandoned_splits = 0
        """Their splits. Bounded ones count as read, unbounded ones keep their position."""

    @property
    def counted(self) -> Mapping[CheckpointRef, AbstractSet[int]]:
        """Checkpoints not counted in full, oldest first -> readers that are. Under the lock."""
        return self._open

    def expect(self, ref: CheckpointRef, counted: Iterable[int] = ()) -> None:
        """From now on readers may acknowledge `ref`; these have been counted. Under the lock."""
        self._open[ref] = set(counted)

    def complete(self, ref: CheckpointRef) -> None:
        """Spark has completed `ref` and all before: count what is not yet, open every gateway.

        Each reader of the assignment is looked for by its name, with a bounded wait, before it is
        believed to have no commit. One that has none was abandoned half-way (a `limit`
        downstream), or never run: Spark wants no more of its rows.
        """
        for known in [known for known in list(self._open) if known.checkpoint <= ref.checkpoint]:
            self._complete(known)

    def _complete(self, ref: CheckpointRef) -> None:
        self.take_in(ref)
        checkpoint = self._history.load(ref)
        missing = self._search.missing(
            ref, _readers_of(checkpoint), lambda reader: self._look(ref, reader)
        )
        with self._lock:
            if self._open.pop(ref, None) is None:
                return  # The other thread was faster.
            self._give_up(checkpoint, missing)
            self._context.open(ref.checkpoint)
            self._context.tracker.on_checkpoint_complete(ref.checkpoint)
            self._enumerator.notify_checkpoint_complete(ref.checkpoint)
            rows, size = self._read.pop(ref, (0, 0))
        self._context.journal.info(
            "checkpoint", "%s is complete: %d rows of %d bytes", ref, rows, size
        )

    def adopt_all(self, savepoint: StartingState, counted: Mapping[str, Sequence[int]]) -> None:
        """Count what readers of another directory have said of a savepoint. Under the lock.

        `counted` is what the savepoint's state says of checkpoints that were in flight.
        """
        history, commits = CheckpointHistory(savepoint.store), ReaderCommits(savepoint.store)
        known = {CheckpointRef.from_name(name): of for name, of in counted.items()}
        for ref, readers in sorted({**known, savepoint.ref: ()}.items()):
            self.adopt(history.load(ref), commits, history, readers)

    def adopt(
        self,
        checkpoint: Checkpoint,
        commits: ReaderCommits,
        history: CheckpointHistory,
        counted: Sequence[int] = (),
    ) -> None:
        """Count commits of a savepoint, which are in another directory. Under the lock.

        `counted` are the readers that the savepoint's state has counted itself. What a reader
        without a commit was given is read by this query, with the events that came with it,
        unless the other query is known to have gone on without it.
        """
        missing = []
        for reader in _readers_of(checkpoint):
            if reader in counted:
                continue
            commit = commits.find(checkpoint.ref, reader)
            if commit is None:
                missing.append(reader)
            else:
                self.count(commit, checkpoint)
        if not missing or is_known_to_be_complete(checkpoint.ref, history, commits):
            self._give_up(checkpoint, missing)
            return
        events = checkpoint.header.events
        for reader in missing:
            self._enumerator.add_splits_back(self._assigned_to(reader, checkpoint), reader)
            if str(reader) in events:
                self._context.inboxes.put_back({str(reader): events[str(reader)]})

    def _give_up(self, checkpoint: Checkpoint, missing: Sequence[int]) -> None:
        for reader in missing:
            splits = self._assigned_to(reader, checkpoint)
            self.abandoned_readers += 1
            self.abandoned_splits += len(splits)
            self._context.journal.warning(
                "reader", "reader %d has abandoned its %d splits of %s: nobody wanted its rows",
                reader, len(splits), checkpoint.ref,
            )  # fmt: skip
            self._enumerator.handle_abandoned_splits(splits, reader)

    def take_in(self, ref: CheckpointRef) -> None:
        """Count the commits that a listing shows; each opens the gateway of its own reader."""
        if set(_readers_of(self._history.load(ref))) <= self._open.get(ref, set()):
            return  # All are in: there is nothing to look for until Spark completes it.
        for reader in self._search.shown(ref):
            self._look(ref, reader)

    def _look(self, ref: CheckpointRef, reader: int) -> bool:
        """Look for one commit by its name and count it; True if it is counted now."""
        if reader in self._open.get(ref, ()):
            return True
        commit = self._search.find(ref, reader)
        if commit is None:
            return False
        checkpoint = self._history.load(ref)
        with self._lock:
            # The other thread may have counted it while this one was reading, and may even
            # have completed the checkpoint.
            counted = self._open.get(ref)
            if counted is not None and reader not in counted:
                counted.add(reader)
                self.count(commit, checkpoint)
                self._context.acknowledge(reader, ref.checkpoint)
        return True

    def count(self, commit: ReaderCommit, checkpoint: Checkpoint) -> None:
        """Hand one commit to the enumerator. Under the lock."""
        reader = commit.reader
        rows, size = self._read.get(commit.ref, (0, 0))
        self._read[commit.ref] = (rows + sum(commit.rows), size + sum(commit.input_bytes))
        for event_type, value in commit.events:
            if event_type not in self._source.reader_event_types:
                raise ProtocolError(
                    f"reader {reader} sent an event of a type that is not registered",
                    str(commit.ref),
                    repr(event_type),
                    f"one of {sorted(self._source.reader_event_types)}",
                )
            self._enumerator.handle_reader_event(reader, event_type, value)
        if not (commit.returned or commit.unfinished or self._sent_back.attempts):
            return
        splits = self._assigned_to(reader, checkpoint)
        reasons = {split.index: split.reason for split in commit.returned}
        self._sent_back.forget(s.split_id for i, s in enumerate(splits) if i not in reasons)
        again = [
            splits[index]
            for index, reason in sorted(reasons.items())
            if self._sent_back.judge(splits[index].split_id, reason, commit.checkpoint)
        ]
        if reasons:
            given_up = len(reasons) - len(again)
            self._context.journal.warning(
                "reader", "reader %d sent %d splits of %s back, of which %d are quarantined: %s",
                reader, len(reasons), commit.ref, given_up, next(iter(reasons.values())),
            )  # fmt: skip
        for part in commit.unfinished:
            again.extend(self._remainder(commit.split_version, part.remainder))
        if again:
            self._enumerator.add_splits_back(again, reader)

    def _assigned_to(self, reader: int, checkpoint: Checkpoint) -> list[SplitT]:
        version = checkpoint.header.split_version
        read = self._source.split_serializer.read
        return [s for r, batch in checkpoint.assigned if r == reader for s in read(version, batch)]

    def _remainder(self, version: int, columns: dict[str, list[Any]]) -> list[SplitT]:
        serializer = self._source.split_serializer
        batch = pa.record_batch(columns, schema=serializer.serialize([]).schema)
        return list(serializer.read(version, batch))


def _readers_of(checkpoint: Checkpoint) -> list[int]:
    return sorted({reader for reader, _ in checkpoint.assigned})
