"""Takes in reader commits: what readers tell the coordinator around a checkpoint.

Invariant I5: a commit is counted once, in the first checkpoint that is cut after it was. A
checkpoint that is cut while others are in flight says which of their commits it counts
(`CheckpointHeader.counted`); what a crash forgets is read again by that.

A reader that has no commit when Spark has completed the checkpoint has abandoned it. The driver
publishes that under the commit's own name before it counts it, so an attempt that is still running
cannot commit afterwards, and a restart sees the same.

A commit is looked for by its name, never by a listing alone: a network file system may show an old
listing for a minute. The wait is bounded, since a `limit` downstream leaves readers that were
closed half-way, which say so where they still can, or that never ran, which cannot be known.

A batch in which no reader ran is an error. Spark's file sink and Delta's transactions remember the
numbers of the batches they have. A query whose numbers they have, because it counts from 0 or its
checkpoint is from a backup, has these batches skipped: Spark completes them, and no task runs.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Generic

from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.documents.reader_assignment import part_of
from ...checkpoint_meta.documents.reader_commit import (
    ReaderCommit,
    ReaderCommits,
    UnfinishedSplit,
    about,
)
from ...errors import ProtocolError, SluiceError, StateError
from ..api import Journal, SplitEnumerator, SplitT
from ..source_api import EnumeratorSource
from .context import CoordinatorParts
from .in_flight import CheckpointRecord, Stage
from .returned_splits import ReturnedSplits
from .subtask_gateway import Gateways

_FIRST_DELAY: Final = 0.05
"""Seconds between the first two looks for a commit; then twice as long each time."""


class CommitCounter(Generic[SplitT]):
    """Hands what one commit says to the enumerator. Under the coordinator's lock."""

    def __init__(
        self,
        source: EnumeratorSource[SplitT, Any],
        enumerator: SplitEnumerator[SplitT, Any],
        returned_splits: ReturnedSplits,
        journal: Journal,
    ) -> None:
        self.source = source
        self.enumerator = enumerator
        self._returned_splits = returned_splits
        self._journal = journal
        self.abandoned_readers = 0
        """Assignments of completed checkpoints that no reader committed, in this incarnation."""
        self.abandoned_splits = 0
        """Their splits. Bounded ones count as read, unbounded ones keep their position."""

    def count(
        self, commit: ReaderCommit, part: Sequence[SplitT | None], continued: Collection[int]
    ) -> None:
        """Events, splits sent back and remainders of one commit reach the enumerator.

        Args:
            commit: the first of its reader for its checkpoint.
            part: what the reader had to read; may be empty where `needs_part` is False.
            continued: indexes whose remainder belongs to a continuation.
        """
        reader = commit.reader
        if commit.abandoned:
            self.abandon(reader, commit.ref, len(commit.rows))
        for event_type, value in commit.events:
            self._check_type(commit, event_type)
            self.enumerator.handle_reader_event(reader, event_type, value)
        reasons = {split.index: split.reason for split in commit.returned}
        read = (s.split_id for i, s in enumerate(part) if s is not None and i not in reasons)
        # Every checkpoint lists the attempts, so a split that was read in the end leaves the list.
        if self._returned_splits.attempts:
            self._returned_splits.forget(read)
        unread = [i for i in commit.skipped if not commit.rows[i]]
        again = []
        for index, reason in sorted(reasons.items()):
            split = part[index]
            # A continuation that came to nothing has no split, and its reader had none to send
            # back.
            assert split is not None
            if self._returned_splits.judge(split.split_id, reason, commit.checkpoint):
                again.append(split)
            else:
                unread.append(index)
        if unread:
            left_out = [split for i in unread if (split := part[i]) is not None]
            self.enumerator.left_unread(left_out)
        if reasons:
            given_up, reason = len(reasons) - len(again), next(iter(reasons.values()))
            self._journal.warning(
                "reader", (
                    "reader %d returned %d splits of %s, of which %d are quarantined: %s"
                ),
                reader, len(reasons), commit.ref, given_up, reason,
            )  # fmt: skip
        left = commit.remainders(self.source.split_serializer)
        # A continuation resumes the others: the enumerator would assign them a second time.
        again += [split for index, split in left.items() if index not in continued]
        if again:
            self.enumerator.add_splits_back(again, reader)

    def needs_part(self, commit: ReaderCommit) -> bool:
        """True if counting `commit` takes the splits that its reader had."""
        return bool(commit.returned or commit.skipped or self._returned_splits.attempts)

    def abandon(self, reader: int, ref: CheckpointRef, splits: int) -> None:
        """Spark completed `ref` without this reader's rows."""
        self.abandoned_readers += 1
        self.abandoned_splits += splits
        self._journal.warning(
            "reader", (
                "reader %d abandoned its %d splits of %s: Spark stopped reading its rows (a limit "
                "downstream)"
            ),
            reader, splits, ref,
        )  # fmt: skip

    def _check_type(self, commit: ReaderCommit, event_type: str) -> None:
        types = self.source.reader_event_types
        if event_type not in types:
            raise ProtocolError(
                f"reader {commit.reader} sent an event of an unregistered type",
                str(commit.ref),
                repr(event_type),
                f"one of {sorted(types)}",
            )


