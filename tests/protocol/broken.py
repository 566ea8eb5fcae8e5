"""Coordinators with one planted bug each. The simulation has to catch every one of them."""

from __future__ import annotations

from typing import Any

from pyspark_sluice.checkpoint_meta.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.reference import CheckpointRef
from pyspark_sluice.enumerator.acknowledgements import Acknowledgements
from pyspark_sluice.enumerator.context import CoordinatorContext
from pyspark_sluice.enumerator.coordinator import Coordinator
from pyspark_sluice.enumerator.cut import CheckpointCutter
from pyspark_sluice.enumerator.events import Inboxes
from pyspark_sluice.enumerator.restore import RestoredState
from pyspark_sluice.enumerator.room import BatchLimits, BatchRoom


class OffsetBeforePublish(Coordinator[Any, Any]):
    """Hands out the offset first and writes the checkpoint when it next has a moment."""

    _unwritten: Checkpoint | None = None

    def _publish(self, checkpoint: Checkpoint, taken: BatchRoom) -> None:
        self._unwritten = checkpoint
        self._history._remember(checkpoint)
        self._cutter.published()
        self._next = checkpoint.ref

    def _background(self) -> None:
        if self._unwritten is not None:
            self._history.publish(self._unwritten)
            self._unwritten = None
        super()._background()


class CutOutsideTheLock(Coordinator[Any, Any]):
    """Takes the snapshot, lets another thread in, and only then rotates and closes."""

    def _build(self, restored: RestoredState[Any]) -> None:
        super()._build(restored)
        self._cutter._enumerator = _Interrupted(self._enumerator)  # type: ignore[assignment]


class _Interrupted:
    def __init__(self, enumerator: Any) -> None:
        self._enumerator = enumerator

    def snapshot_state(self, checkpoint_id: int) -> Any:
        state = self._enumerator.snapshot_state(checkpoint_id)
        self._enumerator.wanted.append(0)
        self._enumerator.plan_batch(BatchRoom(BatchLimits(bytes=2)))
        return state

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._enumerator.notify_checkpoint_aborted(checkpoint_id)


class CommitCountedTwice(Coordinator[Any, Any]):
    """Forgets, between two looks at the reader commits, which it has counted."""

    def _build(self, restored: RestoredState[Any]) -> None:
        super()._build(restored)
        self._acknowledgements.__class__ = _Forgetful


class _Forgetful(Acknowledgements[Any]):
    def take_in(self, ref: CheckpointRef) -> None:
        self._counted.clear()
        super().take_in(ref)


class CommitForgottenAtRestart(Coordinator[Any, Any]):
    """Believes that what stands in the restored checkpoint includes its reader commits."""

    def _begin(self, ref: CheckpointRef) -> None:
        was_begun = self._begun
        super()._begin(ref)
        if not was_begun:
            self._acknowledgements._completed = ref


class OrphanForParent(Coordinator[Any, Any]):
    """Finds checkpoints by their id, whatever the epoch."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._history = _ById(self._store)


class _ById(CheckpointHistory):
    def load(self, ref: CheckpointRef) -> Checkpoint:
        same_id = [known for known in self.checkpoints() if known.checkpoint == ref.checkpoint]
        return super().load(same_id[0] if same_id else ref)


class AbortOfTheLast(Coordinator[Any, Any]):
    """Undoes the last checkpoint it knows of, not the one that could not be published."""

    def _build(self, restored: RestoredState[Any]) -> None:
        super()._build(restored)
        self._cutter.__class__ = _AbortsTheLast


class _AbortsTheLast(CheckpointCutter[Any, Any]):
    _latest: Checkpoint | None = None
    _last: Checkpoint | None = None

    def cut(self, parent: CheckpointRef, ref: CheckpointRef, created: int) -> Checkpoint:
        self._latest = super().cut(parent, ref, created)
        return self._latest

    def published(self) -> None:
        self._last = self._latest
        super().published()

    def abort(self, checkpoint: Checkpoint) -> None:
        super().abort(self._last or checkpoint)


class GatewaysLeftOpen(Coordinator[Any, Any]):
    """Marks checkpoints and never closes: events pass the cut."""

    def _build(self, restored: RestoredState[Any]) -> None:
        super()._build(restored)
        self._context.__class__ = _NeverCloses


class _NeverCloses(CoordinatorContext[Any]):
    def mark_and_close(self, checkpoint_id: int) -> None:
        for gateway in self.gateways:
            gateway.mark(checkpoint_id)


class EventsWithoutTask(Coordinator[Any, Any]):
    """Writes events for readers that have no splits in the checkpoint, and no task to get them."""

    def _build(self, restored: RestoredState[Any]) -> None:
        super()._build(restored)
        self._context.inboxes.__class__ = _Careless


class _Careless(Inboxes):
    def empty(self) -> Any:
        assigned = [(r, batch) for r in sorted(self._splits) for batch in self._splits[r]]
        events = {str(reader): values for reader, values in sorted(self._events.items())}
        self._splits, self._events = {}, {}
        return assigned, events


BROKEN = (
    OffsetBeforePublish,
    CutOutsideTheLock,
    CommitCountedTwice,
    CommitForgottenAtRestart,
    OrphanForParent,
    AbortOfTheLast,
    GatewaysLeftOpen,
    EventsWithoutTask,
)
