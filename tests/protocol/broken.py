"""Coordinators with one planted bug each. The simulation has to catch every one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pyspark_sluice.checkpoint_meta.attachments import Attachments
from pyspark_sluice.checkpoint_meta.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.orders import Order
from pyspark_sluice.checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.retention import Retention
from pyspark_sluice.enumerator.acknowledgements import Acknowledgements
from pyspark_sluice.enumerator.applied_orders import AppliedOrders
from pyspark_sluice.enumerator.context import CoordinatorContext
from pyspark_sluice.enumerator.coordinator import Coordinator
from pyspark_sluice.enumerator.cut import CheckpointCutter
from pyspark_sluice.enumerator.events import Inboxes
from pyspark_sluice.enumerator.in_flight import CutAhead, InFlight
from pyspark_sluice.enumerator.open_coordinator import OpenCoordinator
from pyspark_sluice.enumerator.restore import RestoredState
from pyspark_sluice.enumerator.room import BatchLimits, BatchRoom
from pyspark_sluice.enumerator.tracker import SplitAssignmentTracker
from pyspark_sluice.enumerator.upkeep import Upkeep

Opened = OpenCoordinator[Any, Any]


class Planted(Coordinator[Any, Any]):
    """Puts a broken part in the place of a sound one, before anything happens."""

    def _build(
        self, restored: RestoredState[Any], flight: InFlight, attachments: Attachments
    ) -> Opened:
        opened = super()._build(restored, flight, attachments)
        self.plant(opened)
        return opened

    def plant(self, opened: Opened) -> None:
        """Break it."""
        raise NotImplementedError


# Bases and what is beside them --------------------------------------------------------------


class BaseOfALaterState(Planted):
    """Writes a base from what the enumerator knows then, not from what it knew at the cut."""

    def plant(self, opened: Opened) -> None:
        opened.upkeep.__class__ = _WritesTheLatest


class _WritesTheLatest(Upkeep):
    def _write(self, due: Any) -> None:
        frozen = self._enumerator.freeze_state()
        super()._write(type(due)(due.head, due.quarantined, frozen))


class DeletesWhatBasesReferTo(Planted):
    """Lets every run go that this incarnation has merged, whatever older bases say."""

    def plant(self, opened: Opened) -> None:
        opened.upkeep._retention.__class__ = _SeesNoReference


class _SeesNoReference(Retention):
    def _all_referred(self) -> frozenset[str]:
        return frozenset()


# Durability and restore ---------------------------------------------------------------------


class OffsetBeforePublish(Planted):
    """Hands out the offset first and writes the checkpoint when it next has a moment."""

    def plant(self, opened: Opened) -> None:
        opened.__class__ = _WritesLater


class _WritesLater(Opened):
    _unwritten: Checkpoint | None = None

    def _publish(self, ahead: CutAhead) -> None:
        self._unwritten = ahead.checkpoint
        self.history._remember(ahead.checkpoint)
        self.flight.is_published = True

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

    def snapshot_state(self, checkpoint_id: int) -> Any:
        state = self._enumerator.snapshot_state(checkpoint_id)
        self._enumerator.plan_batch(BatchRoom(BatchLimits(bytes=2)))
        return state

    def cursors(self) -> Any:
        return self._enumerator.cursors()

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._enumerator.notify_checkpoint_aborted(checkpoint_id)


class CommitCountedTwice(Planted):
    """Forgets, between two looks at the reader commits, which it has counted."""

    def plant(self, opened: Opened) -> None:
        opened.acknowledgements.__class__ = _Forgetful


class _Forgetful(Acknowledgements[Any]):
    def take_in(self, ref: CheckpointRef) -> None:
        if ref in self._open:
            self._open[ref].clear()
        super().take_in(ref)


class CommitForgottenAtRestart(Coordinator[Any, Any]):
    """Believes that what stands in the restored checkpoint includes its reader commits."""

    def _expect(self, opened: Opened, newest: CheckpointRef, restored: RestoredState[Any]) -> None:
        if newest == opened.flight.running:
            super()._expect(opened, newest, restored)


class OrphanForParent(Coordinator[Any, Any]):
    """Finds checkpoints by their id, whatever the epoch."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._history = _ById(self._store)


