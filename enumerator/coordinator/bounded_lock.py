"""The lock over everything that the coordinator changes, and nobody waits for it without a bound.

The enumerator runs under it, and an enumerator may hang, in a file system for example. Not here:
what is locked.
"""

from __future__ import annotations

import threading

from typing_extensions import override

from ...errors import WaitTimeoutError


class BoundedLock(threading.Condition):
    """A condition over a reentrant lock, whose `with` gives up after some seconds."""

    def __init__(self, seconds: float, holder: str) -> None:
        """`holder` says in the error whose work it is that does not end."""
        super().__init__(threading.RLock())
        self._seconds = seconds
        self._holder = holder

    @override
    def __enter__(self) -> bool:
        """Raises WaitTimeoutError where the lock cannot be had in time."""
        if self.acquire(timeout=self._seconds):
            return True
        raise WaitTimeoutError(
            "the coordinator is held up",
            self._holder,
            f"one step of the enumerator took more than {self._seconds:g} s",
            "steps that end: what may block belongs into call_async",
            "Look at the storage that the enumerator reads; restart the query when it answers.",
        )
