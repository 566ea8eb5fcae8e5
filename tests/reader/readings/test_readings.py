"""The short form of `make fuzz`: the same files each time, in all modes."""

from __future__ import annotations

from random import Random

import pytest

from pyspark_sluice.tests.reader.readings.findings import Findings
from pyspark_sluice.tests.reader.readings.generate import FORMATS, group_of
from pyspark_sluice.tests.reader.readings.machine import Machine
from pyspark_sluice.tests.reader.readings.of_spark import recorded

SEED = 20_240_102


@pytest.mark.sample("csv", "text", why="some seconds of each of these formats")
@pytest.mark.parametrize("file_format", FORMATS)
def test_five_readings_of_generated_files_are_the_same(spark_answers, file_format):
    machine = Machine(recorded(spark_answers), Random(SEED), cuts=2, failing=2)
    findings = Findings()
    for number in range(2):
        group = group_of(file_format, SEED, number, 20)
        list(findings.take(machine.differences(group), f"group {number}"))
    assert not findings.undocumented, "\n".join(findings.undocumented.values())
    assert machine.counts.total() > 50
