"""How a batch is cut from what is pending, spread over readers, and planned by their speed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget, BatchLimits
from pyspark_sluice.enumerator.files.cutting import SplitCutter, SplitSpreader
from pyspark_sluice.enumerator.files.part_plans import PartPlans


@dataclass(frozen=True)
class Block:
    start: int
    end: int
    rows: int = -1


class Bytes:
    """A format whose records may be cut anywhere."""

    def may_cut_anywhere(self, file):
        return True

    def blocks(self, file):
        raise AssertionError("never asked")


class Blocks:
    """A format of blocks; None makes it indivisible."""

    def __init__(self, blocks):
        self._blocks = blocks
        self.asked = 0

    def may_cut_anywhere(self, file):
        return False

    def blocks(self, file):
        self.asked += 1
        return self._blocks


def batches(cutter, size, limits):
    """Cut a file of `size` over as many checkpoints as it takes: lists of (start, end, rows)."""
    pending: FileSplit | None = FileSplit(FileVersion("f", size, 0), 0, size)
    found = []
    while pending is not None:
        budget, batch = BatchBudget(limits), []
        while pending is not None and not budget.is_full:
            taken = cutter.cut(pending, budget, size)
            if taken is None:
                break
            budget.take("f", taken.split.length)
            batch.append((taken.split.start, taken.split.end))
            pending = taken.remainder
        assert batch, "a checkpoint without progress"
        found.append(batch)
    return found


def check_whole(found, size):
    boundaries = [(start, end) for batch in found for start, end in batch]
    assert boundaries[0][0] == 0
    assert boundaries[-1][1] == size
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(boundaries))


@given(size=st.integers(1, 500), limit=st.integers(1, 200), longest=st.integers(1, 200))
def test_bytes_are_cut_exactly_at_the_limit(size, limit, longest):
    found = batches(SplitCutter(Bytes(), longest), size, BatchLimits(bytes=limit))
    check_whole(found, size)
    for batch in found[:-1]:
        assert sum(end - start for start, end in batch) == limit
    assert all(end - start <= longest for batch in found for start, end in batch)


LENGTHS = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 30)), min_size=1, max_size=10)


def blocks_of(lengths, head=4):
    found, start = [], head
    for length, rows in lengths:
        found.append(Block(start, start + length, rows))
        start += length
    return found, start


@given(lengths=LENGTHS, limit=st.integers(1, 120), longest=st.integers(1, 200))
def test_blocks_are_never_cut_and_a_batch_exceeds_the_limit_by_at_most_one(lengths, limit, longest):
    blocks, size = blocks_of(lengths)
    found = batches(SplitCutter(Blocks(blocks), longest), size, BatchLimits(bytes=limit))
    check_whole(found, size)
    ends = {block.end for block in blocks}
    for batch in found:
        assert all(end in ends for _, end in batch)
        total = sum(end - start for start, end in batch)
        assert total <= limit or len(batch) == 1


def test_an_indivisible_file_larger_than_the_room_waits_for_an_empty_checkpoint():
    cutter = SplitCutter(Blocks(None), 1000)
    pending = FileSplit(FileVersion("big", 50, 0), 0, 50)
    budget = BatchBudget(BatchLimits(bytes=30))
    budget.take("other", 1)
    assert cutter.cut(pending, budget, 100) is None
    taken = cutter.cut(pending, BatchBudget(BatchLimits(bytes=30)), 100)
    assert taken is not None
    assert (taken.split, taken.remainder) == (pending, None)


def test_blocks_are_only_asked_for_where_a_cut_is_needed_and_once_a_file():
    blocks, size = blocks_of([(10, 1)] * 5)
    boundaries = Blocks(blocks)
    cutter = SplitCutter(boundaries, 1000)
    pending = FileSplit(FileVersion("f", size, 0), 0, size)
    assert cutter.cut(pending, BatchBudget(UNLIMITED), 1000) is not None
    assert boundaries.asked == 0
    batches(cutter, size, BatchLimits(bytes=12))
    assert boundaries.asked == 1


def test_all_of_some_files_can_be_cut_at_once():
    files = [FileVersion("a", 25, 0), FileVersion("b", 5, 0)]
    found = SplitCutter(Bytes(), 10).cut_all(files, 100)
    assert [(s.file.path, s.start, s.end) for s in found] == [
        ("a", 0, 10),
        ("a", 10, 20),
        ("a", 20, 25),
        ("b", 0, 5),
    ]


@pytest.mark.parametrize(
    "limits", [BatchLimits(files=1), BatchLimits(bytes=12), BatchLimits(rows=3)], ids=str
)
def test_a_room_is_full_when_any_limit_is_reached(limits):
    budget = BatchBudget(limits)
    assert budget.is_empty
    budget.take("a", 12, 3)
    assert budget.is_full
    budget.lift(UNLIMITED)
    assert not budget.is_full


OPEN_COST = 5


def splits_of(lengths):
    return [FileSplit(FileVersion(f"f{i}", n, i), 0, n) for i, n in enumerate(lengths)]


@given(lengths=st.lists(st.integers(1, 1000), min_size=1, max_size=40), readers=st.integers(1, 8))
def test_the_largest_share_is_within_graham_s_bound(lengths, readers):
    splits = splits_of(lengths)
    shares = SplitSpreader(1000, OPEN_COST, 2).spread(splits, readers)
    costs = [length + OPEN_COST for length in lengths]
    loads = [sum(s.length + OPEN_COST for s in share) for share in shares.values()]
    # List scheduling: the last split put on the fullest reader found it at most at the mean.
    assert max(loads) <= sum(costs) / readers + max(costs) * (1 - 1 / readers)
    given_out = [split for share in shares.values() for split in share]
    assert sorted(given_out, key=lambda s: s.file.modified) == splits
    for share in shares.values():
        assert share == sorted(share, key=lambda s: s.file.modified), "another order than given"
    assert all(0 <= reader < readers for reader in shares)


@given(lengths=st.lists(st.integers(1, 1000), min_size=1, max_size=30), rounds=st.integers(1, 4))
def test_loads_are_remembered_while_one_batch_is_planned_in_parts(lengths, rounds):
    spreader = SplitSpreader(1000, 0, 2)
    loads = [0, 0, 0]
    for _ in range(rounds):
        for reader, share in spreader.spread(splits_of(lengths), 3).items():
            loads[reader] += sum(split.length for split in share)
    assert max(loads) - min(loads) <= max(lengths) * rounds
    assert max(loads) <= sum(loads) / 3 + max(lengths)


def test_a_new_batch_forgets_the_loads():
    spreader = SplitSpreader(100, 0, 1)
    assert list(spreader.spread(splits_of([50]), 2)) == [0]
    assert list(spreader.spread(splits_of([50]), 2)) == [1]
    spreader.start_batch()
    assert list(spreader.spread(splits_of([50]), 2)) == [0]


def test_readers_are_wanted_by_cost_but_one_a_core_where_there_are_splits():
    writers = SplitSpreader(100, open_cost_bytes=100, cores=2, least_bytes=50)
    # As many files as their cost of opening asks for would be tiny ones.
    assert writers.readers_wanted(splits_of([1] * 99)) == 2
    assert writers.readers_wanted(splits_of([30] * 9)) == 4
    spreader = SplitSpreader(target_bytes=100, open_cost_bytes=0, cores=4)
    assert spreader.readers_wanted(splits_of([1])) == 1
    assert spreader.readers_wanted(splits_of([1, 1, 1])) == 3
    assert spreader.readers_wanted(splits_of([1] * 9)) == 4
    assert spreader.readers_wanted(splits_of([100] * 9)) == 9


def test_no_core_waits_while_the_last_share_is_read():
    spreader = SplitSpreader(target_bytes=100, open_cost_bytes=0, cores=2)
    assert spreader.readers_wanted(splits_of([70] * 4)) == 4
    assert spreader.readers_wanted(splits_of([70] * 3)) == 3
    assert spreader.readers_wanted(splits_of([1] * 250)) == 4


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
