"""The enumerator's door to its coordinator.

Not here: checkpoints (`coordinator.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from typing_extensions import override

from ..checkpoint_meta.serializer import VersionedSerializer
from ..errors import ProtocolError
from .api import SplitEnumeratorContext, SplitT
from .async_calls import AsyncCalls
from .events import AddSplits, CustomEvent, Inboxes
from .gateway import SubtaskGateway
from .parallelism import Readers
from .tracker import SplitAssignmentTracker

ResultT = TypeVar("ResultT")


class CoordinatorContext(SplitEnumeratorContext[SplitT], Generic[SplitT]):
    """Gateways, tracker and readers of one coordinator. Under its lock, but for `call_async`."""

    def __init__(
        self,
        serializer: VersionedSerializer[Sequence[SplitT]],
        calls: AsyncCalls,
        wake: threading.Event,
        bounded: bool,
        parallelism: tuple[int | None, int],
        announce: Callable[[int], None],
    ) -> None:
        """`parallelism` is (fixed or None, at least); `announce` is told each new reader."""
        self.inboxes = Inboxes()
        self.tracker: SplitAssignmentTracker[SplitT] = SplitAssignmentTracker()
        self.gateways: list[SubtaskGateway[AddSplits | CustomEvent]] = []
        self.readers = Readers(*parallelism, self._register)
        self._serializer = serializer
        self._calls = calls
        self._wake = wake
        self._bounded = bounded
        self._announce = announce
        self._no_more: set[int] = set()

    def _register(self, reader: int) -> None:
        self.gateways.append(SubtaskGateway(lambda event: self.inboxes.deliver(reader, event)))
        self._announce(reader)

    @property
    @override
    def bounded(self) -> bool:
        return self._bounded

    @property
    @override
    def parallelism(self) -> int:
        return self.readers.count

    @override
    def request_parallelism(self, readers: int) -> int:
        return self.readers.request(readers)

    @override
    def assign_splits(self, assignment: Mapping[int, Sequence[SplitT]]) -> None:
        for reader in assignment:
            self._check(reader, "assign splits to")
        given = {reader: splits for reader, splits in assignment.items() if splits}
        # Frozen before anything is recorded: a split that cannot be written changes nothing.
        frozen = {r: self._serializer.serialize_all(s) for r, s in given.items()}
        self.tracker.record(given)
        for reader, batches in frozen.items():
            for batch in batches:
                self.gateways[reader].send(AddSplits(batch))

    @override
    def send_event(self, reader: int, event: Any) -> None:
        self._check(reader, "send an event to")
        self.gateways[reader].send(CustomEvent(event))

    def _check(self, reader: int, what: str) -> None:
        if not 0 <= reader < self.readers.count or reader in self._no_more:
            told = reader in self._no_more
            raise ProtocolError(
                f"cannot {what} reader {reader}",
                "",
                "it has been told that there are no more splits" if told else "not registered",
                f"one of the registered readers 0 to {self.readers.count - 1}",
            )

    @override
    def signal_no_more_splits(self, reader: int) -> None:
        self._check(reader, "signal no more splits to")
        self._no_more.add(reader)

    @override
    def call_async(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
        delay: float = 0.0,
    ) -> None:
        self._calls.call(call, handler, delay)

    @override
    def request_planning(self) -> None:
        self._wake.set()

    def mark_and_close(self, checkpoint_id: int) -> None:
        """The cut, as the gateways see it: all of them, at once."""
        for gateway in self.gateways:
            gateway.mark(checkpoint_id)
            gateway.close(checkpoint_id)

    def open(self, checkpoint_id: int) -> None:
        """The checkpoint is over, complete or aborted, for every reader that knows of it."""
        for reader in range(len(self.gateways)):
            self.acknowledge(reader, checkpoint_id)

    def acknowledge(self, reader: int, checkpoint_id: int) -> None:
        """One reader has completed the checkpoint.

        A reader that registered after the cut, or after a restore, has never heard of the
        checkpoint; its gateway is open anyway.
        """
        if reader < len(self.gateways):
            gateway = self.gateways[reader]
            if gateway.has_seen(checkpoint_id):
                gateway.open(checkpoint_id)
