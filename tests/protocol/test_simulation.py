"""The protocol under everything at once, and a proof that the simulation has teeth."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.protocol.broken import (
    BROKEN,
    IN_FLIGHT,
    OF_CONTINUATIONS,
    CountedBeforeTheCutAndAfter,
)
from pyspark_sluice.tests.protocol.query import LIMITS
from pyspark_sluice.tests.protocol.rows_only import FilesOnly, RowsOnly
from pyspark_sluice.tests.protocol.simulation import Simulation
from pyspark_sluice.tests.thorough import sampled

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


SOONER = {
    Simulation: {"BaseOfALaterState": 5, "DeletesWhatBasesReferTo": 3},
    RowsOnly: {
        "AbortForgotten": 8,
        "AbortOfTheLast": 5,
        "CommitCountedTwice": 3,
        "CountedAfterTheCut": 5,
        "GatewayNeverCloses": 12,
        "OpensTheNextOne": 2,
        "OrphanGoesOn": 2,
        "RestoreForgetsWhatWasHeld": 7,
    },
    FilesOnly: {
        "AbortOfTheLast": 2,
        "CommitCountedTwice": 7,
        "CutTakesHeldEventsTwice": 3,
        "OpensTheNextOne": 3,
    },
}
"""Seeds with which a search finds early, and by rows, what it finds late without one."""

LATE = {"AbortOfTheLast", "OpensTheNextOne", "CountedAfterTheCut", "OrphanGoesOn"}
"""What takes a search over files long to find; a search over all splits finds it each time."""


def _search(simulation, broken):
    planted = type("Planted", (simulation,), {"make_coordinator": broken})
    chosen = SOONER.get(simulation, {}).get(broken.__name__)
    if chosen is not None:
        planted = seed(chosen)(planted)
    search = settings(
        max_examples=1000,
        stateful_step_count=25,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=_CHECKS,
    )
    run_state_machine_as_test(planted, settings=search)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_planted_bug_is_caught(broken):
    with pytest.raises((AssertionError, SluiceError)):
        _search(Simulation, broken)


@pytest.mark.parametrize("broken", IN_FLIGHT, ids=lambda broken: broken.__name__)
def test_a_bug_of_what_is_in_flight_loses_or_doubles_rows(broken):
    with pytest.raises(AssertionError, match=r"lost|loses|doubled|more than once"):
        _search(RowsOnly, broken)


_NOT_SEARCHED = (*OF_CONTINUATIONS, CountedBeforeTheCutAndAfter)
SHOWN_BY_FILES = [broken for broken in IN_FLIGHT if broken not in _NOT_SEARCHED]


@pytest.mark.parametrize(
    "broken",
    sampled(
        SHOWN_BY_FILES,
        lambda broken: broken.__name__ not in LATE,
        reason="found late, and shown by the other simulation",
    ),
    ids=lambda broken: broken.__name__,
)
def test_a_query_over_files_loses_or_doubles_rows_by_all_that_is_not_about_continuations(broken):
    with pytest.raises(AssertionError, match=r"lost|loses|doubled|more than once"):
        _search(FilesOnly, broken)


def test_a_query_over_files_doubles_rows_that_are_counted_before_a_cut_and_after_a_restart():
    """Told step by step: four hundred runs of a search did not get there."""

    def told(simulation):
        run = simulation()
        run.begin(files=[(6, 0)] * 4, batches=0, scripts=[], moves=[], lane=(0, 1))
        moves, scripts = ["t", "1t"], [["part"]]
        run.some_batches(batches=2, scripts=scripts, moves=moves, lane=(0, 1), stop_short=True)
        run.restart(parallelism=None, limits=LIMITS, leave_zombie=False, ahead=1)
        run.teardown()

    told(FilesOnly)
    with pytest.raises(AssertionError, match="doubled"):
        told(type("Planted", (FilesOnly,), {"make_coordinator": CountedBeforeTheCutAndAfter}))


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
