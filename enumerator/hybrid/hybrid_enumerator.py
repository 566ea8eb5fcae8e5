"""Runs the enumerators of all parts one after the other, each but the last to its end.

A part is over when it has discovered everything, nothing of it is with a reader, and it assigns
nothing although the budget is not spent. Then nothing of it can come back. The next checkpoint,
which is cut at once, holds what the next part starts with. No split of that is read before the
checkpoint is durable, and the part before is not opened again after it. A process that dies before
Spark has written the checkpoint into its offset log resumes in the part before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

from typing_extensions import override

from ...checkpoint_meta.documents.attachments import Attachment, Attachments
from ...checkpoint_meta.documents.hybrid_split import HybridSplit, HybridSplitSerializer, part_name
from ...checkpoint_meta.documents.serializer import VersionedSerializer
from ...errors import OptionError, ProtocolError
from ..api import Handler, ResultT, SplitEnumerator, SplitEnumeratorContext
from ..batch_budget import BatchBudget
from ..large_state import FrozenState, StateDocument
from ..source_api import EnumeratorSource, OpenState
from .state import FrozenPart, HybridState, HybridStateSerializer, PartChain


def same_of(path: str) -> Any:
    """A property that is the attribute at `path`: Any, since that may be a method of any type."""
    return property(attrgetter(path))


class PartContext(SplitEnumeratorContext[Any]):
    """Wraps what one part sends, and drops what it asked for once it is closed."""

    def __init__(
        self,
        outer: SplitEnumeratorContext[HybridSplit],
        part: int,
        notice: Callable[[Sequence[Any]], Callable[[], None]],
        *,
        is_last: bool,
    ) -> None:
        """`notice` looks at splits before they are assigned; what it returns is called after."""
        self._outer = outer
        self._part = part
        self._notice = notice
        self.bounded = not is_last or outer.bounded
        self.journal, self.store, self.attachments = outer.journal, outer.store, outer.attachments
        self._is_closed = False

    def close(self) -> None:
        """The part is over: what its calls bring is not wanted any more."""
        self._is_closed = True

    parallelism = same_of("_outer.parallelism")
    awaits_readers = same_of("_outer.awaits_readers")
    continuing = same_of("_outer.continuing")
    request_parallelism = same_of("_outer.request_parallelism")
    continue_split = same_of("_outer.continue_split")
    # A split of a hybrid source has the id that its part gives it.
    quarantine_splits = same_of("_outer.quarantine_splits")
    request_planning = same_of("_outer.request_planning")

    @override
    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        noticed = self._notice([split for splits in assignment.values() for split in splits])
        self._outer.assign_splits(
            {
                reader: [HybridSplit(self._part, split) for split in splits]
                for reader, splits in assignment.items()
            }
        )
        # After the assignment: if that is refused, the position stays as it was.
        noticed()

    @override
    def send_event(self, reader: int, event: Any) -> None:
        # With its part: an event that waits for its reader may outlive the part.
        self._outer.send_event(reader, [self._part, event])

    @override
    def call_async(
        self, call: Callable[[], ResultT], handler: Handler[ResultT], delay: float = 0.0
    ) -> None:
        def handle(result: ResultT | None, error: BaseException | None) -> None:
            if not self._is_closed:
                handler(result, error)

        self._outer.call_async(call, handle, delay)


class HybridEnumeratorSource(EnumeratorSource[HybridSplit, HybridState]):
    """Reads each source to its end, then the next one from a position that the end decides."""

    snapshots_are_changes = True

    @property
    @abstractmethod
    def parts(self) -> Sequence[EnumeratorSource[Any, Any]]:
        """The sources in the order in which they are read; the same objects at each call."""

    @abstractmethod
    def position_after(self, part: int, position: Any, splits: Sequence[Any]) -> Any:
        """See `HybridSource.position_after`."""

    @abstractmethod
    def state_at(self, part: int, position: Any) -> Any:
        """See `HybridSource.state_at`."""

    @override
    def create_enumerator(
        self, context: SplitEnumeratorContext[HybridSplit], state: HybridState | None
    ) -> HybridEnumerator:
        return HybridEnumerator(context, self, state)

    @override
    def create_cleaner(self, state: OpenState) -> None:
        if any(part.create_cleaner(state) is not None for part in self.parts):
            raise OptionError(
                "cleanSource: a hybrid source does not clean up what it has read",
                type(self).__qualname__,
                "another value than off",
                "cleanSource=off",
                "Remove the files of a part once the query is in the next one.",
            )

    @cached_property
    @override
    def split_serializer(self) -> VersionedSerializer[Sequence[HybridSplit]]:
        return HybridSplitSerializer([part.split_serializer for part in self.parts])

    @property
    @override
    def state_serializer(self) -> VersionedSerializer[HybridState]:
        return HybridStateSerializer(self.parts)

    @property
    @override
    def reader_event_types(self) -> frozenset[str]:
        return frozenset().union(*(part.reader_event_types for part in self.parts))

    @override
    def is_unbounded(self, split: HybridSplit) -> bool:
        return self.parts[split.part].is_unbounded(split.split)

    @override
    def attachments_of(self, state: HybridState) -> Sequence[Attachment]:
        source = self.parts[state.part]
        return [each for snapshot in state.snapshots for each in source.attachments_of(snapshot)]

    @override
    def restore_state(
        self, chain: Sequence[StateDocument], attachments: Attachments
    ) -> HybridState | None:
        own = PartChain.of(chain)
        if own is None:
            return None
        source = self.parts[own.part]
        for document in own.documents:
            # Newer versions are refused before a source looks at the columns.
            source.state_serializer.check_version(document.state_version)
            source.split_serializer.check_version(document.split_version)
        state = source.restore_state(own.documents, attachments)
        return HybridState(own.part, own.position, () if state is None else (state,))


class HybridEnumerator(SplitEnumerator[HybridSplit, HybridState]):
    """One of several enumerators at a time."""

    def __init__(
        self,
        context: SplitEnumeratorContext[HybridSplit],
        source: HybridEnumeratorSource,
        state: HybridState | None,
    ) -> None:
        state = state or HybridState()
        self._context = context
        self._source = source
        self._position = state.position
        self._begun_with: list[Any] = []
        """What the part began with, until a snapshot has it."""
        self._switch: object | None = None
        """The switch that is under way; None if nothing is pending, or it was called off."""
        self._is_new = False
        """The switch is in no checkpoint yet."""
        self._enter(state.part, state.snapshots[-1] if state.snapshots else None)

    def _enter(self, part: int, state: Any) -> None:
        self._part = part
        self._inner_context = PartContext(self._context, part, self._notice, is_last=self._is_last)
        source = self._source.parts[part]
        self._inner: SplitEnumerator[Any, Any] = source.create_enumerator(
            self._inner_context, state
        )

    @property
    def _is_last(self) -> bool:
        return self._part == len(self._source.parts) - 1

    # The switch -----------------------------------------------------------------------------

    def _notice(self, splits: Sequence[Any]) -> Callable[[], None]:
        position = self._position
        if splits and not self._is_last:
            position = self._source.position_after(self._part, position, splits)

        def noticed() -> None:
            self._position = position

        return noticed

    @property
    def _is_over(self) -> bool:
        """True if nothing of the part is left, provided that it was just asked to plan."""
        return (
            not self._is_last
            and self._inner.has_discovered
            and not self.wants_checkpoint
            and not self._context.awaits_readers
        )

    def _begin_switch(self) -> None:
        # By a token: this switch may be called off, and the next one begin, before it has its
        # answer.
        self._switch = token = object()
        find = partial(self._source.state_at, self._part + 1, self._position)
        self._context.call_async(find, partial(self._enter_next, token))

    def _enter_next(self, token: object, state: Any, error: BaseException | None) -> None:
        # Something came back meanwhile: the part has to plan it before it is over.
        if token is not self._switch:
            return
        if error is not None:
            # An exception of a handler fails the query.
            raise error
        self._switch = None
        self._inner_context.close()
        self._inner.close()
        self._enter(self._part + 1, state)
        name = part_name(self._part)
        self._context.journal.info("hybrid", "the %s part begins at %s", name, self._position)
        if state is not None and self._source.parts[self._part].snapshots_are_changes:
            self._begun_with = [state]
        self._is_new = True
        self._inner.start()
        # They were announced to the part before, so this one does not know them.
        for reader in range(self._context.parallelism):
            self._inner.add_reader(reader)
        self._context.request_planning()

    @override
    def plan_batch(self, budget: BatchBudget) -> None:
        if self._switch is not None:
            return
        self._inner.plan_batch(budget)
        if self._is_over and budget.is_empty:
            self._begin_switch()

    @property
    @override
    def has_discovered(self) -> bool:
        # A run that ends must not end at the seam: with nothing to read of a part, what is there is
        # known when the next one has looked. That waits for the checkpoint of the switch before.
        at_the_seam = not (self._is_last or self._is_new or self._context.awaits_readers)
        return self._inner.has_discovered and not at_the_seam

    # The part that it is in -----------------------------------------------------------------

    start = same_of("_inner.start")
    part_budgets = same_of("_inner.part_budgets")
    can_improve_state = same_of("_inner.can_improve_state")
    improve_state = same_of("_inner.improve_state")
    attachments_in_use = same_of("_inner.attachments_in_use")
    add_reader = same_of("_inner.add_reader")
    handle_reader_event = same_of("_inner.handle_reader_event")
    notify_checkpoint_complete = same_of("_inner.notify_checkpoint_complete")
    notify_checkpoint_aborted = same_of("_inner.notify_checkpoint_aborted")
    is_decided = same_of("_inner.is_decided")
    close = same_of("_inner.close")

    def _own(self, splits: Sequence[HybridSplit], event: str) -> list[Any]:
        strange = [split for split in splits if split.part != self._part]
        if strange:
            raise ProtocolError(
                f"splits of the {part_name(strange[0].part)} part {event} in another part",
                type(self._source).__qualname__,
                f"{len(strange)} splits, such as {strange[0].split_id}",
                f"splits of the {part_name(self._part)} part",
                "Start a new query for them.",
            )
        # What comes now is planned before the part is over.
        self._switch = None
        return [split.split for split in splits]

    @override
    def add_splits_back(self, splits: Sequence[HybridSplit], reader: int) -> None:
        self._inner.add_splits_back(self._own(splits, "were sent back"), reader)

    @override
    def left_unread(self, splits: Sequence[HybridSplit]) -> None:
        self._inner.left_unread(self._own(splits, "were left unread"))

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
        return HybridState(self._part, self._position, [*begun_with, snapshot])

    @override
    def freeze_state(self) -> FrozenState | None:
        frozen = self._inner.freeze_state()
        if frozen is None:
            return None
        version = self._source.parts[self._part].state_serializer.version
        return FrozenPart(self._part, version, self._position, frozen)

    @override
    def add_events_back(self, events: Sequence[Any], reader: int) -> None:
        own = [event for part, event in events if part == self._part]
        if own:
            self._inner.add_events_back(own, reader)

    @property
    @override
    def wants_checkpoint(self) -> bool:
        return self._is_new or self._inner.wants_checkpoint

    @override
    def backlog(self) -> Mapping[str, Any]:
        return {"part": part_name(self._part), **self._inner.backlog()}

    @override
    def cursors(self) -> Mapping[str, Any]:
        own = self._inner.cursors()
        return {part_name(self._part): own} if own else {}

    @override
    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        self._inner.resume_from(cursors.get(part_name(self._part), {}))
