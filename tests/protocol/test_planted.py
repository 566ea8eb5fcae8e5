"""Each planted bug is shown by the plan that is written down for it, and by nothing but the bug."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_sluice.tests.protocol import broken
from pyspark_sluice.tests.protocol.plans import Plan
from pyspark_sluice.tests.protocol.simulate import Search
from pyspark_sluice.tests.protocol.simulated_time import in_simulated_time
from pyspark_sluice.tests.protocol.simulator import Simulator

pytestmark = pytest.mark.slow

OTHER_SEEDS = 20
"""Where the product takes its locks in another order, a plan shows its bug with another seed."""


class Replay(Simulator):
    """A run that soon gives up waiting for rows."""

    patience = 25


def shown() -> Iterator[tuple[str, tuple[str, Plan]]]:
    """Each bug, the error that shows it, and its plan, of `planted_plans.txt`."""
    lines = Path(__file__).with_name("planted_plans.txt").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    for block in text.strip().split("\n\n"):
        head, _, plan = block.partition("\n")
        bug, _, error = head.partition(": ")
        yield bug, (error, Plan.parse(plan))


SHOWN = dict(shown())


@pytest.fixture(autouse=True, scope="module")
def simulated():
    with in_simulated_time():
        yield


def test_each_planted_bug_has_a_plan():
    assert SHOWN.keys() == broken.ALL.keys()


@pytest.mark.parametrize("bug", SHOWN)
def test_a_planted_bug_is_caught(bug):
    error, first = SHOWN[bug]
    sound, planted = Search(simulator=Replay), Search(broken.ALL[bug], simulator=Replay)
    for seed in range(first.seed, first.seed + OTHER_SEEDS):
        plan = replace(first, seed=seed)
        found = planted.run(plan)
        if found is not None and error in str(found):
            assert sound.run(plan) is None
            return
    pytest.fail(f"{OTHER_SEEDS} runs do not end with: {error}")


def found_by_seed() -> list[tuple[str, str, str, str]]:
    """Bug, kind of plan, seed and find in the table of SIMULATION.md."""
    text = Path(__file__).with_name("SIMULATION.md").read_text()
    return re.findall(r"^\| `(\w+)` \| (calm )?(\d+) \| \d+ \| (.+) \|$", text, re.MULTILINE)


@pytest.mark.thorough("plans that show these bugs are in planted_plans.txt")
@pytest.mark.parametrize(("bug", "calm", "seed", "find"), found_by_seed())
def test_a_seed_of_the_table_finds_its_bug(bug, calm, seed, find):
    failure = Search(broken.ALL[bug], calm=bool(calm)).first([int(seed)])
    assert failure is not None
    assert failure[1].kind == find
