"""What is known of passes of discovery: when the last one was, how long it took, what it found.

Not here: the passes (`discovery`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..journal import Journal


class Passes:
    """Under the coordinator's lock."""

    def __init__(self, journal: Journal, clock: Callable[[], float] = time.time) -> None:
        self._journal = journal
        self._clock = clock
        self._new = 0
        self._last: Mapping[str, Any] = {}
        self._failed = ""

    def found(self, new: int) -> None:
        """A part of a pass has brought so many files that were not known."""
        self._new += new

    def ended(self, seconds: float, skipped: int) -> None:
        """The pass has ended after so many seconds of work."""
        new, self._new, self._failed = self._new, 0, ""
        self._last = {"endedAt": int(self._clock()), "seconds": round(seconds, 3), "new": new}
        tell = self._journal.info if new else self._journal.debug
        tell(
            "discovery", "a listing found %d new files in %.3f s, and left out %d",
            new, seconds, skipped,
        )  # fmt: skip

    def failed(self, error: BaseException | None, delay: float) -> None:
        """The pass failed and is tried again."""
        self._new = 0
        self._failed = f"{type(error).__name__}: {error}"
        self._journal.warning(
            "discovery", "a listing failed and is tried again in %.1f s: %s", delay, self._failed
        )

    def report(self) -> Mapping[str, Any]:
        """For Spark's progress."""
        found = {"lastListing": dict(self._last)} if self._last else {}
        return {**found, **({"listingError": self._failed} if self._failed else {})}
