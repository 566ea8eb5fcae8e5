"""Doubles for tests of an enumerator or of a coordinator, in which nothing happens by itself.

Implementations of the real contracts, turned by hand: no thread, no clock, no waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from typing_extensions import override

from ..checkpoint_meta.documents.reader_assignment import plain_json
from ..errors import ProtocolError
from .api import SplitEnumeratorContext, SplitT
from .coordinator.threads import AsyncCalls, BoundedLock, failing

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class PendingCall:
    """A call that was asked for and not made yet."""

    call: Callable[[], Any]
    handler: Callable[[Any, BaseException | None], None]
    delay: float

    def make(self) -> None:
        """Make it here and now, and hand over what comes of it."""
        result, error = None, None
        try:
            result = self.call()
        except Exception as raised:  # noqa: BLE001 - the handler judges it
            error = raised
        self.handler(result, error)


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

    @property
    @override
    def parallelism(self) -> int:
        return self._parallelism

    @property
    @override
    def awaits_readers(self) -> bool:
        return self.has_outstanding_splits

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


class HandCrankedCalls(AsyncCalls):
    """The coordinator's threads without threads: pass the class as its `make_calls`.

    What the threads would do waits for `run_calls` and `tick`. An `Exception` of a handler or of
    a periodic action fails the query and ends the action, as it ends a thread.
    """

    def __init__(self, lock: BoundedLock, fail: Callable[[BaseException], None]) -> None:
        super().__init__(lock, fail)
        self.calls: list[PendingCall] = []
        self._periodic: list[Callable[[], None]] = []
        self.holds_writes = False
        """True to keep writes to the state store in `writes` until they are made by hand."""
        self.writes: list[PendingCall] = []

    @override
    def write(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
    ) -> None:
        self.writes.append(PendingCall(call, handler, 0.0))
        if not self.holds_writes:
            self.make_write(-1)

    def make_write(self, index: int) -> None:
        """Make one of the writes that wait, in any order."""
        if self._stopped.is_set():
            return
        self._make(self.writes.pop(index))

    def _make(self, call: PendingCall) -> None:
        with suppress(Exception), self._lock, failing(self._fail):
            call.make()

    @override
    def call(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
        delay: float,
    ) -> None:
        self.calls.append(PendingCall(call, handler, delay))

    @override
    def every(self, seconds: float, action: Callable[[], None], wake: threading.Event) -> None:
        self._periodic.append(action)

    def run_calls(self) -> None:
        """Make the calls that wait now, their handlers under the lock."""
        calls, self.calls = self.calls, []
        for call in calls:
            if self._stopped.is_set():
                return
            self._make(call)

    def tick(self) -> None:
        """Let every periodic action happen once."""
        for action in list(self._periodic):
            if self._stopped.is_set():
                return
            try:
                action()
            except Exception as error:  # noqa: BLE001 - the query fails with it
                self._periodic.remove(action)
                self._fail(error)
