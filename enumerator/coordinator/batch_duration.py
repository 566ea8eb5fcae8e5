"""How long a batch takes: learned from batches that Spark has completed.

A batch takes a fixed time, and so much for each byte of work in it. The second figure contains
everything that grows with the rows: what reading costs, how many cores do it at once, and the sink.
Both are estimated with a Kalman filter (R. E. Kalman, "A new approach to linear filtering and
prediction problems", 1960): the size of a batch is known when it has ended, so nothing is fed back,
and a delay between a batch and the size that follows from it cannot make sizes swing.

Not here: which batches are measured (`batch_sizing.py`), what reading a split costs (the source).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NOISE = 0.15
"""How far durations of equal batches are apart, as a part of them."""

_DRIFT = 0.12
"""How far the time for a byte changes from one batch to the next, as a part of it."""

_FIXED_DRIFT = 0.02
"""The same for the fixed time, as a part of the target."""

_FIRST_FIXED = 1.0
"""Seconds: a micro-batch of Spark without work."""

_FIXED_SPREAD = 0.35
"""How uncertain the fixed time is at most, as a part of the target."""

_RATE_SPREAD = 10.0
"""How uncertain the time for a byte is at first, as a multiple of it."""

_FIRST_SPEED = 10_000_000
"""Bytes a second and reader: slower than nearly everything, so that a first batch is rather too
short."""

_LEAST_SHARE = 0.1
"""The part of the target that is left for work, however long the fixed time is."""


@dataclass(frozen=True)
class BatchDuration:
    """An estimate, and how sure it is. Each observation makes a new one."""

    target: float
    """Seconds that a batch is meant to take."""

    fixed: float
    """Seconds that a batch takes however little is in it."""

    rate: float
    """Seconds for each byte of work, all readers together."""

    fixed_variance: float
    covariance: float
    rate_variance: float
    batches: int = 0
    """How many were observed."""

    @classmethod
    def guess(cls, target: float, readers: int) -> BatchDuration:
        """Before anything was measured: `readers` work at once, and the sink costs nothing."""
        rate = 1 / max(1, readers) / _FIRST_SPEED
        spread = (_FIXED_SPREAD * target) ** 2
        fixed = min(_FIRST_FIXED, _LEAST_SHARE * target)
        return cls(target, fixed, rate, spread, 0.0, (_RATE_SPREAD * rate) ** 2)

    def expected(self, work: float) -> float:
        """Seconds that a batch with so much work takes."""
        return self.fixed + self.rate * work

    @property
    def work(self) -> float:
        """How much work a batch is to hold, so that it takes as long as the target."""
        return max(self.target - self.fixed, _LEAST_SHARE * self.target) / self.rate

    def observed(self, work: float, seconds: float) -> BatchDuration:
        """The estimate after a batch with so much `work` has taken `seconds`."""
        of_fixed, both, of_rate = self.fixed_variance, self.covariance, self.rate_variance
        if self.batches:
            of_fixed += (_FIXED_DRIFT * self.target) ** 2
            of_rate += (_DRIFT * self.rate) ** 2
        else:
            # The guess may be off by any factor: the first batch says which size it is of.
            of_rate = max(of_rate, (seconds / work) ** 2)
        of_fixed = min(of_fixed, (_FIXED_SPREAD * self.target) ** 2)
        expected = self.expected(work)
        towards_fixed, towards_rate = of_fixed + both * work, both + of_rate * work
        total = towards_fixed + towards_rate * work + (_NOISE * expected) ** 2
        gain_fixed, gain_rate = towards_fixed / total, towards_rate / total
        surprise = seconds - expected
        return BatchDuration(
            self.target,
            max(0.0, self.fixed + gain_fixed * surprise),
            # One odd batch must not make the next one boundless.
            max(self.rate + gain_rate * surprise, self.rate / 20),
            of_fixed - gain_fixed * towards_fixed,
            both - gain_fixed * towards_rate,
            of_rate - gain_rate * towards_rate,
            self.batches + 1,
        )

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint holds of it; not the target, which is an option."""
        return {
            "batches": self.batches,
            "fixed": self.fixed,
            "rate": self.rate,
            "variances": [self.fixed_variance, self.covariance, self.rate_variance],
        }

    @classmethod
    def from_json(cls, target: float, found: Mapping[str, Any]) -> BatchDuration:
        """What `to_json` gave, perhaps with another target."""
        fixed_variance, covariance, rate_variance = map(float, found["variances"])
        return cls(
            target,
            float(found["fixed"]),
            float(found["rate"]),
            fixed_variance,
            covariance,
            rate_variance,
            int(found["batches"]),
        )
