"""The context of an enumerator, turned by hand: no thread, no clock, no waiting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar

from typing_extensions import override

from pyspark_sluice.checkpoint_meta.documents.reader_assignment import plain_json
from pyspark_sluice.enumerator.api import SplitEnumeratorContext, SplitT
from pyspark_sluice.enumerator.testing import PendingCall
from pyspark_sluice.errors import ProtocolError

ResultT = TypeVar("ResultT")


class HandCrankedContext(SplitEnumeratorContext[SplitT], Generic[SplitT]):
    """Records what an enumerator asks for; asynchronous calls wait for `run_calls`."""

    def __init__(self, parallelism: int = 2, bounded: bool = False, grows: bool = False) -> None:
        """`grows` lets `request_parallelism` register more readers."""
        self._parallelism = parallelism
        self.bounded = bounded
        self._grows = grows
        self.assigned: list[tuple[int, SplitT]] = []
        """(reader, split) in the order of assignment."""
        self.events: list[tuple[int, Any]] = []
        self.quarantined: dict[str, str] = {}
        """Split id -> reason."""
        self.calls: list[PendingCall] = []
        self.planning_requests = 0
        self.has_outstanding_splits = False
        self.continuing_readers: Collection[int] = ()

    @property
    @override
    def parallelism(self) -> int:
        return self._parallelism

    @property
    @override
    def awaits_readers(self) -> bool:
        return self.has_outstanding_splits

    @property
    @override
    def continuing(self) -> Collection[int]:
        return self.continuing_readers

    @override
    def request_parallelism(self, readers: int) -> int:
        if not self._grows:
            return self._parallelism
        self._parallelism = max(self._parallelism, readers)
        return max(1, readers)

    def _check(self, reader: int) -> None:
        if not 0 <= reader < self._parallelism:
            raise ProtocolError(f"reader {reader} cannot be assigned to")

    @override
    def assign_splits(self, assignment: Mapping[int, Sequence[SplitT]]) -> None:
        for reader in assignment:
            self._check(reader)
        for reader, splits in assignment.items():
            self.assigned.extend((reader, split) for split in splits)

    @override
    def send_event(self, reader: int, event: Any) -> None:
        self._check(reader)
        self.events.append((reader, plain_json(event, f"reader {reader}")))

    @override
    def quarantine_splits(self, reasons: Mapping[str, str]) -> None:
        self.quarantined.update(reasons)

    @override
    def call_async(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
        delay: float = 0.0,
    ) -> None:
        self.calls.append(PendingCall(call, handler, delay))

    @override
    def request_planning(self) -> None:
        self.planning_requests += 1

    def run_calls(self) -> None:
        """Make the calls that wait now; those they ask for wait for the next time."""
        calls, self.calls = self.calls, []
        for call in calls:
            call.make()
