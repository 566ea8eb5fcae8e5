"""Cutting of pending ranges: nothing is lost, and no limit is passed by more than a block."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget, BatchLimits
from pyspark_sluice.enumerator.files.cutting import SplitCutter


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
