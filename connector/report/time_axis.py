"""A time axis on which equal distances are equal times, with few labels at round times.

Not here: what is drawn along it (`charts.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_MOST_LABELS: Final = 6
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_STEPS: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 364)),
)


@dataclass(frozen=True)
class TimeAxis:
    """From `begin` to `end`, seconds since 1970, with a label every `step` seconds."""

    begin: float
    end: float
    step: float

    @classmethod
    def of(cls, begin: float, end: float) -> TimeAxis:
        """The axis for these moments; it is a second long at least."""
        end = max(end, begin + 1)
        fitting = (step for step in _STEPS if (end - begin) / step < _MOST_LABELS)
        return cls(begin, end, next(fitting, (end - begin) / _MOST_LABELS))

    @property
    def ticks(self) -> Sequence[float]:
        """Where the labels are."""
        first, last = math.ceil(self.begin / self.step), math.floor(self.end / self.step)
        return [number * self.step for number in range(first, last + 1)]

    def formatted(self, moment: float) -> str:
        """The label of a moment, as short as the others allow."""
        at = datetime.fromtimestamp(moment, UTC)
        if self.step >= _DAY:
            return f"{at:%Y-%m-%d}"
        if self.end - self.begin >= _DAY:
            return f"{at:%m-%d %H:%M}"
        if self.step >= _MINUTE:
            return f"{at:%H:%M}"
        return f"{at:%H:%M:%S}" if self.step >= 1 else f"{at:%H:%M:%S.}{at.microsecond // 100_000}"
