"""How soon batches take as long as `targetBatchDuration` says, and how evenly tasks are loaded.

Durations are those of a clock that only batches move: the coordinator is the real one, and no other
work of the machine is in the figures. What files cost is measured by real readers.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.tests.enumerator.coordinator.timed_query import TARGET, Timed
from pyspark_sluice.tests.enumerator.files.slow_files import longest_tasks

from .bench import Bench, Result

GUESSED = 0.2
"""Seconds that a split is guessed to take: 4 MB, at 10 MB/s and reader, by two readers."""

SPLIT_BYTES = 4_000_000
LEARNED = 15
"""Batches before the cluster changes."""

SETTLED = 8
"""Batches after which there is nothing more to wait for."""

NOISE = 0.2
"""How far durations of equal batches are apart, as the standard deviation of their logarithm."""


def sizing(_: Bench) -> Iterator[Result]:
    """Batches until `targetBatchDuration` is met; the longest task by learned cost and by bytes."""
    for factor, said in ((0.1, "a tenth as long"), (10.0, "ten times as long")):
        first = Timed(factor * GUESSED, None, numbers=30_000, size=SPLIT_BYTES)
        yield _batches(f"after a guess, if a byte takes {said}", first)
    for factor, said in (
        (0.1, "a tenth as long"),
        (0.5, "half as long"),
        (2.0, "twice as long"),
        (10.0, "ten times as long"),
    ):
        later = Timed(2.0, None, numbers=30_000, size=SPLIT_BYTES)
        later.batches(LEARNED)
        later.each *= factor
        # Another cluster resumes with what this one has learned.
        later.begin(limits=BatchLimits(seconds=TARGET))
        yield _batches(f"after {LEARNED} batches, if a byte then takes {said}", later)
    noisy = Timed(2.0, None, numbers=30_000, size=SPLIT_BYTES, noise=NOISE)
    sizes = [math.log(size) for size in noisy.batches(10 + 100)[10:]]
    work = "spread of the sizes of 100 batches, whose durations vary"
    yield Result(work, 100 * statistics.pstdev(sizes), 100 * NOISE, "%", "the durations")
    yield Result(
        "the same: batches that are on the other side of the mean than the one before",
        100 * _swings(sizes), 50.0, "%", "by chance",
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="sluice-sizing-") as root:
        learned, by_bytes = longest_tasks(Path(root))
    work = "longest of 10 tasks, 10 files of nested JSON under gzip among 90 of flat JSON"
    yield Result(work, 1000 * learned, 1000 * by_bytes, "ms", "spread by bytes")


def _batches(said: str, query: Timed) -> Result:
    """After how many batches all that follow are within a quarter of the target."""
    seconds = [query.each * size for size in query.batches(SETTLED)]
    off = [at for at, took in enumerate(seconds, 1) if abs(took - TARGET) > TARGET / 4]
    shown = ", ".join(f"{took:.0f}" for took in seconds)
    work = f"batches until within 25 % of {TARGET:.0f} s, {said}"
    return Result(work, max(off, default=0), None, "batches", "", f"seconds of each: {shown}")


def _swings(sizes: Sequence[float]) -> float:
    mean = statistics.mean(sizes)
    sides = [size > mean for size in sizes]
    return statistics.mean(one != other for one, other in pairwise(sides))
