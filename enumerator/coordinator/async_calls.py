"""Runs what may block on worker threads, and its outcome under the coordinator's lock.

Not here: what is run. A call is never lost: its result, its exception or the handler's exception
always reaches somebody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from .bounded_lock import BoundedLock

ResultT = TypeVar("ResultT")


class AsyncCalls:
    """Threads of one coordinator. All are daemons: a blocked one never keeps a process alive."""

    def __init__(self, lock: BoundedLock, fail: Callable[[BaseException], None]) -> None:
        """`fail` is called with an exception that nobody else can handle."""
        self._lock = lock
        self._fail = fail
        self._stopped = threading.Event()

    def call(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
        delay: float,
    ) -> None:
        """`call` on a thread of its own after `delay` seconds, then `handler` under the lock."""

        def run() -> None:
            if self._stopped.wait(delay):
                return
            result: ResultT | None = None
            error: BaseException | None = None
            try:
                result = call()
            except BaseException as raised:  # noqa: BLE001 - the handler judges it
                error = raised
            with self._lock:
                if not self._stopped.is_set():
                    handler(result, error)
                self._lock.notify_all()

        self._start("sluice-call", run)

    def write(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
    ) -> None:
        """Like `call`, at once: a write to the state store, of which several may be under way."""
        self.call(call, handler, 0.0)

    def every(self, seconds: float, action: Callable[[], None], wake: threading.Event) -> None:
        """`action` every `seconds`, and whenever `wake` is set, until stopped."""

        def run() -> None:
            while not self._stopped.is_set():
                wake.wait(seconds)
                wake.clear()
                if not self._stopped.is_set():
                    action()

        self._start("sluice-background", run)

    def _start(self, name: str, body: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                body()
            except BaseException as error:  # noqa: BLE001 - the query fails with it
                if not self._stopped.is_set():
                    self._fail(error)

        threading.Thread(target=guarded, name=name, daemon=True).start()

    def stop(self) -> None:
        """Start nothing any more; what runs is left to end by itself, unheard."""
        self._stopped.set()
