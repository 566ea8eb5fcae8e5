"""Enumerators that are aligned: what each may plan, as Flink's scenarios of alignment have it."""

from pyspark_sluice.checkpoint_meta.documents.aligned_positions import AlignedPositions
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget, BatchLimits
from pyspark_sluice.enumerator.files.aligned_batches import Alignment
from pyspark_sluice.tests.enumerator.files.bench import (
    HOUR,
    Bench,
    file,
    hourly,
    hours,
    in_event_time,
)

IDLE = 300.0
DAY = 24


class Group:
    """Enumerators over one directory of messages, and their clock."""

    def __init__(self):
        self.store, self.now = MemoryStateStore(), 0.0
        self.benches = {}

    def add(self, name, *of, group="shop", skew=1, **more):
        positions = AlignedPositions(self.store, group, name, IDLE, lambda: self.now)
        alignment = Alignment(positions, 1.0)
        files = [hourly(hour, name) for hour in of]
        policy = in_event_time(skew * HOUR)
        bench = Bench(*files, alignment=alignment, parallelism=1, **policy, **more)
        self.benches[name] = bench
        return bench

    def turn(self, times=3):
        for _ in range(times):
            for bench in self.benches.values():
                bench.discover()

    def begin(self):
        """The first trigger: empty checkpoints, which Spark completes."""
        self.turn()
        for bench in self.benches.values():
            assert bench.plan() == []
            bench.snapshot(1)
        for bench in self.benches.values():
            bench.enumerator.notify_checkpoint_complete(1)
        self.turn()

    def batch(self, name, number, limits=UNLIMITED):
        """Spark has completed what came before: what one source hands out."""
        bench = self.benches[name]
        bench.enumerator.notify_checkpoint_complete(number - 1)
        for _ in range(2):
            self.turn()
            found = hours(bench.plan(limits))
            if found:
                bench.snapshot(number)
                break
        self.turn()
        return found


def test_each_source_may_go_as_far_as_the_earliest_file_of_the_others_allows():
    group = Group()
    group.add("clicks", *range(10), skew=3)
    group.add("orders", *range(2, 10), skew=3)
    group.begin()
    assert group.batch("orders", 2) == [2, 3]
    assert group.batch("clicks", 2) == [0, 1, 2, 3]
    assert group.batch("clicks", 3) == [4, 5, 6, 7]
    assert group.batch("clicks", 4) == []
    assert group.batch("orders", 3) == [4, 5, 6, 7]
    assert group.batch("clicks", 4) == [8, 9]


def test_an_idle_source_holds_nobody_back_until_it_has_something_again():
    group = Group()
    orders = group.add("orders", 0)
    clicks = group.add("clicks", *range(8), skew=2)
    group.begin()
    assert group.batch("orders", 2) == [0]
    assert group.batch("clicks", 2) == [0, 1, 2]
    assert group.batch("clicks", 3) == []
    assert clicks.enumerator.backlog()["alignment"]["alignedBehind"] == "orders"
    for _ in range(20):
        group.now += IDLE / 20
        group.turn(2)
    assert group.batch("clicks", 4, BatchLimits(files=2)) == [3, 4]
    orders.files.append(hourly(2, "orders"))
    group.turn(6)
    # An old file of an idle source moves the bound back.
    assert group.batch("clicks", 5) == []
    assert group.batch("orders", 3) == [2]


def test_groups_do_not_influence_each_other():
    group = Group()
    group.add("clicks", *range(DAY), skew=DAY, group="one")
    group.add("orders", 0, group="two")
    group.begin()
    assert group.batch("clicks", 2) == list(range(DAY))


def test_an_enumerator_that_is_created_and_not_discovering_publishes_nothing():
    group = Group()
    group.add("clicks", *range(5))
    assert group.store.objects == {}


def test_what_is_planned_and_not_handed_out_does_not_move_the_position():
    group = Group()
    clicks = group.add("clicks", *range(10))
    group.add("orders", *range(10))
    group.begin()
    assert hours(clicks.plan()) == [0, 1]
    group.turn()
    assert group.batch("orders", 2) == [0, 1]
    assert group.batch("orders", 3) == []
    clicks.snapshot(2)
    group.turn()
    assert group.batch("orders", 4) == [2, 3]


def test_a_source_with_a_backlog_is_not_idle_however_long_a_batch_takes():
    group = Group()
    group.add("orders", *range(8))
    group.add("clicks", *range(8))
    group.begin()
    assert group.batch("clicks", 2) == [0, 1]
    for _ in range(100):
        group.now += IDLE / 20
        group.turn(2)
    assert group.batch("clicks", 3) == []


def test_no_batch_is_decided_before_spark_asks_for_it():
    group = Group()
    clicks = group.add("clicks", *range(10))
    group.begin()
    budget = BatchBudget(BatchLimits(files=1))
    clicks.enumerator.plan_batch(budget)
    assert budget.is_full
    assert not clicks.enumerator.is_decided(budget)


def test_a_source_that_has_found_no_file_holds_the_others_back():
    group = Group()
    clicks = group.add("clicks", 1)
    group.add("orders")
    group.begin()
    assert group.batch("clicks", 2) == []
    told = clicks.enumerator.backlog()["alignment"]
    assert told["sources"] == {"orders": "no file yet"}
    group.benches["orders"].files.append(file("date=2026-01-01/hour=03/first"))
    group.turn(6)
    assert group.batch("clicks", 3) == [1]
