"""The cut: the instant that separates what is in a checkpoint from what comes after it.

One uninterrupted step under the coordinator's lock: rotate the tracker, snapshot the enumerator,
mark and close all gateways. Publishing comes after, outside the lock, so that planning goes on.

Not here: when to cut, and making the checkpoint durable (`coordinator.py`).
"""

from __future__ import annotations

from typing import Generic

import pyarrow as pa

from ..checkpoint_meta.checkpoint import Checkpoint, CheckpointHeader, rows_of
from ..checkpoint_meta.reference import CheckpointRef
from ..errors import ProtocolError
from .api import EnumeratorSource, SplitEnumerator, SplitT, StateT
from .context import CoordinatorContext
from .restore import RestoredState
from .sent_back import SentBackSplits


class CheckpointCutter(Generic[SplitT, StateT]):
    """Takes checkpoints of one enumerator, and takes them back if they cannot be published."""

    def __init__(
        self,
        source: EnumeratorSource[SplitT, StateT],
        enumerator: SplitEnumerator[SplitT, StateT],
        context: CoordinatorContext[SplitT],
        sent_back: SentBackSplits,
    ) -> None:
        self._source = source
        self._enumerator = enumerator
        self._context = context
        self._sent_back = sent_back
        self._split_schema = source.split_serializer.serialize([]).schema
        self._carried: list[pa.RecordBatch] = []
        """State rows that belong into the next checkpoint besides its own snapshot."""

    def adopt(self, savepoint: RestoredState[StateT]) -> None:
        """Make the next checkpoint hold the whole of a savepoint, so that it stands alone."""
        if savepoint.state is not None and self._source.snapshots_are_changes:
            self._carried += self._source.state_serializer.serialize_all(savepoint.state)
        self._sent_back.carry(savepoint.quarantined)

    def cut(self, parent: CheckpointRef, ref: CheckpointRef, created: int) -> Checkpoint:
        """Everything since `parent` becomes the checkpoint `ref`. Under the lock."""
        context = self._context
        state = self._source.state_serializer.serialize_all(
            self._enumerator.snapshot_state(ref.checkpoint)
        )
        self._check_inbox()
        context.tracker.on_checkpoint(ref.checkpoint)
        assigned, events = context.inboxes.empty()
        context.mark_and_close(ref.checkpoint)
        rows = [*self._carried, *state]
        header = CheckpointHeader(
            kind="delta",
            checkpoint=ref.checkpoint,
            epoch=ref.epoch,
            parent_checkpoint=parent.checkpoint,
            parent_epoch=parent.epoch,
            enumerator=self._source.name,
            split_version=self._source.split_serializer.version,
            state_version=self._source.state_serializer.version,
            created=created,
            assigned_splits=rows_of(batch for _, batch in assigned),
            state_rows=rows_of(rows),
            attempts=dict(self._sent_back.attempts),
            quarantined=list(self._sent_back.newly_quarantined()),
            events=dict(events),
            waiting=dict(context.inboxes.waiting),
        )
        return Checkpoint(header, self._split_schema, state[0].schema, assigned, rows)

    def _check_inbox(self) -> None:
        # At a cut every gateway is open, so what was assigned has been delivered.
        recorded = sum(map(len, self._context.tracker.uncheckpointed.values()))
        delivered = self._context.inboxes.splits
        if recorded != delivered:
            raise ProtocolError(
                "the tracker and the inboxes disagree at a cut",
                "",
                f"{delivered} splits delivered",
                f"{recorded} splits recorded as assigned",
            )

    def published(self) -> None:
        """The last cut is durable."""
        self._carried = []
        self._sent_back.clear()

    def abort(self, checkpoint: Checkpoint) -> None:
        """The last cut could not be published: the next one takes over all it held.

        By id, never "the last one". Under the lock.
        """
        header = checkpoint.header
        # Whole snapshots supersede one another; changes add up.
        self._carried = list(checkpoint.state) if self._source.snapshots_are_changes else []
        self._context.inboxes.put_back(checkpoint.assigned, header.events)
        self._context.tracker.reopen(header.checkpoint)
        self._context.open(header.checkpoint)
        self._enumerator.notify_checkpoint_aborted(header.checkpoint)
