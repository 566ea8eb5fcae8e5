"""The protocol under everything at once, and a proof that the simulation has teeth."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.protocol.broken import BROKEN, IN_FLIGHT
from pyspark_sluice.tests.protocol.simulation import RowsOnly, Simulation

_CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def test_every_row_is_read_exactly_once_whatever_happens():
    profile = settings()
    # A search by night takes many long walks; a regression test some short ones.
    is_search = profile.max_examples > 100
    examples = settings(
        profile,
        max_examples=(20 if is_search else 5) * profile.max_examples,
        stateful_step_count=50 if is_search else 20,
        suppress_health_check=_CHECKS,
    )
    run_state_machine_as_test(Simulation, settings=examples)


def _search(simulation, broken):
    planted = type("Planted", (simulation,), {"make_coordinator": broken})
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
