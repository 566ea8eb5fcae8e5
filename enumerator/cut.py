"""The cut: the instant that separates what is in a checkpoint from what comes after it.

One uninterrupted step under the coordinator's lock: snapshot the enumerator, rotate the tracker,
close all gateways. Publishing comes after, outside the lock.

Not here: when to cut, and making the checkpoint durable (`open_coordinator.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

import pyarrow as pa

from ..checkpoint_meta.attachments import Attachment
from ..checkpoint_meta.checkpoint import (
    Checkpoint,
    CheckpointHeader,
    format_of,
    rows_of,
)
from ..checkpoint_meta.reference import CheckpointRef
from ..errors import ProtocolError
from .api import EnumeratorSource, SplitEnumerator, SplitT, StateT
from .applied_orders import AppliedOrders
from .context import CoordinatorContext
from .restore import RestoredState
from .sent_back import SentBackSplits


class CheckpointCutter(Generic[SplitT, StateT]):
    """Takes checkpoints of one enumerator, and takes them back by id."""

    def __init__(
        self,
        source: EnumeratorSource[SplitT, StateT],
        enumerator: SplitEnumerator[SplitT, StateT],
        context: CoordinatorContext[SplitT],
        sent_back: SentBackSplits,
        orders: AppliedOrders,
    ) -> None:
        self._source = source
        self._enumerator = enumerator
        self._context = context
        self._sent_back = sent_back
        self._orders = orders
        self._split_schema = source.split_serializer.serialize([]).schema
        self._carried: list[pa.RecordBatch] = []
        """State rows that belong into the next checkpoint besides its own snapshot."""
        self._attachments: Sequence[Attachment] = ()
        """Those of a savepoint or of a checkpoint that was taken back: the next one needs them."""

    def adopt(self, savepoint: RestoredState[StateT]) -> None:
        """Make the next checkpoint hold the whole of a savepoint, so that it stands alone."""
        if savepoint.state is not None and self._source.snapshots_are_changes:
            self._carried += self._source.state_serializer.serialize_all(savepoint.state)
            self._attachments = savepoint.attachments
        self._sent_back.carry(savepoint.quarantined)

    def cut(
        self,
        parent: CheckpointRef,
        ref: CheckpointRef,
        created: int,
        counted: Mapping[str, Sequence[int]],
    ) -> Checkpoint:
        """Everything since `parent` becomes the checkpoint `ref`. Under the lock.

        Args:
            parent: the checkpoint before it.
            ref: its name.
            created: microseconds since the epoch.
            counted: see `CheckpointHeader.counted`.
        """
        context = self._context
        self._check_nothing_is_held(ref)
        snapshot = self._enumerator.snapshot_state(ref.checkpoint)
        state = self._source.state_serializer.serialize_all(snapshot)
        by_reader = context.tracker.on_checkpoint(ref.checkpoint)
        assigned = [(r, batch) for r in sorted(by_reader) for batch in by_reader[r]]
        events = context.inboxes.take(by_reader)
        context.close(ref.checkpoint)
        rows, self._carried = [*self._carried, *state], []
        attachments = [*self._attachments, *self._source.attachments_of(snapshot)]
        self._attachments = ()
        header = CheckpointHeader(
            format=format_of(
                in_flight=bool(counted),
                attached=bool(attachments),
                ordered=bool(self._orders.contained),
            ),
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
            quarantined=list(self._sent_back.take_new()),
            events=dict(events),
            waiting=dict(context.inboxes.waiting),
            counted=dict(counted),
            cursors=dict(self._enumerator.cursors()),
            attachments=attachments,
            orders=self._orders.take(),
            released=list(self._sent_back.take_released()),
        )
        return Checkpoint(header, self._split_schema, state[0].schema, assigned, rows)

    def _check_nothing_is_held(self, ref: CheckpointRef) -> None:
        # What the snapshot says has been sent must be in this checkpoint or in one before it:
        # Flink's checkpoint waits for the futures of sends, here the cut waits.
        held = self._context.held_events
        if held:
            raise ProtocolError(
                "a checkpoint was cut while events wait for their readers",
                str(ref),
                f"{held} events held by the gateways",
                "a cut after the readers have acknowledged what came before",
            )

    def abort(self, checkpoint: Checkpoint) -> None:
        """A cut that Spark will never hear of: the next one takes over all it held.

        By id, never "the last one". Whether it was published makes no difference. Under the lock.
        """
        header = checkpoint.header
        # Whole snapshots supersede one another; changes add up.
        if self._source.snapshots_are_changes:
            self._carried = [*checkpoint.state, *self._carried]
            self._attachments = header.attachments
        self._sent_back.carry(header.quarantined)
        self._sent_back.carry_released(header.released)
        self._orders.aborted()
        self._context.inboxes.put_back(header.events)
        self._context.tracker.reopen(header.checkpoint)
        self._context.open(header.checkpoint)
        self._enumerator.notify_checkpoint_aborted(header.checkpoint)
