"""Coordinators with one planted bug each. The simulation has to catch every one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.continuation import Continuation
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.documents.orders import Order
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import continuations_of, splits_of
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.retention import Retention
from pyspark_sluice.enumerator.batch_budget import BatchBudget, BatchLimits
from pyspark_sluice.enumerator.coordinator.acknowledgements import Acknowledgements
from pyspark_sluice.enumerator.coordinator.applied_orders import AppliedOrders
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.coordinator.cut import CheckpointCutter
from pyspark_sluice.enumerator.coordinator.in_flight import (
    CheckpointRecord,
    CheckpointsInFlight,
    Stage,
)
from pyspark_sluice.enumerator.coordinator.restore import RestoredState
from pyspark_sluice.enumerator.coordinator.running_coordinator import RunningCoordinator
from pyspark_sluice.enumerator.coordinator.upkeep import Upkeep

Opened = RunningCoordinator[Any, Any]


class Planted(Coordinator[Any, Any]):
    """Puts a broken part in the place of a sound one, before anything happens."""

    def _build(
        self, restored: RestoredState[Any], flight: CheckpointsInFlight, attachments: Attachments
    ) -> Opened:
        opened = super()._build(restored, flight, attachments)
        self.plant(opened)
        return opened

    def plant(self, opened: Opened) -> None:
        """Break it."""
        raise NotImplementedError


# Bases and what is next to them -------------------------------------------------------------


class BaseOfALaterState(Planted):
    """Writes a base from what the enumerator knows then, not from what it knew at the cut."""

    def plant(self, opened: Opened) -> None:
        opened.upkeep.__class__ = _WritesTheLatest


class _WritesTheLatest(Upkeep):
    def _write(self, due: Any) -> None:
        frozen = self._enumerator.freeze_state()
        super()._write(type(due)(due.head, due.quarantined, frozen))


class DeletesWhatBasesReferTo(Planted):
    """Deletes every run that this incarnation has merged, in spite of older bases."""

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

    def snapshot_state(self, checkpoint_id: int) -> Any:
        state = self._enumerator.snapshot_state(checkpoint_id)
        self._enumerator.plan_batch(BatchBudget(BatchLimits(bytes=2)))
        return state

    def cursors(self) -> Any:
        return self._enumerator.cursors()

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._enumerator.notify_checkpoint_aborted(checkpoint_id)


class CommitCountedTwice(Planted):
    """Counts a commit at each look that finds it."""

    def plant(self, opened: Opened) -> None:
        opened.acknowledgements.__class__ = _Forgetful


class _Forgetful(Acknowledgements[Any]):
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


# Several checkpoints in flight ----------------------------------------------------------------


class GatewayNeverCloses(Coordinator[Any, Any]):
    """Resolves a continuation without its reader's commit: where that was to stop."""

    def assignments(self, start: CheckpointRef, end: CheckpointRef) -> list[Checkpoint]:
        return [self._resolved(found) for found in super().assignments(start, end)]

    def _resolved(self, checkpoint: Checkpoint) -> Checkpoint:
        assigned, serializer = list(checkpoint.assigned), self._source.split_serializer
        for name, continuations in checkpoint.header.continuations.items():
            for continuation in continuations:
                file = FileVersion(continuation.split.split("@")[0], 0, 0)
                split = FileSplit(file, self._told_end(continuation, int(name)), continuation.stop)
                assigned.append((int(name), serializer.serialize([split])))
        header = checkpoint.header.model_copy(update={"continuations": {}})
        return replace(checkpoint, header=header, assigned=assigned)

    def _told_end(self, continuation: Continuation, reader: int) -> int:
        origin = self.history.load(continuation.origin)
        ends = [split.end for split in splits_of(origin, reader, self._source.split_serializer)]
        ends += [earlier.stop for earlier in continuations_of(origin, reader)]
        return int(ends[continuation.index])


class OpensOnTheFirstCommit(Planted):
    """The first reader that commits opens the gateways of all."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _OpensAll


class _OpensAll(CheckpointsInFlight):
    def acknowledge(self, ref: CheckpointRef, reader: int) -> bool:
        is_news = super().acknowledge(ref, reader)
        record = self.find(ref)
        if record is not None:
            record.committed.update(record.readers)
        return is_news


class OpensTheNextOne(Planted):
    """A commit of n opens n+1 for the same reader as well."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _OpensTwo


class _OpensTwo(CheckpointsInFlight):
    def acknowledge(self, ref: CheckpointRef, reader: int) -> bool:
        is_news = super().acknowledge(ref, reader)
        for record in self.ahead[:1]:
            record.committed.add(reader)
        return is_news


class CutOmitsHeldEvents(Planted):
    """A checkpoint has only what its readers may have at the cut."""

    def plant(self, opened: Opened) -> None:
        opened.cutter.__class__ = _OmitsWhatIsHeld


class _OmitsWhatIsHeld(CheckpointCutter[Any, Any]):
    def cut(self, created: int) -> CheckpointRecord:
        record = self._flight.open_record
        for reader in list(record.sent):
            if self._flight.held_under(reader, record) is not None:
                del record.sent[reader]
        return super().cut(created)


