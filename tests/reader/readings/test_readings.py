"""The short form of `make fuzz`: the same files each time, in all formats and modes."""

from __future__ import annotations

from random import Random

import pytest

from pyspark_sluice.tests.reader.readings.findings import Findings
from pyspark_sluice.tests.reader.readings.generate import group_of
from pyspark_sluice.tests.reader.readings.machine import Machine
from pyspark_sluice.tests.reader.readings.of_spark import recorded

SEED = 20_240_102
GROUPS = {"csv": 2, "json": 2, "xml": 2, "text": 2, "avro": 1, "arrow": 1, "parquet": 1, "orc": 1}


@pytest.mark.sample(
    "csv", "text", "orc", "parquet", "arrow", why="some seconds of each of these formats"
)
@pytest.mark.parametrize("file_format", GROUPS)
def test_five_readings_of_generated_files_are_the_same(spark_answers, file_format):
    machine = Machine(recorded(spark_answers), Random(SEED), cuts=2, failing=2)
    findings = Findings()
    for number in range(GROUPS[file_format]):
        group = group_of(file_format, SEED, number, 20)
        list(findings.take(machine.differences(group), f"group {number}"))
    assert not findings.undocumented, "\n".join(findings.undocumented.values())
    assert machine.counts.total() > 50
