"""Sizes batches so that each takes as long as `BatchLimits.seconds` says.

A batch is timed from its offset, which is handed to Spark, to Spark's question for the next one.
What was learned from batch n sizes those that are cut after it has ended: with checkpoints ahead
the one after next. Only the second batch waits for the figures of the first, since before them
there is nothing but a guess.

Not here: the estimate itself (`batch_duration.py`), what a split costs (the source), the limits
that hold in any case (`batch_budget.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..batch_budget import BatchRoom
from ..settings import CoordinatorSettings
from .batch_duration import BatchDuration
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

    def limit(self, room: BatchRoom) -> None:
        """Say how much work the batch that is being planned may hold, by what is known now."""
        if self._duration is not None and room.limits.seconds is not None:
            room.work_limit = self._duration.work

    def cut(self, record: CheckpointRecord) -> None:
        """The open record becomes a checkpoint."""
        if self._duration is not None:
            record.expected_seconds = self._duration.expected(record.room.work)

    def handed_out(self, record: CheckpointRecord) -> None:
        """Spark gets its offset."""
        record.handed_out_at = self._clock()

    def ended(self, record: CheckpointRecord | None) -> None:
        """Spark asks for what follows `record`. Not under the lock: may read Spark's own log."""
        if self._duration is None or record is None or record.stage is not Stage.HANDED_OUT:
            return
        if record.handed_out_at is not None and record.seconds is None:
            asked = self._clock() - record.handed_out_at
            measured = self._measured()
            record.seconds = asked if measured is None else min(asked, measured)

    def learn(self, record: CheckpointRecord, completed_work: float | None) -> None:
        """All commits of a batch that has ended are counted.

        `completed_work` is what the source knows of it since; None: nothing new.
        """
        if self._duration is None or record.seconds is None or not record.is_read:
            return
        work = record.room.work if completed_work is None else completed_work
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
            found["expectedWeightedBytes"] = round(running.room.work)
            found["limitedBy"] = _reason(running.room)
        found["fixedSeconds"] = round(duration.fixed, 3)
        found["secondsPerWeightedGigabyte"] = round(duration.rate * 1e9, 3)
        found["batchesMeasured"] = duration.batches
        return {"batchDuration": found}


def _reason(room: BatchRoom) -> str:
    """The limit that the batch has come nearest to; `backlog` if it is far from all of them."""
    limits = room.limits
    used = {
        "duration": (room.work, room.work_limit),
        "files": (room.files, limits.files),
        "bytes": (room.bytes, limits.bytes),
        "rows": (room.rows, limits.rows),
    }
    shares = {name: taken / limit for name, (taken, limit) in used.items() if limit}
    nearest = max(shares, key=shares.__getitem__, default="backlog")
    # Files are taken whole: the next one may not have fitted.
    return nearest if shares.get(nearest, 0.0) >= _NEAR else "backlog"
