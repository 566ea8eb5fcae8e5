"""The largest share is near the mean, and a batch has as many readers as its work needs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.enumerator.files.spreading import SplitSpreader

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
