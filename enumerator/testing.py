"""Doubles for tests of an enumerator or of a coordinator, in which nothing happens by itself.

Implementations of the real contracts, turned by hand: no thread, no clock, no waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from .api import Handler, ResultT
from .coordinator.threads import AsyncCalls, BoundedLock, failing


@dataclass(frozen=True)
class PendingCall:
    """A call that was asked for and not made yet."""

    call: Callable[[], Any]
    handler: Handler[Any]
    delay: float

    def make(self) -> None:
        """Make it here and now, and hand over what comes of it."""
        result, error = None, None
        try:
            result = self.call()
        except Exception as raised:  # noqa: BLE001 - the handler judges it
            error = raised
        self.handler(result, error)


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
    def write(self, call: Callable[[], ResultT], handler: Handler[ResultT]) -> None:
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
    def call(self, call: Callable[[], ResultT], handler: Handler[ResultT], delay: float) -> None:
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
