"""A coordinator sizes its batches by how long Spark took for earlier ones."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget
from pyspark_sluice.tests.enumerator.coordinator.timed_query import TARGET, Timed
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import opened


def near(sizes, expected):
    return all(0.75 * expected <= size <= 1.25 * expected for size in sizes)


def late(ahead):
    """Batches that are cut with an old estimate, beyond the one that three batches allow for."""
    return max(0, ahead - 1)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_batches_come_to_take_as_long_as_the_target(ahead):
    timed = Timed(each=2.0, ahead=ahead)
    found = timed.batches(12)
    assert found[0] == 100, "the hard limit holds whatever is guessed"
    assert near(found[3:], TARGET / 2.0), found


def test_the_second_batch_waits_for_the_figures_of_the_first():
    timed = Timed(each=2.0, ahead=3)
    first, second = timed.batches(2)
    assert first == 100
    assert second == pytest.approx(30, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_three_batches_after_the_cluster_changes_batches_fit_again(ahead, factor):
    timed = Timed(each=2.0, ahead=ahead)
    timed.batches(15)
    timed.each *= factor
    timed.batches(3 + late(ahead))
    assert near(timed.batches(10), TARGET / timed.each)


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_checkpoint_whose_estimate_is_ten_times_wrong_is_corrected_in_three_batches(
    ahead, factor
):
    timed = Timed(each=2.0, ahead=ahead)
    timed.batches(15)
    timed.each *= factor
    timed.begin(limits=BatchLimits(files=2000, seconds=TARGET))
    timed.batches(3 + late(ahead))
    assert near(timed.batches(5), TARGET / timed.each)


def test_what_was_learned_is_in_the_checkpoint_and_serves_the_next_incarnation():
    timed = Timed(each=2.0)
    timed.batches(8)
    timed.begin()
    assert near(timed.batches(3), TARGET / 2.0)


def test_the_hard_limits_hold_and_a_batch_is_never_empty():
    quick = Timed(each=0.01, limit=20)
    assert quick.batches(8) == [20] * 8
    slow = Timed(each=500.0, limit=20)
    assert slow.batches(8)[2:] == [1] * 6


def test_progress_says_what_a_batch_is_expected_to_take_and_why():
    timed = Timed(each=2.0)
    assert timed.report()["batchesMeasured"] == 0
    timed.batches(8)
    timed.query.coordinator.latest(timed.done)
    timed.query.calls.tick()
    report = timed.report()
    assert (report["targetSeconds"], report["limitedBy"]) == (TARGET, "duration")
    assert report["expectedSeconds"] == pytest.approx(TARGET, rel=0.1)
    assert report["lastSeconds"] == pytest.approx(TARGET, rel=0.25)
    assert report["lastExpectedSeconds"] == pytest.approx(TARGET, rel=0.25)
    quick = Timed(each=0.01, limit=20)
    quick.batches(3)
    quick.query.coordinator.latest(quick.done)
    assert quick.report()["limitedBy"] == "files"


def test_time_that_spark_has_waited_is_not_counted_where_its_log_says_so():
    timed = Timed(each=2.0)
    timed.begin(batch_seconds=lambda: TARGET)
    first = timed.batch()
    timed.clock.now += 10_000.0
    assert timed.batch() == pytest.approx(first, rel=0.25)


def test_a_batch_that_readers_have_abandoned_teaches_nothing():
    timed = Timed(each=2.0)
    timed.batches(5)
    before = timed.report()
    ref = timed.query.coordinator.latest(timed.done)
    timed.clock.now += 1.0
    timed.done = ref
    timed.query.coordinator.latest(ref)
    timed.query.calls.tick()
    after = timed.report()
    assert timed.query.abandoned()
    assert after["batchesMeasured"] == before["batchesMeasured"] + 1, "the one before it counts"
    timed.done = timed.query.coordinator.latest(ref)
    assert timed.report()["secondsPerWeightedGigabyte"] == after["secondsPerWeightedGigabyte"]


def test_without_a_target_nothing_is_learned_and_nothing_is_written():
    query = Harness(range(10))
    ref = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge_all(ref)
    query.coordinator.latest(ref)
    assert query.coordinator.history.load(ref).header.batch_duration == {}
    assert "batchDuration" not in query.coordinator.report()
    assert opened(query.coordinator).flight.open_record.budget.work_limit is None


def test_a_split_is_taken_if_that_comes_nearer_to_the_target():
    budget = BatchBudget(BatchLimits(seconds=TARGET))
    budget.work_limit = 10.0
    assert budget.is_nearer_with(1000.0), "a batch has one split at least"
    budget.take("a", 1, work=6.0)
    assert budget.work_left == pytest.approx(4.0)
    assert budget.is_nearer_with(7.9)
    assert not budget.is_nearer_with(8.1)
    budget.take("b", 1, work=3.95)
    assert budget.is_full, "what is left is not worth a split"
    budget.lift(UNLIMITED)
    assert not budget.is_full
