"""The simulator: some runs, one run twice, and a find that is shrunk."""

from __future__ import annotations

import threading

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol import simulated_time
from pyspark_sluice.tests.protocol.simulate import Search
from pyspark_sluice.tests.protocol.simulated_time import in_simulated_time
from pyspark_sluice.tests.protocol.simulator import Find, Plan, Simulator, plan_of

USUAL = {
    "switching": 0.2, "sources": 1, "cleans": -1.0, "ahead": 1, "parallelism": None, "files": 2,
    "retained": 2, "deltas": 2, "unread": False, "is_async": False, "is_bounded": False,
    "patience": 3.0, "attempts": 1_000_000,
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def simulated():
    with in_simulated_time():
        yield


@pytest.mark.slow
def test_nothing_is_lost_doubled_deleted_or_without_a_name():
    search = Search()
    failure = search.first((1003, 1008, 1010, 1014))
    assert failure is None, f"{failure[1]}\n{failure[0]}"
    assert search.steps > 20_000
    for transition in (
        "a part has a budget",
        "restored: log of the table",
        "a batch is in the table",
    ):
        assert search.counts[transition]


@pytest.mark.slow
def test_events_and_rows_arrive_once_where_parts_and_answers_are_lost():
    search = Search(only=("event", "tasks", "crash"), calm=True)
    failure = search.first((3071, 3118, 3152))
    assert failure is None, f"{failure[1]}\n{failure[0]}"
    for transition in ("an attempt fails", "two drivers of one query", "a batch is read again"):
        assert search.counts[transition]
    assert search.counts["an event is sent"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2009, 7452, 40256])
def test_drivers_that_go_on_after_a_restore_or_another_driver_s_claim_are_no_find(seed):
    """An executor of before committed under a name of now; bases referred to what was gone."""
    search = Search(calm=True)
    assert search.first([seed]) is None
    assert search.counts["a backup is restored, without the sink"] > 1 or seed == 40256


@pytest.mark.thorough("the same with other seeds")
def test_nothing_is_found_in_a_million_steps():
    search = Search()
    failure = search.first(range(2000, 2125))
    assert failure is None, f"{failure[1]}\n{failure[0]}"
    assert search.steps > 1_000_000


def test_a_run_is_replayed_exactly_next_to_threads_of_other_tests():
    alone, beside, ended = Simulator(plan_of(7)), Simulator(plan_of(7)), threading.Event()

    def go_on():
        while not ended.is_set():
            simulated_time.sleep(0.001)

    alone.run()
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        beside.run()
    finally:
        ended.set()
        thread.join(PATIENCE)
    assert beside.trace == alone.trace
    assert beside.scheduler.digest == alone.scheduler.digest
    assert beside.scheduler.steps == alone.scheduler.steps


def test_a_find_is_shrunk_to_what_it_needs():
    actions = [(100, "wait", 0.1), (100, "land", 0.3), (30, "set_clock", 0.2)]
    plan = Plan(1, USUAL, ((1, "land", 0.9), *actions * 2))

    class Loses(Simulator):
        def _check_rows(self) -> None:
            if self.counts["action: set_clock"]:
                raise Find("rows lost: on purpose")

    search = Search(simulator=Loses)
    found = search.run(plan)
    assert found is not None
    assert [name for _, name, _ in search.shrunk(plan, found.kind).actions] == ["set_clock"]


@pytest.mark.slow
def test_a_batch_whose_data_files_are_lost_is_read_again_as_the_error_says():
    hosted = {**USUAL, "parallelism": 2, "retained": 4, "deltas": 1, "host": True}
    actions = [
        *((1, "land", 0.5), (300, "backup", 0.1), (3, "land", 0.9)),
        *((50, "restore", 0.05), (300, "land", 0.5), (300, "wait", 0.1)),
    ]
    for seed in range(20):
        search = Search()
        assert search.run(Plan(seed, hosted, tuple(actions))) is None
        if search.counts["reread: done"]:
            return
    pytest.fail("in no run was the table restored while a batch was under way")
