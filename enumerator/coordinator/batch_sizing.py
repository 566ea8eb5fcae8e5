"""Sizes batches so that each takes as long as `BatchLimits.seconds` says.

A batch is timed from its offset, which is handed to Spark, to Spark's question for the next one.
What was learned from batch n sizes those that are cut after it has ended: with checkpoints ahead
the one after next. Only the second batch waits for the figures of the first, since before them
there is nothing but a guess.

A batch takes a fixed time, and so much for each byte of work in it. The second figure contains
everything that grows with the rows: what reading costs, how many cores do it at once, and the sink.
Both are estimated with a Kalman filter (R. E. Kalman, "A new approach to linear filtering and
prediction problems", 1960): the size of a batch is known when it has ended, so nothing is fed back,
and a delay between a batch and the size that follows from it cannot make sizes swing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..batch_budget import BatchBudget
from ..settings import CoordinatorSettings
from .in_flight import CheckpointRecord, CheckpointsInFlight, Stage

_NEAR = 0.67
"""A batch that has this part of a limit has stopped because of it, as far as is known."""


class BatchSizing:
    """Does nothing without a target. Under the coordinator's lock, but for `ended`.

    The work of a batch is in bytes, which the source may have weighted by what they cost.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        flight: CheckpointsInFlight,
        learned: Mapping[str, Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`learned` is what `to_json` gave at the checkpoint that was restored."""
        self._flight = flight
        self._clock = clock
        self._measured = settings.batch_seconds
        self._duration: BatchDuration | None = None
        self._last: Mapping[str, float] = {}
        target = settings.limits.seconds
        if target is not None:
            readers = settings.parallelism or settings.at_least_readers
            guess = BatchDuration.guess(target, readers)
            self._duration = BatchDuration.from_json(target, learned) if learned else guess

    def to_json(self) -> dict[str, Any]:
        """What was learned, for the checkpoint that is being cut."""
        return {} if self._duration is None else self._duration.to_json()

    @property
    def may_plan(self) -> bool:
        """False while the first batch runs, whose figures the second one waits for."""
        has_measured = self._duration is None or self._duration.batches > 0
        return has_measured or self._flight.running is None

    def limit(self, budget: BatchBudget) -> None:
        """Say how much work the batch that is being planned may hold, by what is known now."""
        if self._duration is not None and budget.limits.seconds is not None:
            budget.work_limit = self._duration.work

    def cut(self, record: CheckpointRecord) -> None:
        """The open record becomes a checkpoint."""
        if self._duration is not None:
            record.expected_seconds = self._duration.expected(record.budget.work)

    def handed_out(self, record: CheckpointRecord) -> None:
        """Spark gets its offset."""
        record.handed_out_at = self._clock()

    def ended(self, record: CheckpointRecord | None) -> None:
        """Spark asks for what follows `record`. Not under the lock: may read Spark's own log."""
        if self._duration is None or record is None or record.stage is not Stage.HANDED_OUT:
            return
        if record.handed_out_at is not None and record.seconds is None:
            # Spark may ask late, after an idle trigger interval; its own log knows when the batch
            # ended.
            asked = self._clock() - record.handed_out_at
            measured = self._measured()
            record.seconds = asked if measured is None else min(asked, measured)

    def learn(self, record: CheckpointRecord, completed_work: float | None) -> None:
        """All commits of a batch that has ended are counted.

        `completed_work` is what the source knows of it since; None: nothing new.
        """
        # A batch that a `limit` has cut short says nothing of what a byte costs.
        if self._duration is None or record.seconds is None or not record.is_read:
            return
        work = record.budget.work if completed_work is None else completed_work
        if work <= 0:
            return
        self._duration = self._duration.observed(work, record.seconds)
        self._last = {"lastSeconds": round(record.seconds, 3)}
        if record.expected_seconds is not None:
            self._last["lastExpectedSeconds"] = round(record.expected_seconds, 3)

    def report(self) -> dict[str, Any]:
        """For Spark's progress: what the running batch is expected to take, and why."""
        if self._duration is None:
            return {}
        duration, running = self._duration, self._flight.running
        found: dict[str, Any] = {"targetSeconds": duration.target, **self._last}
        if running is not None and running.expected_seconds is not None:
            found["expectedSeconds"] = round(running.expected_seconds, 3)
            found["expectedWeightedBytes"] = round(running.budget.work)
            found["limitedBy"] = _reason(running.budget)
        found["fixedSeconds"] = round(duration.fixed, 3)
        found["secondsPerWeightedGigabyte"] = round(duration.rate * 1e9, 3)
        found["batchesMeasured"] = duration.batches
        return {"batchDuration": found}


def _reason(budget: BatchBudget) -> str:
    """The limit that the batch has come nearest to; `backlog` if it is far from all of them."""
    limits = budget.limits
    used = {
        "duration": (budget.work, budget.work_limit),
        "files": (budget.files, limits.files),
        "bytes": (budget.bytes, limits.bytes),
        "rows": (budget.rows, limits.rows),
    }
    shares = {name: taken / limit for name, (taken, limit) in used.items() if limit}
    nearest = max(shares, key=shares.__getitem__, default="backlog")
    # Files are taken whole: the next one may not have fitted.
    return nearest if shares.get(nearest, 0.0) >= _NEAR else "backlog"


_NOISE = 0.15
"""How far durations of equal batches are apart, as a part of them."""

_ODD, _ODD_AGAIN = 1.5, 1.25
"""Factors by which a batch, and then the next one in the same direction, miss what was expected,
if a byte now costs something else. A batch that is odd alone is noise."""

_MOST_SPREAD = 4.0
"""Targets: how uncertain the time of a batch may be because that of a byte is."""

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

    missed: float = 1.0
    """How many times longer than expected the last one took; 1 if that was a guess."""

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
        least = _LEAST_SHARE * self.target / self.rate
        work = (self.target - self.fixed) / self.rate
        spread, most_spread = math.sqrt(self.rate_variance) * work, _MOST_SPREAD * self.target
        if self.batches and spread > most_spread:
            # Batches that only took their fixed time have said little about a byte.
            work *= most_spread / spread
        return max(work, least)

    def observed(self, work: float, seconds: float) -> BatchDuration:
        """The estimate after a batch with so much `work` has taken `seconds`."""
        of_fixed, both, of_rate = self.fixed_variance, self.covariance, self.rate_variance
        expected = self.expected(work)
        surprise, missed = seconds - expected, 1.0
        if self.batches:
            of_fixed += (_FIXED_DRIFT * self.target) ** 2
            of_rate += (_DRIFT * self.rate) ** 2
            missed = seconds / expected
            if self._is_odd_again(missed):
                of_rate = max(of_rate, (surprise / work) ** 2)
        else:
            # The guess may be off by any factor: the first batch says which size it is of.
            of_rate = max(of_rate, (seconds / work) ** 2)
        of_fixed = min(of_fixed, (_FIXED_SPREAD * self.target) ** 2)
        towards_fixed, towards_rate = of_fixed + both * work, both + of_rate * work
        noise = _NOISE * min(expected, seconds)
        total = towards_fixed + towards_rate * work + noise**2
        gain_fixed, gain_rate = towards_fixed / total, towards_rate / total
        return BatchDuration(
            self.target,
            max(0.0, self.fixed + gain_fixed * surprise),
            # One odd batch must not make the next one boundless.
            max(self.rate + gain_rate * surprise, self.rate / 20),
            of_fixed - gain_fixed * towards_fixed,
            both - gain_fixed * towards_rate,
            max(0.0, of_rate - gain_rate * towards_rate),
            self.batches + 1,
            missed,
        )

    def _is_odd_again(self, missed: float) -> bool:
        before, now = math.log(self.missed), math.log(missed)
        is_same_way = before * now > 0
        return is_same_way and abs(before) > math.log(_ODD) and abs(now) > math.log(_ODD_AGAIN)

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint holds of it; not the target, which is an option."""
        return {
            "batches": self.batches,
            "fixed": self.fixed,
            "missed": self.missed,
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
            float(found.get("missed", 1.0)),
        )