class _ById(CheckpointHistory):
    def load(self, ref: CheckpointRef) -> Checkpoint:
        same_id = [known for known in self.checkpoints() if known.checkpoint == ref.checkpoint]
        return super().load(same_id[0] if same_id else ref)


class OrphanGoesOn(Coordinator[Any, Any]):
    """Restores the newest checkpoint that descends from Spark's, be it handed out or not."""

    def _open(self, complete: CheckpointRef, running: CheckpointRef | None = None) -> Opened:
        if self._opened is None and running is None and complete != NO_CHECKPOINT:
            for ref in self._history.checkpoints():
                if self._history.load(ref).header.parent == complete:
                    opened = super()._open(ref)
                    opened.flight.complete = complete
                    # Lest a gateway that stays closed gives it away: the rows have to tell.
                    for checkpoint_id in list(opened.context._closed):
                        opened.context.open(checkpoint_id)
                    return opened
        return super()._open(complete, running)


# Several checkpoints in flight ----------------------------------------------------------------


class GatewaysLeftOpen(Planted):
    """Never closes a gateway: events pass the cut."""

    def plant(self, opened: Opened) -> None:
        opened.context.__class__ = _NeverCloses


class _NeverCloses(CoordinatorContext[Any]):
    def close(self, checkpoint_id: int) -> None:
        """Not at all."""


class OpenedByAnyReader(Planted):
    """The first reader that acknowledges opens the gateways of all."""

    def plant(self, opened: Opened) -> None:
        opened.context.__class__ = _OpensAll


class _OpensAll(CoordinatorContext[Any]):
    def acknowledge(self, reader: int, checkpoint_id: int) -> None:
        self.open(checkpoint_id)


class OnlyOneClosed(Planted):
    """Knows one closed checkpoint at a time: closing the next one releases what is held."""

    def plant(self, opened: Opened) -> None:
        opened.context.__class__ = _ClosesOne


class _ClosesOne(CoordinatorContext[Any]):
    def close(self, checkpoint_id: int) -> None:
        for older in list(self._closed):
            self.open(older)
        super().close(checkpoint_id)

    def open(self, checkpoint_id: int) -> None:
        # Whatever completes, the one that is closed is opened.
        for closed in list(self._closed):
            super().open(closed)

    def acknowledge(self, reader: int, checkpoint_id: int) -> None:
        for closed in self._closed:
            super().acknowledge(reader, closed)


class CutOverHeldEvents(Planted):
    """Cuts while events are held, without a word about them in the checkpoint."""

    def plant(self, opened: Opened) -> None:
        opened.context.__class__ = _HidesWhatIsHeld


class _HidesWhatIsHeld(CoordinatorContext[Any]):
    @property
    def held_events(self) -> int:
        return 0


class TrackerNotRotated(Planted):
    """The cut copies what was assigned, and leaves it to the next one as well."""

    def plant(self, opened: Opened) -> None:
        opened.context.tracker.__class__ = _NeverRotates


class _NeverRotates(SplitAssignmentTracker[Any]):
    def on_checkpoint(self, checkpoint_id: int) -> Mapping[int, Sequence[Any]]:
        assigned = super().on_checkpoint(checkpoint_id)
        self.record(assigned)
        return assigned


class AbortOfTheLast(Planted):
    """Takes back the last checkpoint that was handed out, not the one it is told to."""

    def plant(self, opened: Opened) -> None:
        opened.cutter.__class__ = _AbortsTheLast