class CutTakesHeldEventsTwice(Planted):
    """A checkpoint has what is held, and so does the next one."""

    def plant(self, opened: Opened) -> None:
        opened.cutter.__class__ = _TakesTwice


class _TakesTwice(CheckpointCutter[Any, Any]):
    def cut(self, created: int) -> CheckpointRecord:
        before = self._flight.open_record
        held = {
            reader: list(events)
            for reader, events in before.sent.items()
            if self._flight.held_under(reader, before) is not None
        }
        record = super().cut(created)
        self._flight.open_record.sent.update(held)
        return record


class RecordsNotRotated(Planted):
    """The cut copies what was sent, and leaves it to the next one as well."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _NeverRotates


class _NeverRotates(CheckpointsInFlight):
    def cut(self, checkpoint: Checkpoint) -> CheckpointRecord:
        record = super().cut(checkpoint)
        self.open_record.sent = {reader: list(events) for reader, events in record.sent.items()}
        return record


class AbortOfTheLast(Planted):
    """Takes back the last checkpoint that was cut, not the given one and all after it."""

    def plant(self, opened: Opened) -> None:
        opened.cutter.__class__ = _AbortsTheLast


class _AbortsTheLast(CheckpointCutter[Any, Any]):
    def abort(self, ref: CheckpointRef) -> list[CheckpointRecord]:
        last = self._flight.ahead[-1].ref
        assert last is not None
        aborted = super().abort(last)
        # What is left is forgotten, as if it had been taken back.
        left = self._flight.ahead
        for record in left:
            self._flight._records.remove(record)
        return [*aborted, *reversed(left)]


class AbortForgotten(Planted):
    """What was cut and is not handed out is dropped, and what was sent under it."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _ForgetsAborts


class _ForgetsAborts(CheckpointsInFlight):
    def abort(self, ref: CheckpointRef) -> list[CheckpointRecord]:
        aborted = super().abort(ref)
        self.open_record.sent.clear()
        return aborted


class CountedAfterTheCut(Planted):
    """A checkpoint claims commits of those before it that come only after its cut."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _ClaimsAll


class _ClaimsAll(CheckpointsInFlight):
    @property
    def counted(self) -> dict[str, list[int]]:
        return {}


class CountedBeforeTheCutAndAfter(Planted):
    """A checkpoint does not say which commits of those before it are in it."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _ClaimsNothing


class _ClaimsNothing(CheckpointsInFlight):
    @property
    def counted(self) -> dict[str, list[int]]:
        return {name: [] for name in super().counted}


class RestoreForgetsWhatWasHeld(Coordinator[Any, Any]):
    """A restored record has no continuations: what they go on with comes back, too."""

    def _records(self, *arguments: Any) -> list[CheckpointRecord]:
        records = super()._records(*arguments)
        for record in records:
            for reader, events in record.sent.items():
                record.sent[reader] = _without_continuations(record, reader, events)
        return records


def _without_continuations(
    record: CheckpointRecord, reader: int, events: Iterable[Any]
) -> list[Any]:
    gone = record.continuations(reader)
    return [event for event in events if event not in gone]


class EventsWithoutTask(Planted):
    """Writes events for readers that have nothing to read, and no task to get them."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _Careless


class _Careless(CheckpointsInFlight):
    def cut(self, checkpoint: Checkpoint) -> CheckpointRecord:
        record = super().cut(checkpoint)
        checkpoint.header.events.update(
            {str(r): self.open_record.events(r) for r in self.open_record.sent}
        )
        self.open_record.sent = {}
        return record


class RemainderToBoth(Planted):
    """What a continuation goes on with is assigned again as well."""

    def plant(self, opened: Opened) -> None:
        opened.flight.__class__ = _SeesNoContinuation


class _SeesNoContinuation(CheckpointsInFlight):
    def continued(self, ref: CheckpointRef, reader: int) -> set[int]:
        return set()


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
    GatewayNeverCloses,
    OpensOnTheFirstCommit,
    OpensTheNextOne,
    CutOmitsHeldEvents,
    CutTakesHeldEventsTwice,
    RecordsNotRotated,
    AbortOfTheLast,
    AbortForgotten,
    CommitCountedTwice,
    CountedAfterTheCut,
    CountedBeforeTheCutAndAfter,
    RestoreForgetsWhatWasHeld,
    RemainderToBoth,
    OrphanGoesOn,
)
"""Caught by nothing but rows: see `RowsOnly`."""

OF_CONTINUATIONS = (GatewayNeverCloses, RestoreForgetsWhatWasHeld, RemainderToBoth)
"""They break what is done with continuations and nothing else, so a query over files is sound."""

BROKEN = (
    BaseOfALaterState,
    DeletesWhatBasesReferTo,
    OffsetBeforePublish,
    CutOutsideTheLock,
    CommitForgottenAtRestart,
    OrphanForParent,
    EventsWithoutTask,
    OrdersAreNotWrittenDown,
    OrdersAreTakenAsRead,
)
