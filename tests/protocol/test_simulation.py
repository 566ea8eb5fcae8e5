"""The protocol under everything at once, and a proof that the simulation has teeth."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.protocol.broken import BROKEN
from pyspark_sluice.tests.protocol.simulation import Simulation

_CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def test_every_row_is_read_exactly_once_whatever_happens():
    profile = settings()
    examples = settings(
        profile,
        max_examples=20 * profile.max_examples,
        # A search by night takes long walks; a regression test many short ones.
        stateful_step_count=20 if profile.max_examples <= 100 else 50,
        suppress_health_check=_CHECKS,
    )
    run_state_machine_as_test(Simulation, settings=examples)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_planted_bug_is_caught(broken):
    class Planted(Simulation):
        make_coordinator = broken

    search = settings(
        max_examples=1000,
        stateful_step_count=30,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=_CHECKS,
    )
    with pytest.raises((AssertionError, SluiceError)):
        run_state_machine_as_test(Planted, settings=search)