class Acknowledgements(Generic[SplitT]):
    """Finds the commits of the checkpoints in flight, and has each of them counted once."""

    def __init__(
        self,
        parts: CoordinatorParts[SplitT, Any],
        gateways: Gateways,
        counter: CommitCounter[SplitT],
    ) -> None:
        self._flight, self._gateways = gateways.flight, gateways
        self._commits = ReaderCommits(parts.store)
        self._patience = parts.settings.commit_patience
        self.counter = counter
        self._source = parts.source
        self._lock, self._deciding = parts.threads.lock, parts.threads.deciding
        self._check_still_ours = parts.check_still_ours
        self._journal = parts.threads.journal
        self._may_be_unread = parts.settings.batches_may_be_unread
        self._replaced_files_go = parts.settings.replaced_files_go
        is_new = gateways.flight.latest_completed == NO_CHECKPOINT
        # Spark may write its first batches down late, and then begins again with them.
        self._query = parts.settings.query_without_batches() if is_new else ""
        self.has_finished_any = False
        """True once a batch that gave readers anything is counted in full."""
        self.sink_is_proven = self._may_be_unread
        """True if the batch before need not be counted before the next is handed out: the sink has
        read one that this incarnation has handed out."""

    def look(self) -> None:
        """Count what a listing shows, and all of what Spark has completed."""
        with self._lock:
            running = self._flight.at(Stage.HANDED_OUT)
        self.finish()
        for record in running:
            self._take_in(record)

    def finish(self) -> None:
        """Count all of what Spark has completed, oldest first.

        A reader without a commit was abandoned half-way (a `limit` downstream), or never ran:
        Spark wants no more of its rows.

        Raises:
            StateError: none ran in a batch.
        """
        with self._lock:
            complete = self._flight.at(Stage.COMPLETE)
        for record in complete:
            self._finish(record)

    def _finish(self, record: CheckpointRecord) -> None:
        ref = record.ref
        self._take_in(record)
        missing = self._missing(record, record.readers)
        self._check_sink(record, missing)
        if missing:
            self._check_still_ours()
        for reader in missing:
            # Create-only under the commit's own name: if a late commit is there first, that counts.
            self._count(record, self._commits.publish(self._abandonment(record, reader)))
        with self._deciding():
            # A batch without readers, such as one that only holds orders, proves nothing of the
            # sink.
            self.has_finished_any |= bool(record.readers)
            self.sink_is_proven |= bool(record.readers) and record.is_of_this_run
            if not self._flight.remove(ref):
                return  # The other thread was faster.
            self.counter.enumerator.notify_checkpoint_complete(ref.checkpoint)
        if ref in self._commits.rereads:
            self._delete_replaced(record)
        self._journal.info(
            "checkpoint", "%s is complete: %d rows of %d bytes", ref, record.rows, record.bytes
        )

    def _delete_replaced(self, record: CheckpointRecord) -> None:
        """Delete the files that readers wrote before the batch was given back.

        Only now that the sink has the batch: from here on it takes no other files under its name.
        A crash before the end leaves files that the sweep of old commits deletes.
        """
        paths = set[str]()
        for reader in record.readers:
            counted = self._commits.find(record.identity, reader)
            replaced = self._commits.replaced(record.identity, reader)
            paths.update(*(commit.written for commit in replaced))
            paths.difference_update(counted.written if counted else ())
        try:
            self._replaced_files_go(paths)
        except (OSError, SluiceError) as error:
            self._journal.warning(
                "reader", "files of %s that were replaced are still there: %s", record.ref, error
            )

    def _missing(self, record: CheckpointRecord, readers: Iterable[int]) -> list[int]:
        """Return those of `readers` that have no commit; after as much patience as set.

        Nothing is waited for where each of them has said how it ended.
        """
        missing = self._look_for(record, readers)
        deadline, delay = time.monotonic() + self._patience, _FIRST_DELAY
        while missing:
            abandoned = {each.reader for each in self._commits.abandoned(record.identity)}
            explained = abandoned.issuperset(missing)
            left = deadline - time.monotonic()
            if not explained and left > 0:
                time.sleep(min(delay, left))
                delay *= 2
            # The last look is a real one: no cache of this machine is used.
            self._commits.refresh(record.identity)
            missing = self._look_for(record, missing)
            if explained or left <= 0:
                break
        return missing

    def _check_sink(self, record: CheckpointRecord, missing: Sequence[int]) -> None:
        if self._may_be_unread or not record.readers or len(missing) < len(record.readers):
            return
        if not self._commits.abandoned(record.identity):
            raise _unread(self._commits.store.location, record.ref)

    def _abandonment(self, record: CheckpointRecord, reader: int) -> ReaderCommit:
        part = self._part(record, reader)
        serializer = self._source.split_serializer
        unfinished = [
            UnfinishedSplit(index=i, remainder=serializer.serialize([split]).to_pydict())
            for i, split in enumerate(part)
            if split is not None and self._source.is_unbounded(split)
        ]
        # How far its reader came is unknown, so no figure contains it.
        zeros = [0] * len(part)
        return ReaderCommit(
            **about(record.identity),
            reader=reader,
            attempt=0,
            rows=zeros,
            input_bytes=zeros,
            microseconds=zeros,
            split_version=serializer.version,
            unfinished=unfinished,
            abandoned=True,
            query_id=self._query,
        )

    def _part(self, record: CheckpointRecord, reader: int) -> list[SplitT | None]:
        return part_of(record.checkpoint, reader, self._source.split_serializer, self._commits.find)

    def _take_in(self, record: CheckpointRecord) -> None:
        # All are in: there is nothing to look for until Spark completes it.
        if not record.committed.issuperset(record.readers):
            self._look_for(record, self._commits.readers(record.identity))

    def _look_for(self, record: CheckpointRecord, readers: Iterable[int]) -> list[int]:
        """Look for commits by their names and count them; the readers that have none."""
        left = [reader for reader in readers if reader not in record.committed]
        commits = self._commits.find_all(record.identity, left)
        for commit in commits:
            self._count(record, commit)
        committed = {commit.reader for commit in commits}
        return [reader for reader in left if reader not in committed]

    def _count(self, record: CheckpointRecord, commit: ReaderCommit) -> None:
        part = self._part(record, commit.reader) if self.counter.needs_part(commit) else ()
        with self._deciding():
            # The other thread may have been faster.
            if not self._gateways[commit.reader].open(commit.ref):
                return
            record.rows += sum(commit.rows)
            record.bytes += sum(commit.input_bytes)
            continued = self._flight.continued(commit.ref, commit.reader)
            self.counter.count(commit, part, continued)

    def await_commit(self, record: CheckpointRecord, reader: int) -> None:
        """Count the commit of `reader`, or that it has none, if one may exist that is not visible.

        Where Spark has completed the checkpoint this settles all of it; otherwise the commit is
        looked for with patience.
        """
        if record.stage is Stage.COMPLETE:
            self.finish()
        elif record.stage is Stage.HANDED_OUT:
            self._missing(record, [reader])


def _unread(where: str, ref: CheckpointRef) -> StateError:
    return StateError(
        "no reader ran in a batch that Spark has completed",
        where,
        f"no reader commit of {ref}",
        "a sink that processes the batch",
        "The sink probably has a batch of this number already, from another query or from before "
        "a backup of the checkpoint was restored, and skipped it. Nothing of it counts as read. "
        "Restore the sink from the same backup, or start with a new checkpointLocation and either "
        "write into another table or continue the old query: prepare that checkpointLocation with "
        "`sluice import-spark` or `sluice fork` and --continue-query. If batches are to be left "
        "unread (limit(0), a foreachBatch that ignores its rows, a join with an empty table), set "
        "allowUnreadBatches=true; `sluice requeue` reads them later.",
    )