class _AbortsTheLast(CheckpointCutter[Any, Any]):
    _cuts: list[Checkpoint] | None = None

    def cut(self, *arguments: Any) -> Checkpoint:
        self._cuts = [*(self._cuts or []), super().cut(*arguments)][-2:]
        return self._cuts[-1]

    def abort(self, checkpoint: Checkpoint) -> None:
        assert self._cuts is not None
        super().abort(self._cuts[0])
        # Lest the protocol finds it out by a gateway that stays closed: the rows have to tell.
        self._context.open(checkpoint.ref.checkpoint)


class AbortForgotten(Planted):
    """What was cut and is not handed out is dropped, and what it held with it."""

    def plant(self, opened: Opened) -> None:
        opened.cutter.__class__ = _ForgetsAborts


class _ForgetsAborts(CheckpointCutter[Any, Any]):
    def abort(self, checkpoint: Checkpoint) -> None:
        self._context.open(checkpoint.ref.checkpoint)


class CountedAfterTheCut(Planted):
    """A checkpoint claims commits of the one before it that come only after its cut."""

    def plant(self, opened: Opened) -> None:
        opened.cutter.__class__ = _ClaimsAll


class _ClaimsAll(CheckpointCutter[Any, Any]):
    def cut(self, *arguments: Any) -> Checkpoint:
        parent, ref, created, _ = arguments
        return super().cut(parent, ref, created, {})


class CountedBeforeTheCutAndAfter(Planted):
    """A checkpoint does not say which commits of the one before it are in it."""

    def plant(self, opened: Opened) -> None:
        opened.cutter.__class__ = _ClaimsNothing


class _ClaimsNothing(CheckpointCutter[Any, Any]):
    def cut(self, *arguments: Any) -> Checkpoint:
        parent, ref, created, counted = arguments
        return super().cut(parent, ref, created, {name: [] for name in counted})


class CutBeforeTheLastIsCounted(Planted):
    """Cuts the next checkpoint but one while commits of the one before are not counted."""

    def plant(self, opened: Opened) -> None:
        opened.acknowledgements.__class__ = _CountsOnlyTheRunning


class _CountsOnlyTheRunning(Acknowledgements[Any]):
    def expect(self, ref: CheckpointRef, counted: Any = ()) -> None:
        self._open.clear()
        super().expect(ref, counted)


class EventsWithoutTask(Planted):
    """Writes events for readers that have no splits in the checkpoint, and no task to get them."""

    def plant(self, opened: Opened) -> None:
        opened.context.inboxes.__class__ = _Careless


class _Careless(Inboxes):
    def take(self, readers: Any) -> Mapping[str, list[Any]]:
        taken = self.waiting
        self._events = {}
        return taken


# Orders -------------------------------------------------------------------------------------


class OrdersAreNotWrittenDown(Planted):
    """Carries orders out, and its checkpoints do not say so."""

    def plant(self, opened: Opened) -> None:
        opened.orders.__class__ = _SaysNothing


class _SaysNothing(AppliedOrders):
    def take(self) -> int:
        return super().take() and 0


class OrdersAreTakenAsRead(Planted):
    """Its checkpoints say that orders are carried out, which they are not."""

    def plant(self, opened: Opened) -> None:
        opened.orders.__class__ = _DoesNothing


class _DoesNothing(AppliedOrders):
    def _carry_out(self, order: Order) -> None:
        """Nothing."""


IN_FLIGHT = (
    GatewaysLeftOpen,
    OpenedByAnyReader,
    OnlyOneClosed,
    CutOverHeldEvents,
    TrackerNotRotated,
    AbortOfTheLast,
    AbortForgotten,
    CountedAfterTheCut,
    CountedBeforeTheCutAndAfter,
    OrphanGoesOn,
)
"""Caught by nothing but rows: see `RowsOnly`."""

BROKEN = (
    BaseOfALaterState,
    DeletesWhatBasesReferTo,
    OffsetBeforePublish,
    CutOutsideTheLock,
    CommitCountedTwice,
    CommitForgottenAtRestart,
    OrphanForParent,
    CutBeforeTheLastIsCounted,
    EventsWithoutTask,
    OrdersAreNotWrittenDown,
    OrdersAreTakenAsRead,
)
