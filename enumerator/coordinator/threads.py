"""The threads of one coordinator: the lock, the calls that may block, and the first failure.

Everything that the coordinator changes is under one lock, and each wait for it has a bound,
since an enumerator may hang, in a file system for example. What may block runs on threads of its
own, and a call is never lost: its result, its exception or the handler's is always reported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from typing_extensions import override

from ...checkpoint_meta.storage.storage_errors import alone
from ...errors import WaitTimeoutError
from ..api import Handler, Journal, ResultT


class BoundedLock(threading.Condition):
    """A condition over a reentrant lock, whose `with` gives up after some seconds."""

    def __init__(self, seconds: float, holder: str) -> None:
        """`holder` says in the error whose work it is that does not end."""
        # Reentrant: what runs under the lock may make the query fail, which takes the lock again.
        super().__init__(threading.RLock())
        self._seconds = seconds
        self._holder = holder

    @override
    def __enter__(self) -> bool:
        """Raises WaitTimeoutError where the lock cannot be had in time."""
        if self.acquire(timeout=self._seconds):
            return True
        raise WaitTimeoutError(
            "the coordinator is blocked",
            self._holder,
            f"one step of the enumerator took more than {self._seconds:g} s",
            "steps that do not block: use call_async for input and output",
            "Check the storage that the enumerator reads; restart the query when it responds.",
        )


class AsyncCalls:
    """Threads of one coordinator. All are daemons: a blocked one never keeps a process alive."""

    def __init__(self, lock: BoundedLock, fail: Callable[[BaseException], None]) -> None:
        """`fail` is called with an exception that has no other handler."""
        self._lock = lock
        self._fail = fail
        self._stopped = threading.Event()

    def call(self, call: Callable[[], ResultT], handler: Handler[ResultT], delay: float) -> None:
        """`call` on a thread of its own after `delay` seconds, then `handler` under the lock."""

        def run() -> None:
            # The delay ends at once when the query stops.
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
                    # After a stop the enumerator is closed, and takes no results.
                    with failing(self._fail):
                        handler(result, error)
                self._lock.notify_all()

        self._start("sluice-call", run)

    def write(self, call: Callable[[], ResultT], handler: Handler[ResultT]) -> None:
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

        # A daemon: a call that hangs in a file system must not keep Spark's process from ending.
        threading.Thread(target=guarded, name=name, daemon=True).start()

    def stop(self) -> None:
        """Start nothing any more; what runs is left to end by itself, unheard."""
        self._stopped.set()


@contextmanager
def failing(fail: Callable[[BaseException], None]) -> Iterator[None]:
    """Make the query fail before the lock is left: what was half done must not be cut."""
    try:
        yield
    except BaseException as error:
        fail(error)
        raise


class Threads:
    """Spark's thread and the background threads of one coordinator, as far as they meet."""

    def __init__(
        self,
        step_timeout: float,
        holder: str,
        make_calls: Callable[[BoundedLock, Callable[[BaseException], None]], AsyncCalls],
    ) -> None:
        self.lock = BoundedLock(step_timeout, holder)
        self.wake = threading.Event()
        """Set when the background has something to do."""
        self.failure: BaseException | None = None
        self.calls = make_calls(self.lock, self.fail)
        self.journal = Journal()

    def fail(self, error: BaseException) -> None:
        """Make the query fail with `error` at its next call; the first error wins."""
        # Before the lock is acquired: its owner may never release it.
        self.failure = self.failure or error
        with self.lock:
            self.lock.notify_all()

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Hold the lock for one decision with its effect; if it fails, the query fails with it."""
        with self.lock, failing(self.fail):
            yield

    def wait_for(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Wait, under the lock, until `is_over` or the query fails; False where time runs out."""
        return self.lock.wait_for(lambda: self.failure is not None or is_over(), seconds)

    def raise_failure(self) -> None:
        """Raise what made the query fail, if anything did."""
        if self.failure is not None:
            # Kept from a background thread, and raised at each call from now on.
            raise alone(self.failure)

    def stop(self) -> None:
        """Start nothing any more."""
        self.calls.stop()
        self.wake.set()
