"""Planted bugs of durability, restore, bases, claims, clocks, answers of the store and orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from pyspark_sluice.checkpoint_meta.documents import orders
from pyspark_sluice.checkpoint_meta.documents.attachments import Attachment, Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.epochs import check_not_fenced
from pyspark_sluice.checkpoint_meta.documents.heartbeat import Heartbeat
from pyspark_sluice.checkpoint_meta.documents.orders import Order
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.retention import Retention
from pyspark_sluice.checkpoint_meta.stores.contract import RetryingStateStore, StateStore
from pyspark_sluice.enumerator.batch_budget import BatchBudget, BatchLimits
from pyspark_sluice.enumerator.coordinator.acknowledgements import Acknowledgements
from pyspark_sluice.enumerator.coordinator.applied_orders import AppliedOrders
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.in_flight import CheckpointRecord, Stage
from pyspark_sluice.enumerator.coordinator.running_coordinator import RunningCoordinator
from pyspark_sluice.enumerator.coordinator.upkeep import OptionalWork, Upkeep
from pyspark_sluice.enumerator.files.cleaning.source_cleanup import SourceCleanup
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.errors import FencedError

Opened = RunningCoordinator[Any, Any]


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


class TrustsItsMemory(Attachments):
    """Refers to objects that it has written, which a restore may have taken away."""

    part = "upkeep._parts.attachments"

    def check(self, attachments: Sequence[Attachment]) -> None:
        """Nothing."""


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


class CutOutsideTheLock(Coordinator[Any, Any]):
    """Takes the snapshot, lets another thread in, and only then rotates and closes."""

    def _build(self, *arguments: Any) -> Opened:
        opened = super()._build(*arguments)
        opened.cutter._enumerator = cast(Any, _Interrupted(opened.enumerator))
        return opened


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


class OrdersAreNotWrittenDown(Coordinator[Any, Any]):
    """Carries orders out, and its checkpoints do not say so."""

    def _build(self, *arguments: Any) -> Opened:
        opened = super()._build(*arguments)
        opened.cutter._orders = cast(Any, SimpleNamespace(contained=0))
        opened.orders.__class__ = _WantsNothing
        return opened


class _WantsNothing(AppliedOrders):
    wants_checkpoint = False


class OrdersAreTakenAsRead(AppliedOrders):
    """Its checkpoints say that orders are carried out, which they are not."""

    part = "orders"

    def _carry_out(self, order: Order) -> None:
        """Nothing."""


class FenceByNumbers(Coordinator[Any, Any]):
    """Takes a newest claim of its own number for its own."""

    def _check_still_ours(self, epoch: int) -> None:
        try:
            check_not_fenced(self._store, epoch)
        except FencedError as error:
            self._threads.fail(error)
            raise


class HandsOutWithoutALook(Opened):
    """Hands out what was cut ahead without a look whether it still owns the state."""

    part = "__class__"

    def _hand_out(self, record: CheckpointRecord) -> CheckpointRef:
        with self._lock:
            record.stage = Stage.HANDED_OUT
            record.is_of_this_run = True
            self.upkeep.handed_out(record)
            self.threads.wake.set()
            return record.ref


class ForgetsItsQuery(Coordinator[Any, Any]):
    """Does not recognize commits of its own first batch, which Spark has not written down."""

    def __init__(
        self, source: Any, store: StateStore, settings: CoordinatorSettings, *others: Any
    ) -> None:
        super().__init__(source, store, replace(settings, query_without_batches=str), *others)


class HeartbeatByTheWallClock(Coordinator[Any, Any]):
    """Writes the next heartbeat when the clock on the wall says so."""

    def _build(self, *arguments: Any) -> Opened:
        opened = super()._build(*arguments)
        flight = opened.flight
        opened.heartbeat = Heartbeat(opened.store, flight.epoch, self._clock, self._clock)
        return opened


class CleaningByTheWallClock(SourceCleanup):
    """Takes the age of a checkpoint from the clock on the wall alone."""

    part = "upkeep._cleaner"

    def _is_due(self) -> bool:
        for at, link in enumerate(self._chain):
            self._chain[at] = replace(link, since=float("-inf"))
        return super()._is_due()


class CleansWhatIsOrdered(SourceCleanup):
    """Takes files out of the source's way that an order wants read again."""

    part = "upkeep._cleaner"

    def _spare(self, contained: int) -> None:
        return


class OptionalWorkEndsTheQuery(OptionalWork):
    """Fails with a base that is not written, or an object that may not be deleted."""

    part = "upkeep.optional"

    def failed(self, work: str, error: BaseException) -> float:
        self._threads.fail(error)
        return super().failed(work, error)


class ConflictIsExistence(Coordinator[Any, Any]):
    """Takes the answer 409 for `the object exists`, also if it cannot be read."""

    def __init__(self, source: Any, store: RetryingStateStore, *others: Any) -> None:
        super().__init__(source, _TrustsConflicts(store._inner, sleep=store._sleep), *others)


class _TrustsConflicts(RetryingStateStore):
    def _publish_or_compare(self, name: str, data: bytes) -> None:
        try:
            self._inner.publish(name, data)
        except FileExistsError:
            if name in self._inner.list(name.rpartition("/")[0]) and self.read(name) == data:
                return
            raise


class OrdersFromOneAgain(Coordinator[Any, Any]):
    """Numbers orders by the folder alone, which may have been lost."""

    class Orders(orders.Orders):
        def publish(self, order: Order, contained: int = 0) -> Order:
            return super().publish(order)


class OrphanAsSavepoint(Coordinator[Any, Any]):
    """Starts from the first checkpoint that has the id, which Spark may not have taken up."""

    @staticmethod
    def taken_up(store: StateStore, number: int) -> CheckpointRef | None:
        named = (r for r in CheckpointHistory(store).checkpoints() if r.checkpoint == number)
        return min(named, key=lambda ref: ref.epoch, default=None)
