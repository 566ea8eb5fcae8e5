"""What the threads of one coordinator share: the lock, the alarm bell, and the first failure.

Not here: what runs on them (`running_coordinator.py`), how calls are made (`async_calls.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...errors import without_history
from ..journal import Journal
from .async_calls import AsyncCalls
from .bounded_lock import BoundedLock


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
        # Before the lock is asked for: whoever holds it may never let go.
        self.failure = self.failure or error
        with self.lock:
            self.lock.notify_all()

    def raise_failure(self) -> None:
        """Raise what made the query fail, if anything did."""
        if self.failure is not None:
            # Kept from a background thread, and raised at each call from now on.
            raise without_history(self.failure)

    def stop(self) -> None:
        """Start nothing any more."""
        self.calls.stop()
        self.wake.set()
