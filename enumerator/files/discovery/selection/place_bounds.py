"""From where to where files are read: `startAt` and `endAt`, by event time or by name.

Not here: how a time is found in a path (`event_times.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .event_times import EventTimes


@dataclass(frozen=True, slots=True)
class PlaceBounds:
    """The start is taken, the end is not. None does not restrict.

    A number is an event time in microseconds; text is compared with the path below the loaded path.
    """

    start: int | str | None
    end: int | str | None
    times: EventTimes

    def judged(self, paths: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For each file whether it is before the start, and whether it is at or after the end.

        Raises:
            SourceUnavailable: a path names no time, and a bound is one.
        """
        start, end = self.start, self.end
        before = [start is not None and self._is_before(path, start) for path in paths]
        after = [end is not None and not self._is_before(path, end) for path in paths]
        return np.array(before, np.bool_), np.array(after, np.bool_)

    def excludes(self, directory: str) -> str:
        """The option that leaves out all files that can be below a directory; else empty."""
        below = f"{self.times.below(directory)}/"
        span = self.times.span_below(below)
        start, end = self.start, self.end
        if isinstance(start, str):
            is_before = below < start and not start.startswith(below)
        else:
            is_before = start is not None and span is not None and span[1] < start
        if isinstance(end, str):
            is_after = below >= end
        else:
            is_after = end is not None and span is not None and span[0] >= end
        return "startAt" if is_before else "endAt" if is_after else ""

    def names_below(self, base: str) -> tuple[str, str]:
        """The start and the end as names below `base`, empty where they are none.

        Only where names below `base`, as paths of files begin, are what is compared.
        """
        if self.times.below(f"{base}/a") != "a":
            return "", ""
        start, end = (one if isinstance(one, str) else "" for one in (self.start, self.end))
        return start, end

    def takes(self, path: str) -> bool:
        """True for a file between the bounds.

        Raises:
            SourceUnavailable: the path names no time, and a bound is one.
        """
        before, after = self.judged([path])
        return not (before[0] or after[0])

    def _is_before(self, path: str, bound: int | str) -> bool:
        if isinstance(bound, str):
            return self.times.below(path) < bound
        return self.times.of(path) < bound
