"""Batches are planned by the speed that readers report, and readers end their parts in time."""

from __future__ import annotations

import math

import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.batch_budget import BatchBudget, BatchLimits
from pyspark_sluice.enumerator.files.part_plans import PartPlans

SECONDS, READERS = 60.0, 2


class Batches:
    """Batches of a boundless backlog; a reader reads at a speed, and no clock is asked."""

    def __init__(self, speed: float, learned: dict[str, float] | None = None) -> None:
        self.speed = speed
        self.parts = PartPlans(READERS, lambda _: False)
        self.parts.restore(learned or {})
        self.done = 0

    def planned(self) -> int:
        """Bytes with which the next batch is full."""
        budget = BatchBudget(BatchLimits(seconds=SECONDS))
        assert self.parts.limit(budget, (), READERS)
        assert budget.enough is not None
        return budget.enough

    def read(self, backlog: float = float("inf")) -> float:
        """How many bytes the next batch has read."""
        self.done += 1
        each = math.ceil(min(self.planned(), backlog) / READERS)
        file = FileVersion("/data/a", each, 0)
        self.parts.sent({reader: [FileSplit(file, 0, each)] for reader in range(READERS)})
        budgets = self.parts.cut(self.done, range(READERS), ())
        read = 0.0
        for budget in budgets.values():
            assert budget.seconds == SECONDS
            # One record at least.
            own = max(1.0, min(each, self.speed * budget.seconds))
            seconds = own / self.speed
            self.parts.learn({"bytes": own, "rows": own, "microseconds": int(seconds * 1_000_000)})
            read += own
        self.parts.completed(self.done)
        return read


@pytest.mark.parametrize("factor", [0.01, 0.1, 10.0, 100.0])
def test_two_batches_after_readers_become_faster_or_slower_batches_fill_their_seconds(factor):
    batches = Batches(speed=10_000_000.0)
    for _ in range(10):
        batches.read()
    batches.speed *= factor
    batches.read()
    batches.read()
    full = batches.speed * SECONDS * READERS
    assert batches.read() >= 0.9 * full
    assert batches.planned() <= 4 * full, "nor does one reader get what others could read"


@pytest.mark.parametrize("speed", [0.001, 1e12])
def test_a_batch_is_never_planned_empty(speed):
    batches = Batches(speed)
    assert all(batches.read() > 0 and batches.planned() >= 1 for _ in range(10))


def test_a_restart_resumes_with_the_speed_and_begins_with_a_guess_without_one():
    batches, guess = Batches(speed=200_000.0), Batches(speed=200_000.0).planned()
    assert guess == pytest.approx(2 * SECONDS * READERS * 10_000_000)
    for _ in range(3):
        batches.read()
    restarted = Batches(200_000.0, dict(batches.parts.to_json()))
    assert restarted.planned() == batches.planned() < guess / 10
    assert not Batches(speed=1.0).parts.to_json()


def test_a_batch_of_one_small_file_says_little_of_the_speed():
    batches = Batches(speed=50_000_000.0)
    for _ in range(10):
        batches.read()
    before, batches.speed = batches.planned(), 20_000.0
    for _ in range(5):
        batches.read(backlog=200)
    assert batches.planned() > before / 2


def test_what_plain_files_leave_of_a_limit_on_files_goes_to_the_reader_of_an_archive():
    parts = PartPlans(READERS, lambda file: file.path.endswith(".tar"))
    archive, *plain = (
        FileSplit(FileVersion(f"/data/{name}", 1_000, 0), 0, 1_000)
        for name in ["a.tar", *map(str, range(20))]
    )
    assert parts.limit(BatchBudget(BatchLimits(files=100)), (), READERS, archive)
    parts.sent({0: [archive], 1: plain})
    budgets = parts.cut(1, range(READERS), ())
    assert {reader: budget.files for reader, budget in budgets.items()} == {0: 80, 1: 20}
