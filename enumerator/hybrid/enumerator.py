"""Runs the enumerator of the first half to its end, then that of the second.

The first half is over when it has discovered everything, nothing of it is with a reader, and it
assigns nothing although there is room. Then nothing of it can come back. The next checkpoint, which
is cut at once, holds what the second half starts with. No split of the second half is read before
that checkpoint is durable, and the first half is not opened again after it. A process that dies
before Spark has written the checkpoint into its offset log resumes in the first half.

Not here: how the state is written (`state.py`), and what a user says of the switch (`source.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from typing_extensions import override

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.hybrid_split import FIRST, SECOND, HybridSplit
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import ProtocolError
from ..api import SplitEnumerator, SplitEnumeratorContext
from ..batch_budget import BatchRoom
from ..journal import Journal
from ..large_state import FrozenState
from ..source_api import EnumeratorSource
from .state import FrozenHalf, HybridState

ResultT = TypeVar("ResultT")


class HalfContext(SplitEnumeratorContext[Any]):
    """Wraps what one half sends, and drops what it asked for once it is closed."""

    def __init__(
        self,
        outer: SplitEnumeratorContext[HybridSplit],
        half: int,
        notice: Callable[[Sequence[Any]], Callable[[], None]],
    ) -> None:
        """`notice` looks at splits before they are assigned; what it returns is called after."""
        self._outer = outer
        self._half = half
        self._notice = notice
        self._is_closed = False

    def close(self) -> None:
        """The half is over: what its calls bring is not wanted any more."""
        self._is_closed = True

    @property
    @override
    def bounded(self) -> bool:
        return self._half == FIRST or self._outer.bounded

    @property
    @override
    def journal(self) -> Journal:
        return self._outer.journal

    @property
    @override
    def store(self) -> StateStore | None:
        return self._outer.store

    @property
    @override
    def parallelism(self) -> int:
        return self._outer.parallelism

    @property
    @override
    def awaits_readers(self) -> bool:
        return self._outer.awaits_readers

    @override
    def request_parallelism(self, readers: int) -> int:
        return self._outer.request_parallelism(readers)

    @override
    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        noticed = self._notice([split for splits in assignment.values() for split in splits])
        self._outer.assign_splits(
            {
                reader: [HybridSplit(self._half, split) for split in splits]
                for reader, splits in assignment.items()
            }
        )
        noticed()

    @override
    def continue_split(
        self,
        reader: int,
        split_id: str,
        *,
        max_bytes: int | None = None,
        max_rows: int | None = None,
        stop: Any = None,
    ) -> bool:
        return self._outer.continue_split(
            reader, split_id, max_bytes=max_bytes, max_rows=max_rows, stop=stop
        )

    @override
    def send_event(self, reader: int, event: Any) -> None:
        self._outer.send_event(reader, [self._half, event])

    @override
    def signal_no_more_splits(self, reader: int) -> None:
        # The first half's readers get splits of the second.
        if self._half != FIRST:
            self._outer.signal_no_more_splits(reader)

    @override
    def call_async(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
        delay: float = 0.0,
    ) -> None:
        def handle(result: ResultT | None, error: BaseException | None) -> None:
            if not self._is_closed:
                handler(result, error)

        self._outer.call_async(call, handle, delay)

    @override
    def request_planning(self) -> None:
        self._outer.request_planning()


NAMES = ("first", "second")


class SwitchedSource(Protocol):
    """What the enumerator has to know of a hybrid source."""

    @property
    def halves(self) -> Sequence[EnumeratorSource[Any, Any]]:
        """The first source and the second."""

    def position_after(self, position: Any, splits: Sequence[Any]) -> Any:
        """The progress of the first part with `splits`."""

    def state_at(self, position: Any) -> Any:
        """The state that the second half begins with."""


class HybridEnumerator(SplitEnumerator[HybridSplit, HybridState]):
    """One of two enumerators at a time."""

    def __init__(
        self,
        context: SplitEnumeratorContext[HybridSplit],
        source: SwitchedSource,
        state: HybridState | None,
    ) -> None:
        state = state or HybridState()
        self._context = context
        self._source = source
        self._position = state.position
        self._begun_with: list[Any] = []
        """What the second half began with, until a snapshot has it."""
        self._switch: object | None = None
        """The switch that is under way; None without one, or after it was called off."""
        self._is_new = False
        """The switch is in no checkpoint yet."""
        self._enter(state.half, state.snapshots[-1] if state.snapshots else None)

    def _enter(self, half: int, state: Any) -> None:
        self._half = half
        self._inner_context = HalfContext(self._context, half, self._notice)
        source = self._source.halves[half]
        self._inner: SplitEnumerator[Any, Any] = source.create_enumerator(
            self._inner_context, state
        )

    # The switch -----------------------------------------------------------------------------

    def _notice(self, splits: Sequence[Any]) -> Callable[[], None]:
        position = self._position
        if self._half == FIRST and splits:
            position = self._source.position_after(position, splits)

        def noticed() -> None:
            self._position = position

        return noticed

    @property
    def _is_over(self) -> bool:
        """True if nothing of the first half is left, provided that it was just asked to plan."""
        return (
            self._half == FIRST
            and self._inner.has_discovered
            and not self._inner.wants_checkpoint
            and not self._context.awaits_readers
        )

    def _begin_switch(self) -> None:
        self._switch = token = object()
        find = partial(self._source.state_at, self._position)
        self._context.call_async(find, partial(self._enter_second, token))

    def _enter_second(self, token: object, state: Any, error: BaseException | None) -> None:
        if token is not self._switch:
            return
        if error is not None:
            raise error
        self._switch = None
        self._inner_context.close()
        self._inner.close()
        self._context.journal.info("hybrid", "the second half begins at %s", self._position)
        self._enter(SECOND, state)
        if state is not None and self._source.halves[SECOND].snapshots_are_changes:
            self._begun_with = [state]
        self._is_new = True
        self._inner.start()
        for reader in range(self._context.parallelism):
            self._inner.add_reader(reader)
        self._context.request_planning()

    @override
    def plan_batch(self, room: BatchRoom) -> None:
        if self._switch is not None:
            return
        self._inner.plan_batch(room)
        if self._is_over and room.is_empty:
            self._begin_switch()

    @property
    @override
    def has_discovered(self) -> bool:
        # A run that ends must not end at the seam: with nothing to read of the first half, what is
        # there is known when the second has looked.
        at_the_seam = self._half == FIRST and not self._context.awaits_readers
        return self._inner.has_discovered and not at_the_seam

    # The half that it is in -----------------------------------------------------------------

    @override
    def start(self) -> None:
        self._inner.start()

    def _own(self, splits: Sequence[HybridSplit], what: str) -> list[Any]:
        strange = [split for split in splits if split.half != self._half]
        if strange:
            raise ProtocolError(
                f"splits of the {NAMES[strange[0].half]} half {what} in the other half",
                type(self._source).__qualname__,
                f"{len(strange)} splits, such as {strange[0].split_id}",
                f"splits of the {NAMES[self._half]} half",
                "Start a new query for them.",
            )
        # What comes now is planned before the half is over.
        self._switch = None
        return [split.split for split in splits]

    @override
    def add_splits_back(self, splits: Sequence[HybridSplit], reader: int) -> None:
        self._inner.add_splits_back(self._own(splits, "were sent back"), reader)

    @override
    def requeue_splits(self, splits: Sequence[HybridSplit]) -> None:
        self._inner.requeue_splits(self._own(splits, "were requeued"))

    @override
    def forget_splits(self, splits: Sequence[HybridSplit]) -> None:
        self._inner.forget_splits(self._own(splits, "were given up"))

    @override
    def snapshot_state(self, checkpoint_id: int) -> HybridState:
        begun_with, self._begun_with = self._begun_with, []
        self._is_new = False
        snapshot = self._inner.snapshot_state(checkpoint_id)
        return HybridState(self._half, self._position, [*begun_with, snapshot])

    @override
    def freeze_state(self) -> FrozenState | None:
        frozen = self._inner.freeze_state()
        if frozen is None:
            return None
        version = self._source.halves[self._half].state_serializer.version
        return FrozenHalf(self._half, version, self._position, frozen)

    @property
    @override
    def can_improve_state(self) -> bool:
        return self._inner.can_improve_state

    @override
    def improve_state(self, attachments: Attachments) -> bool:
        return self._inner.improve_state(attachments)

    @override
    def attachments_in_use(self) -> Collection[str]:
        return self._inner.attachments_in_use()

    @override
    def add_reader(self, reader: int) -> None:
        self._inner.add_reader(reader)

    @override
    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        self._inner.handle_reader_event(reader, event_type, value)

    @override
    def add_events_back(self, events: Sequence[Any], reader: int) -> None:
        own = [event for half, event in events if half == self._half]
        if own:
            self._inner.add_events_back(own, reader)

    @override
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._inner.notify_checkpoint_complete(checkpoint_id)

    @override
    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._inner.notify_checkpoint_aborted(checkpoint_id)

    @property
    @override
    def wants_checkpoint(self) -> bool:
        return self._is_new or self._inner.wants_checkpoint

    @override
    def is_decided(self, room: BatchRoom) -> bool:
        return self._inner.is_decided(room)

    @override
    def backlog(self) -> Mapping[str, Any]:
        return {"half": NAMES[self._half], **self._inner.backlog()}

    @override
    def cursors(self) -> Mapping[str, Any]:
        own = self._inner.cursors()
        return {NAMES[self._half]: own} if own else {}

    @override
    def go_on_from(self, cursors: Mapping[str, Any]) -> None:
        self._inner.go_on_from(cursors.get(NAMES[self._half], {}))

    @override
    def close(self) -> None:
        self._inner.close()
