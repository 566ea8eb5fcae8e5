"""Planted bugs of claims, clocks, answers of the store, orders and optional work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark_sluice.checkpoint_meta.documents import orders
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.epochs import check_not_fenced
from pyspark_sluice.checkpoint_meta.documents.heartbeat import Heartbeat
from pyspark_sluice.checkpoint_meta.documents.orders import Order
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.contract import RetryingStateStore, StateStore
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.in_flight import CheckpointRecord, Stage
from pyspark_sluice.enumerator.coordinator.upkeep import OptionalWork
from pyspark_sluice.enumerator.files.cleaning.source_cleanup import SourceCleanup
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.protocol.planted import Opened, Planted


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


class HeartbeatByTheWallClock(Planted):
    """Writes the next heartbeat when the clock on the wall says so."""

    def plant(self, opened: Opened) -> None:
        heartbeat = Heartbeat(opened.store, opened.flight.epoch, self._clock, self._clock)
        opened.heartbeat = heartbeat


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
