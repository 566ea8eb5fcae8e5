"""The protocol under everything at once, and a proof that the simulation has teeth."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.protocol.simulation import Simulation
from pyspark_sluice.tests.protocol.traces import traces

pytestmark = pytest.mark.slow

_CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


# A search by night takes many long walks, in two parts side by side; a regression test takes
# some short ones.
_IS_SEARCH = settings().max_examples > 100


@pytest.mark.parametrize("part", ["one_half", "other_half"] if _IS_SEARCH else ["whole"])
def test_every_row_is_read_exactly_once_in_any_course_of_events(part):
    examples = settings(
        settings(),
        max_examples=settings().max_examples * 5 // 2,
        stateful_step_count=50 if _IS_SEARCH else 20,
        suppress_health_check=_CHECKS,
    )
    run_state_machine_as_test(Simulation, settings=examples)


TRACES = {trace.bug: trace for trace in traces()}


SOONER = {
    "AbortForgotten": 8,
    "AbortOfTheLast": 5,
    "BaseOfALaterState": 5,
    "CommitCountedTwice": 7,
    "CountedAfterTheCut": 5,
    "CutTakesHeldEventsTwice": 3,
    "DeletesWhatBasesReferTo": 3,
    "GatewayNeverCloses": 12,
    "OpensTheNextOne": 2,
    "OrphanGoesOn": 2,
    "RestoreForgetsWhatWasHeld": 7,
}
"""Seeds with which a search finds early what it finds late without one."""


@pytest.mark.thorough("the shortest runs that show these bugs are in planted_traces.txt")
@pytest.mark.parametrize("bug", [bug for bug in TRACES if bug != "CountedBeforeTheCutAndAfter"])
def test_the_search_finds_a_planted_bug(bug):
    trace = TRACES[bug]
    planted = type("Planted", (trace.simulation,), {"make_coordinator": trace.broken})
    if bug in SOONER:
        planted = seed(SOONER[bug])(planted)
    search = settings(
        max_examples=1000,
        stateful_step_count=25,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=_CHECKS,
    )
    with pytest.raises((AssertionError, SluiceError)) as caught:
        run_state_machine_as_test(planted, settings=search)
    print(caught.value, *getattr(caught.value, "__notes__", ()), sep="\n")


def test_a_savepoint_has_what_a_continuation_resumes_from():
    """Found by the search: the commit it resumes from is counted, and nobody has read it."""
    run = Simulation()
    lanes_grow = ["gt", "gt", "t"]
    run.begin(moves=lanes_grow, lane=(0, 1), scripts=[], files=[(4, 0)], batches=3, ahead=2)
    run.fail_to_publish(kind="error after", meanwhile=False)
    run.abandon(batches=0, pick=0, script=[])
    run.finish_batch(crash=False)
    run.start_from_savepoint(back=0, parallelism=None)
    run.teardown()
