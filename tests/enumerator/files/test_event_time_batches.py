"""Batches in the order of event time: order, span, late files, restarts."""

from __future__ import annotations

import json
import random

import pytest

from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget, BatchLimits
from pyspark_sluice.enumerator.files.event_time_batches import OnLateFile
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.enumerator.files.bench import Bench, file, whole
from pyspark_sluice.tests.enumerator.files.chains import document, folded
from pyspark_sluice.tests.enumerator.files.in_event_time import (
    HOUR,
    hourly,
    hours,
    in_event_time,
    times,
)


def shuffled(count):
    files = [hourly(hour, modified=count - hour) for hour in range(count)]
    random.Random(7).shuffle(files)
    return files


def until_discovered(bench):
    while not bench.enumerator.has_discovered:
        bench.discover()


def until_listed(bench):
    """A whole pass, and the beginning of the next."""
    for _ in range(4):
        bench.discover()


def batches(bench, first=1, limits=UNLIMITED):
    found = []
    while batch := bench.plan(limits):
        bench.snapshot(first + len(found))
        found.append(hours(batch))
    return found


def test_no_batch_is_planned_before_the_end_of_a_listing_that_found_something():
    files = [hourly(hour) for hour in (9, 8, 7, 1)]
    bench = Bench(*files, parallelism=1, portion=2, **in_event_time(0))
    bench.discover()
    assert (bench.plan(), len(bench.enumerator.ledger.pending)) == ([], 2)
    until_discovered(bench)
    assert hours(bench.plan()) == [1]
    bench.snapshot(1)
    bench.files += [hourly(hour) for hour in (31, 30, 2)]
    bench.discover()
    assert (bench.plan(), len(bench.enumerator.ledger.pending)) == ([], 5)
    asked = bench.context.planning_requests
    bench.discover()
    bench.discover()
    assert bench.context.planning_requests > asked
    assert hours(bench.plan()) == [2]


def test_a_pause_does_not_stop_the_first_listing():
    policy = in_event_time(100 * HOUR)
    bench = Bench(*shuffled(9), parallelism=1, max_pending=3, portion=2, **policy)
    for _ in range(9):
        bench.discover()
    assert hours(bench.plan()) == list(range(9))


def test_a_checkpoint_that_is_taken_back_keeps_its_span():
    bench = Bench(*shuffled(6), parallelism=1, **in_event_time(2 * HOUR))
    until_discovered(bench)
    assert hours(bench.plan(BatchLimits(files=2))) == [0, 1]
    bench.snapshot(1)
    bench.enumerator.notify_checkpoint_aborted(1)
    assert hours(bench.plan()) == [2]


# Late files -----------------------------------------------------------------------------------


def begun(*, on_late=OnLateFile.READ):
    """An enumerator that has taken hours 10 and 12."""
    bench = Bench(hourly(10), hourly(12), parallelism=1, **in_event_time(2 * HOUR, on_late))
    bench.discover()
    bench.discover()
    assert hours(bench.plan()) == [10, 12]
    bench.snapshot(1)
    return bench


def test_a_late_file_comes_next_and_is_counted_and_named():
    bench = begun()
    late = [hourly(8, "x"), hourly(9, "y")]
    bench.files += [*late, hourly(10, "in time"), hourly(13)]
    until_listed(bench)
    assert bench.enumerator.backlog()["eventTime"] == {
        "reached": "2026-01-01T12:00:00Z",
        "lateFiles": 2,
        "newestLateFiles": [one.path for one in late],
    }
    assert batches(bench, 2) == [[8, 9, 10], [13]]


def test_a_late_file_fails_the_query_on_demand_and_is_found_again():
    bench = begun(on_late=OnLateFile.FAIL)
    bench.files.append(hourly(8))
    with pytest.raises(SourceUnavailable, match="too late for its event time") as failed:
        until_listed(bench)
    assert failed.value.where == hourly(8).path
    assert not bench.enumerator.ledger.seen.are_known([hourly(8).path]).any()


# Restarts -------------------------------------------------------------------------------------


def restarted(bench, assigned, **policy):
    """A new enumerator on the state of a query that has taken `assigned` in one batch."""
    state = folded([document(1, bench.enumerator.snapshot_state(1), assigned)])
    cursors = json.loads(json.dumps(bench.enumerator.cursors()))
    again = Bench(*bench.files, state=state, parallelism=1, **policy)
    again.enumerator.resume_from(cursors)
    return again


def test_a_restart_goes_on_in_the_same_order_and_still_knows_what_is_late():
    policy = in_event_time(2 * HOUR)
    bench = Bench(*shuffled(20), parallelism=1, **policy)
    until_discovered(bench)
    taken = bench.plan(BatchLimits(files=5))
    assert hours(taken) == [0, 1, 2]
    again = restarted(bench, taken, **policy)
    again.files += [hourly(0, "in time"), file("date=2025-12-31/hour=20/late")]
    assert again.plan() == []
    until_discovered(again)
    backlog = again.enumerator.backlog()["eventTime"]
    assert backlog["newestLateFiles"] == ["date=2025-12-31/hour=20/late"]
    assert batches(again, 2)[:3] == [[-4], [0], [3, 4, 5]]


@pytest.mark.parametrize("pattern", ["{yyyy}-{MM}-{dd}/hour={HH}", "date={yyyy}-{MM}-{dd}"])
def test_another_pattern_loses_and_doubles_nothing(pattern):
    bench = Bench(*shuffled(60), parallelism=1, **in_event_time(2 * HOUR))
    until_discovered(bench)
    taken = bench.plan()
    again = restarted(bench, taken, **in_event_time(2 * HOUR, found=times(pattern)))
    until_discovered(again)
    rest = [hour for batch in batches(again, 2) for hour in batch]
    assert sorted([*hours(taken), *rest]) == list(range(60))


def test_a_pattern_that_does_not_fit_what_is_pending_is_an_error_and_the_old_one_goes_on():
    policy = in_event_time(2 * HOUR)
    bench = Bench(*shuffled(9), parallelism=1, **policy)
    until_discovered(bench)
    taken = bench.plan()
    state = folded([document(1, bench.enumerator.snapshot_state(1), taken)])
    with pytest.raises(SourceUnavailable, match="names no event time"):
        Bench(state=state, **in_event_time(found=times("{yyyy}/{MM}/{dd}")))
    again = Bench(*bench.files, state=state, parallelism=1, **policy)
    until_discovered(again)
    assert [hour for batch in batches(again, 2) for hour in batch] == list(range(3, 9))


# Order ----------------------------------------------------------------------------------------


def test_one_batch_that_is_to_hold_everything_is_not_ended_by_the_skew():
    bench = Bench(*shuffled(9), parallelism=1, **in_event_time(0))
    until_discovered(bench)
    budget = BatchBudget(UNLIMITED)
    budget.lift(UNLIMITED, everything=True)
    bench.enumerator.plan_batch(budget)
    assert hours(split for _, split in bench.context.assigned) == list(range(9))


def test_a_late_file_goes_into_quarantine_and_is_not_found_again():
    bench = begun(on_late=OnLateFile.QUARANTINE)
    late = hourly(8)
    bench.files += [late, hourly(13)]
    until_listed(bench)
    assert list(bench.context.quarantined) == [whole(late).split_id]
    assert late.path in bench.context.quarantined[whole(late).split_id]
    assert batches(bench, 2) == [[13]]
    assert bench.enumerator.backlog()["eventTime"]["lateFiles"] == 1
