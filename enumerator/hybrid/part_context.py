"""What the enumerator of one part may ask of the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from typing_extensions import override

from ...checkpoint_meta.documents.hybrid_split import HybridSplit
from ..api import SplitEnumeratorContext

ResultT = TypeVar("ResultT")


def same_of(path: str) -> Any:
    """A method or property that is that of another object, which `path` leads to."""
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
        self.journal, self.store = outer.journal, outer.store
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
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
        delay: float = 0.0,
    ) -> None:
        def handle(result: ResultT | None, error: BaseException | None) -> None:
            if not self._is_closed:
                handler(result, error)

        self._outer.call_async(call, handle, delay)
