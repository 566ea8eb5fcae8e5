"""The enumerator's door to its coordinator.

Not here: checkpoints (`open_coordinator.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa
from typing_extensions import override

from ..checkpoint_meta.serializer import VersionedSerializer
from ..errors import ProtocolError
from .api import SplitEnumeratorContext, SplitT
from .async_calls import AsyncCalls
from .events import AddSplits, CustomEvent, Inboxes
from .gateway import SubtaskGateway
from .journal import Journal
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
        journal: Journal | None = None,
    ) -> None:
        """`parallelism` is (fixed or None, at least); `announce` is told each new reader."""
        self.inboxes = Inboxes()
        self.tracker: SplitAssignmentTracker[pa.RecordBatch] = SplitAssignmentTracker()
        self.gateways: list[SubtaskGateway[AddSplits | CustomEvent]] = []
        self._closed: list[int] = []
        """Checkpoints in flight, ascending."""
        self.readers = Readers(*parallelism, self._register)
        self._serializer = serializer
        self._calls = calls
        self._wake = wake
        self._bounded = bounded
        self._announce = announce
        self._no_more: set[int] = set()
        self._journal = journal or Journal()

    def _register(self, reader: int) -> None:
        gateway = SubtaskGateway[AddSplits | CustomEvent](lambda e: self._deliver(reader, e))
        # It may have a task in a checkpoint that an earlier incarnation has cut.
        for checkpoint_id in self._closed:
            gateway.close(checkpoint_id)
        self.gateways.append(gateway)
        self._announce(reader)

    def _deliver(self, reader: int, event: AddSplits | CustomEvent) -> None:
        if isinstance(event, AddSplits):
            self.tracker.record({reader: [event.splits]})
        else:
            self.inboxes.deliver(reader, event)

    @property
    @override
    def journal(self) -> Journal:
        return self._journal

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
        # Frozen before anything is sent: a split that cannot be written changes nothing.
        frozen = {r: self._serializer.serialize_all(s) for r, s in given.items()}
        for reader, batches in frozen.items():
            for batch in batches:
                # A split stands for itself: it need not wait for what its reader says of others.
                self.gateways[reader].send(AddSplits(batch), waits=False)

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

    @property
    def held_events(self) -> int:
        """Events that wait for a reader to complete what it is doing."""
        return sum(gateway.held_events for gateway in self.gateways)

    def close(self, checkpoint_id: int) -> None:
        """The cut, as the gateways see it: all of them, at once."""
        self._closed.append(checkpoint_id)
        for gateway in self.gateways:
            gateway.close(checkpoint_id)

    def open(self, checkpoint_id: int) -> None:
        """The checkpoint is over, complete or aborted, for every reader."""
        if checkpoint_id in self._closed:
            self._closed.remove(checkpoint_id)
            for gateway in self.gateways:
                gateway.open(checkpoint_id)

    def acknowledge(self, reader: int, checkpoint_id: int) -> None:
        """One reader has completed the checkpoint.

        A reader of an earlier incarnation, with another parallelism, may have no gateway now.
        """
        if reader < len(self.gateways) and checkpoint_id in self._closed:
            self.gateways[reader].open(checkpoint_id)
