"""What is measured and searched for outside of the tests starts as make starts it."""

import json
import sys

import pytest

from pyspark_sluice.benchmarks.scale import table
from pyspark_sluice.tests.patience import output_of
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow


def _said(*command):
    return output_of([sys.executable, *map(str, command)], cwd=ROOT)


@pytest.mark.sample("command0", why="more commands")
@pytest.mark.parametrize(
    "command",
    [["-m", "benchmarks"], ["tests/spark/soak.py"], ["-m", "pyspark_sluice.tests.reader.readings"]],
)
def test_benchmarks_and_soak_say_what_they_can(command):
    assert _said(*command, "--help").startswith("usage")


@pytest.mark.thorough("a short run of a benchmark")
def test_the_steps_of_the_benchmark_of_scale_run_one_after_the_other(tmp_path):
    step = ("-m", "benchmarks.scale")
    first = json.loads(_said(*step, "first_listing", 3000, tmp_path))
    assert first["batches"] == 1
    later = json.loads(_said(*step, "later", 3000, tmp_path, *first["ref"]))
    assert 0 < later["checkpoint, bytes"] < 100_000
    unread = tmp_path / "unread"
    passed = json.loads(_said(*step, "passed_over", 3000, unread))
    after = json.loads(_said(*step, "new_after_passed_over", 3000, unread, *passed["ref"]))
    assert 0 < after["written, bytes"] < 200_000
    parts = {"first": first, "later": later, "more": {}, "passed over": passed, "after": after}
    found = [{"files": count, **parts} for count in (30, 3000)]
    assert "| 30 files | 3,000 files |" in table(found)
