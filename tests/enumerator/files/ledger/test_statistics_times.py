"""Event times that are read from files: how often, how many at a time, and until when."""

from __future__ import annotations

import threading
import time

import pytest

from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.files.event_time_batches import EventTimePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.pending import EventTimeOrder
from pyspark_sluice.enumerator.files.ledger.statistics_times import StatisticsTimes
from pyspark_sluice.errors import SourceUnavailable
from pyspark_sluice.tests.enumerator.files.bench import Bench, file, whole
from pyspark_sluice.tests.enumerator.files.in_event_time import HOUR
from pyspark_sluice.tests.patience import wait_until


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


def begun(footers, *hours, **policy):
    files = [file(str(hour)) for hour in hours]
    bench = Bench(*files, parallelism=1, **footers.policy(), **policy)
    while not bench.enumerator.has_discovered:
        bench.discover()
    return bench


def names(splits):
    return [split.file.path for split in splits]


def test_what_was_read_to_its_end_is_forgotten_once_that_is_complete_and_read_again_if_it_returns():
    footers = Footers()
    bench = begun(footers, 5, 3, 4, 9)
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
    bench = begun(footers, 1, 2)
    taken = bench.plan()
    bench.snapshot(1)
    bench.enumerator.notify_checkpoint_aborted(1)
    bench.enumerator.add_splits_back(taken, 0)
    assert names(bench.plan()) == ["1", "2"]
    assert sorted(footers.read) == ["1", "2"]
