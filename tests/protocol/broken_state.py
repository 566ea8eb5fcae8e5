"""Planted bugs of durability, restore, bases and orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.orders import Order
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.retention import Retention
from pyspark_sluice.enumerator.batch_budget import BatchBudget, BatchLimits
from pyspark_sluice.enumerator.coordinator.acknowledgements import Acknowledgements
from pyspark_sluice.enumerator.coordinator.applied_orders import AppliedOrders
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.in_flight import (
    CheckpointRecord,
    Stage,
)
from pyspark_sluice.enumerator.coordinator.upkeep import Upkeep
from pyspark_sluice.tests.protocol.planted import Opened, Planted


class BaseOfALaterState(Upkeep):
    """Writes a base from what the enumerator knows then, not from what it knew at the cut."""

    part = "upkeep"

    def _write(self, due: Any) -> None:
        frozen = self._enumerator.freeze_state()
        super()._write(type(due)(due.head, due.quarantined, frozen))


class DeletesWhatBasesReferTo(Retention):
    """Deletes every run that this incarnation has merged, in spite of older bases."""

    part = "upkeep._retention"

    def _all_referred(self) -> frozenset[str]:
        return frozenset()


class OffsetBeforePublish(Opened):
    """Hands out the offset first and writes the checkpoint when it next has a moment."""

    part = "__class__"

    _unwritten: Checkpoint | None = None

    def _publish(self, record: CheckpointRecord) -> None:
        assert record.checkpoint is not None
        self._unwritten = record.checkpoint
        self.history._remember(record.checkpoint)
        record.stage, record.is_writing = Stage.PUBLISHED, False

    def background(self) -> None:
        if self._unwritten is not None:
            self.history.publish(self._unwritten)
            self._unwritten = None
        super().background()


class CutOutsideTheLock(Planted):
    """Takes the snapshot, lets another thread in, and only then rotates and closes."""

    def plant(self, opened: Opened) -> None:
        opened.cutter._enumerator = cast(Any, _Interrupted(opened.enumerator))


class _Interrupted:
    def __init__(self, enumerator: Any) -> None:
        self._enumerator = enumerator

    def part_budgets(self, checkpoint_id: int, readers: Sequence[int]) -> Any:
        return self._enumerator.part_budgets(checkpoint_id, readers)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        state = self._enumerator.snapshot_state(checkpoint_id)
        self._enumerator.plan_batch(BatchBudget(BatchLimits(bytes=2)))
        return state

    def cursors(self) -> Any:
        return self._enumerator.cursors()

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._enumerator.notify_checkpoint_aborted(checkpoint_id)


class CommitCountedTwice(Acknowledgements[Any]):
    """Counts a commit at each look that finds it."""

    part = "acknowledgements"

    def _take_in(self, record: CheckpointRecord) -> None:
        record.committed.clear()
        super()._take_in(record)


class CommitForgottenAtRestart(Coordinator[Any, Any]):
    """Believes that the restored checkpoint includes its own reader commits."""

    def _records(self, newest: CheckpointRef, *others: Any) -> list[CheckpointRecord]:
        records = super()._records(newest, *others)
        return [record for record in records if record.stage is Stage.HANDED_OUT]


class OrphanForParent(Coordinator[Any, Any]):
    """Finds checkpoints by their id in any epoch."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.history = _ById(self._store)


class _ById(CheckpointHistory):
    def load(self, ref: CheckpointRef) -> Checkpoint:
        same_id = [known for known in self.checkpoints() if known.checkpoint == ref.checkpoint]
        return super().load(same_id[0] if same_id else ref)


class OrphanGoesOn(Coordinator[Any, Any]):
    """Restores the newest checkpoint that descends from Spark's, be it handed out or not."""

    def _open(self, complete: CheckpointRef, running: CheckpointRef | None = None) -> Opened:
        if self._opened is None and running is None and complete != NO_CHECKPOINT:
            for ref in self.history.checkpoints():
                if self.history.load(ref).header.parent == complete:
                    opened = super()._open(ref)
                    opened.flight.latest_completed_identity = self.history.load(complete).identity
                    # The rows have to show it, not a commit that never comes.
                    opened.flight.remove(ref)
                    return opened
        return super()._open(complete, running)


class SkippedBatchIsRead(Acknowledgements[Any]):
    """Counts a batch as read that a sink has skipped: it remembers one of that number."""

    part = "acknowledgements"

    def _check_sink(self, record: CheckpointRecord, missing: Sequence[int]) -> None:
        """Nothing."""


class OrdersAreNotWrittenDown(Planted):
    """Carries orders out, and its checkpoints do not say so."""

    def plant(self, opened: Opened) -> None:
        opened.cutter._orders = cast(Any, _SaysNothing())
        opened.orders.__class__ = _WantsNothing


class _SaysNothing:
    contained = 0


class _WantsNothing(AppliedOrders):
    wants_checkpoint = False


class OrdersAreTakenAsRead(AppliedOrders):
    """Its checkpoints say that orders are carried out, which they are not."""

    part = "orders"

    def _carry_out(self, order: Order) -> None:
        """Nothing."""
