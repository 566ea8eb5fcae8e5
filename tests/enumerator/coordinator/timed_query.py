"""A query whose batches take as long as a test says: a real coordinator, and a clock of its own."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import opened

TARGET = 60.0


class Clock:
    """A clock that moves only by what batches take."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Timed:
    """A query of numbers, of which each takes some seconds."""

    def __init__(
        self,
        each: float,
        limit: int | None = 100,
        ahead: int = 1,
        *,
        noise: float = 0.0,
        numbers: int = 5000,
        size: int = 1,
    ) -> None:
        """Each number is `size` bytes and takes `each` seconds, `noise` times more or less."""
        self.each = each
        self.noise = noise
        self.random = random.Random(0)
        self.clock = Clock()
        settings = CoordinatorSettings(
            BatchLimits(files=limit, seconds=TARGET),
            parallelism=2,
            discovery_timeout=0.0,
            checkpoints_ahead=ahead,
        )
        self.query = Harness(range(numbers), settings)
        self.query.source.size = size
        self.done = NO_CHECKPOINT
        self.begin()

    def begin(self, **changes: Any) -> None:
        self.query.restart(**changes)
        self.query.start(self.done)
        opened(self.query.coordinator).sizing._clock = self.clock

    def size_of(self, ref: CheckpointRef) -> int:
        return self.query.coordinator.history.load(ref).header.assigned_splits

    def batch(self) -> int:
        """How many numbers the next batch has; it has finished then."""
        ref = self.query.coordinator.latest(self.done)
        # While it runs, the next one is cut.
        self.query.calls.tick()
        noise = math.exp(self.random.gauss(0.0, self.noise))
        self.clock.now += noise * self.each * self.size_of(ref)
        self.query.acknowledge_all(ref)
        self.done = ref
        return self.size_of(ref)

    def batches(self, count: int) -> list[int]:
        return [self.batch() for _ in range(count)]

    def report(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.query.coordinator.report()["batchDuration"]
        return found
