"""The short form of `make fuzz`: the same files each time, in all formats and modes."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from pyspark_sluice.tests.reader.readings.documented import OPEN
from pyspark_sluice.tests.reader.readings.findings import Findings
from pyspark_sluice.tests.reader.readings.generate import group_of
from pyspark_sluice.tests.reader.readings.machine import Machine
from pyspark_sluice.tests.reader.readings.of_spark import read_by_spark, recorded
from pyspark_sluice.tests.thorough import sampled

SEED = 20_240_102
GROUPS = {"csv": 3, "json": 3, "xml": 3, "text": 3, "avro": 2, "arrow": 2}
WRITTEN_BY_SPARK = {"parquet": 2, "orc": 2}


@pytest.mark.parametrize("file_format", GROUPS)
def test_five_readings_of_generated_files_are_the_same(spark_answers, file_format):
    groups = [group_of(None, file_format, SEED, n, 20) for n in range(GROUPS[file_format])]
    _compare(recorded(spark_answers), groups)


@pytest.mark.parametrize(
    "file_format",
    sampled(WRITTEN_BY_SPARK, "parquet".__eq__, reason="a child decodes each file of ORC"),
)
def test_five_readings_of_files_of_spark_and_others_are_the_same(spark, file_format):
    numbers = range(WRITTEN_BY_SPARK[file_format])
    groups = [group_of(spark, file_format, SEED, number, 20) for number in numbers]
    _compare(partial(read_by_spark, spark), groups)


def _compare(by_spark, groups):
    machine, findings = Machine(by_spark, Random(SEED), cuts=2, failing=2), Findings()
    for number, group in enumerate(groups):
        found = machine.differences(group)
        list(findings.take(machine, found, f"group {number}", small=False))
    assert not findings.undocumented, "\n".join(findings.undocumented.values())
    assert sum(machine.counts.by_format.values()) > 50


def test_no_known_fault_is_left_out():
    assert OPEN == ()
