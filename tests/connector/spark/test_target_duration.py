"""Batches of a real source with a slow sink take as long as the option says; without Spark.

The sink takes its time by a clock of the test's own.
"""

from __future__ import annotations

import statistics
from functools import partial

import pytest

from pyspark_sluice.enumerator.coordinator import running_coordinator
from pyspark_sluice.tests.connector.stream import Stream

TARGET = 1.0
SECONDS_A_FILE = 0.04


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """What batches are timed by."""
    made = Clock()
    sizing = partial(running_coordinator.BatchSizing, clock=made)
    monkeypatch.setattr(running_coordinator, "BatchSizing", sizing)
    return made


def run(stream, clock, files):
    """(files, seconds) of each batch until so many have finished."""
    found: list[tuple[int, float]] = []
    while sum(rows for rows, _ in found) < files:
        rows = len(stream.batch())
        clock.now += SECONDS_A_FILE * rows
        if rows:
            found.append((rows, SECONDS_A_FILE * rows))
    return found


def test_batches_come_to_take_as_long_as_the_target_and_a_restart_remembers(tmp_path, clock):
    options = {"targetBatchDuration": f"{TARGET:.0f}s", "maxFilesPerTrigger": "60"}
    stream = Stream(tmp_path, options)
    stream.land(*(f"{number}.json" for number in range(300)))
    found = run(stream, clock, 300)
    assert found[0][0] == 60, "the guess was far off; the hard limit holds"
    settled = [seconds for _, seconds in found[3:-1]]
    assert len(settled) >= 4
    assert 0.75 * TARGET <= statistics.median(settled) <= 1.25 * TARGET
    report = stream.reader.reportLatestOffset()
    assert report["batchDuration"]["batchesMeasured"] >= len(found) - 2
    assert [kind["files"].rsplit("/", 1)[-1] for kind in report["readingSpeeds"]] == ["#.json"]
    stream.reader.stop()

    again = Stream(tmp_path, options)
    again.at = stream.at
    again.land(*(f"more-{number}.json" for number in range(60)))
    first, _ = run(again, clock, 60)[0]
    again.reader.stop()
    usual = statistics.median(files for files, _ in found[3:-1])
    assert 0.7 * usual <= first <= 1.3 * usual, "sized by what was learned before"
