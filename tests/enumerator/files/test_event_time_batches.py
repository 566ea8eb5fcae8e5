"""Batches in the order of event time, which paths name or files themselves."""

import json
import random
import threading
import time

import pytest

from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget, BatchLimits
from pyspark_sluice.enumerator.files.event_time_batches import EventTimePolicy, OnLateFile
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.pending import EventTimeOrder
from pyspark_sluice.enumerator.files.ledger.statistics_times import StatisticsTimes
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.enumerator.files.bench import (
    HOUR,
    Bench,
    document,
    file,
    folded,
    hourly,
    hours,
    in_event_time,
    times,
    whole,
)
from pyspark_sluice.tests.patience import wait_until


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


class Footers:
    """Files whose names are their hours; notes which were read."""

    def __init__(self):
        self.read = []

    def __call__(self, of):
        self.read.append(of.path)
        return int(of.path) * HOUR, int(of.path) * HOUR + 1

    def policy(self, skew=HOUR):
        times = StatisticsTimes("at", self)
        ledger = LedgerPolicy(EventTimeOrder(times), times=times)
        return {"event_time": EventTimePolicy(times, skew), "ledger": ledger}


def begun_with(footers, *hours, **policy):
    files = [file(str(hour)) for hour in hours]
    bench = Bench(*files, parallelism=1, **footers.policy(), **policy)
    while not bench.enumerator.has_discovered:
        bench.discover()
    return bench


def names(splits):
    return [split.file.path for split in splits]


def test_what_was_read_to_its_end_is_forgotten_once_that_is_complete_and_read_again_if_it_returns():
    footers = Footers()
    bench = begun_with(footers, 5, 3, 4, 9)
    taken = bench.plan(BatchLimits(files=2))
    assert names(taken) == ["3", "4"]
    bench.snapshot(1)
    bench.enumerator.add_splits_back(taken[:1], 0)
    assert sorted(footers.read) == ["3", "4", "5", "9"]
    bench.enumerator.notify_checkpoint_complete(1)
    bench.enumerator.requeue_splits(taken[1:])
    assert footers.read[4:] == ["4"]
    assert names(bench.plan()) == ["3", "4"]
    assert sorted(footers.read[5:]) == ["3"]


def test_many_files_are_read_at_a_time_but_not_all():
    lock, running, most = threading.Lock(), [0], [0]

    def read(_file):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.005)
        with lock:
            running[0] -= 1
        return 0, 0

    StatisticsTimes("at", read).learn([whole(file(str(number))) for number in range(200)])
    assert 1 < most[0] <= 16


def test_of_two_files_that_are_read_at_once_the_longer_span_counts():
    short, long = file("short"), file("long")

    class Slow(int):
        """The end of a span that takes until the other file's span is known."""

        def __sub__(self, other):
            wait_until(lambda: times.knows(long))
            return int(self) - other

    times = StatisticsTimes("at", lambda of: (0, Slow(1) if of == short else HOUR))
    times.learn([whole(short), whole(long)])
    assert times.longest == HOUR


def test_an_error_ends_the_reading_and_is_reported():
    read = []

    def fail(of):
        read.append(of)
        time.sleep(0.001)
        raise SourceUnavailable("no statistics", of.path)

    with pytest.raises(SourceUnavailable, match="no statistics"):
        StatisticsTimes("at", fail).learn([whole(file(str(number))) for number in range(1000)])
    assert len(read) < 500


def test_a_checkpoint_that_is_taken_back_forgets_nothing():
    footers = Footers()
    bench = begun_with(footers, 1, 2)
    taken = bench.plan()
    bench.snapshot(1)
    bench.enumerator.notify_checkpoint_aborted(1)
    bench.enumerator.add_splits_back(taken, 0)
    assert names(bench.plan()) == ["1", "2"]
    assert sorted(footers.read) == ["1", "2"]
