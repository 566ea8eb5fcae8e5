"""Work that a query can do without for a while: it warns, is tried again later, and is reported.

Bases, deleting old state, cleaning up the source, heartbeats. A store may refuse one of them, for
example to a role that may not delete, and batches go on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from ...errors import FencedError
from .threads import Threads

_FIRST_RETRY: Final = 5.0
_LONGEST_RETRY: Final = 300.0
"""Seconds until what has failed is tried again; doubled each time."""


class OptionalWork:
    """What of it fails at the moment, for one open coordinator."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._failures: dict[str, str] = {}
        self._delays: dict[str, float] = {}
        self._retry_at: dict[str, float] = {}

    def failed(self, work: str, error: BaseException) -> float:
        """Note that `work` has failed; the seconds until it is to be tried again.

        A superseded coordinator must stop: that, and the end of the process, make the query fail.
        """
        if isinstance(error, FencedError) or not isinstance(error, Exception):
            self._threads.fail(error)
        delay = min(_LONGEST_RETRY, self._delays.get(work, _FIRST_RETRY / 2) * 2)
        self._delays[work], self._retry_at[work] = delay, time.monotonic() + delay
        self._failures[work] = f"{type(error).__name__}: {error}"
        self._threads.journal.warning(
            "upkeep", "%s failed and is tried again in %.0f s: %s", work, delay, error
        )
        return delay

    def succeeded(self, work: str) -> None:
        """Note that `work` was done."""
        for noted in (self._failures, self._delays, self._retry_at):
            noted.pop(work, None)

    def is_due(self, work: str) -> bool:
        """True unless `work` has failed a short time ago."""
        return time.monotonic() >= self._retry_at.get(work, 0.0)

    def report(self) -> Mapping[str, object]:
        """For Spark's progress: what fails, and why."""
        return {"failingUpkeep": dict(self._failures)} if self._failures else {}
