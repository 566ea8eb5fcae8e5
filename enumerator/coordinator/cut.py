"""The cut: the instant that separates what is in a checkpoint from what comes after it.

One uninterrupted step under the coordinator's lock: snapshot the enumerator, and close the open
record. The checkpoint contains everything that was sent since the cut before, released or still
held, so it is the durable form of what the gateways hold (FLINK-20752). Publishing comes after,
outside the lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

import pyarrow as pa

from ...checkpoint_meta.documents.attachments import Attachment
from ...checkpoint_meta.documents.checkpoint import (
    Checkpoint,
    CheckpointHeader,
    Continuation,
    rows_of,
)
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ..api import SplitEnumerator, SplitT, StateT
from ..source_api import EnumeratorSource
from .applied_orders import AppliedOrders
from .in_flight import CheckpointRecord, CheckpointsInFlight
from .restore import RestoredState
from .returned_splits import ReturnedSplits


class CheckpointCutter(Generic[SplitT, StateT]):
    """Takes checkpoints of one enumerator, and takes them back by id."""

    def __init__(
        self,
        flight: CheckpointsInFlight,
        source: EnumeratorSource[SplitT, StateT],
        enumerator: SplitEnumerator[SplitT, StateT],
        returned_splits: ReturnedSplits,
        orders: AppliedOrders,
    ) -> None:
        self._flight = flight
        self._source = source
        self._enumerator = enumerator
        self._returned_splits = returned_splits
        self._orders = orders
        self._split_schema = source.split_serializer.serialize([]).schema
        self._carried: list[pa.RecordBatch] = []
        """State rows that belong into the next checkpoint in addition to its own snapshot."""
        self._attachments: Sequence[Attachment] = ()
        """Those of a savepoint or of a checkpoint that was taken back: the next one needs them."""

    def adopt(self, savepoint: RestoredState[StateT]) -> None:
        """Make the next checkpoint hold the whole of a savepoint, so that it needs no other."""
        if savepoint.state is not None and self._source.snapshots_are_changes:
            self._carried += self._source.state_serializer.serialize_all(savepoint.state)
            self._attachments = savepoint.attachments
        self._returned_splits.list_again(savepoint.quarantined)

    def cut(self, created: int) -> CheckpointRecord:
        """Everything sent since the cut before becomes a checkpoint. Under the lock.

        Args:
            created: microseconds since the epoch.
        """
        ref, parent = self._flight.new_ref(), self._flight.parent
        record = self._flight.open_record
        self._continue_parts(record)
        # Before the snapshot: what an enumerator notes of its parts belongs to this checkpoint.
        budgets = self._enumerator.part_budgets(ref.checkpoint, record.readers)
        snapshot = self._enumerator.snapshot_state(ref.checkpoint)
        state = self._source.state_serializer.serialize_all(snapshot)
        attachments = [*self._attachments, *self._source.attachments_of(snapshot)]
        self._attachments = ()
        # Changes add up in the order in which they were made.
        rows, self._carried = [*self._carried, *state], []
        assigned = [(r, batch) for r in record.readers for batch in record.splits(r)]
        # What is taken here is gone from memory; an abort lists it again.
        quarantined, released = self._returned_splits.take()
        # JSON has only texts for keys.
        parts = {str(reader): reader for reader in record.readers}
        header = CheckpointHeader(
            kind="delta",
            checkpoint=ref.checkpoint,
            epoch=ref.epoch,
            lineage=parent.lineage,
            parent_checkpoint=parent.ref.checkpoint,
            parent_epoch=parent.ref.epoch,
            parent_checksum=parent.checksum,
            enumerator=self._source.name,
            split_version=self._source.split_serializer.version,
            state_version=self._source.state_serializer.version,
            created=created,
            assigned_splits=rows_of(batch for _, batch in assigned),
            state_rows=rows_of(rows),
            attachments=attachments,
            attempts=dict(self._returned_splits.attempts),
            quarantined=quarantined,
            budgets={n: budgets[r] for n, r in parts.items() if r in budgets},
            sent={n: stream for n, r in parts.items() if (stream := record.stream(r))},
            waiting={
                # Events alone make no task: these wait for the reader's next splits.
                str(r): record.events(r)
                for r in sorted(record.sent)
                if not record.has_part(r)
            },
            counted=dict(self._flight.counted),
            cursors=dict(self._enumerator.cursors()),
            orders=self._orders.contained,
            released=released,
        )
        checkpoint = Checkpoint(header, self._split_schema, state[0].schema, assigned, rows)
        # Here, under the lock, since the next cut names this one by its checksum.
        return self._flight.cut(checkpoint.signed())

    def _continue_parts(self, record: CheckpointRecord) -> None:
        """Assign to readers what they leave of parts with a budget, unknown as it is."""
        for reader, origin in self._flight.continuing.items():
            # What an aborted checkpoint has continued is in the open record already.
            if any(c.origin == origin.ref for c in record.continuations(reader)):
                continue
            # First in its part: what is left is older than what was assigned since.
            whole = Continuation.after(origin, None)
            record.sent.setdefault(reader, []).insert(0, whole)

    def abort(self, ref: CheckpointRef) -> list[CheckpointRecord]:
        """Take back `ref` and what was cut after it, newest first; the next cut has all of it.

        By id, never "the last one". Whether it was published makes no difference. Under the lock.
        """
        aborted = self._flight.abort(ref)
        for record in aborted:
            header = record.checkpoint.header
            # Whole snapshots supersede one another; changes add up.
            if self._source.snapshots_are_changes:
                self._carried = [*record.checkpoint.state, *self._carried]
                self._attachments = [*header.attachments, *self._attachments]
            self._returned_splits.list_again(header.quarantined, header.released)
            self._enumerator.notify_checkpoint_aborted(header.checkpoint)
        return aborted
