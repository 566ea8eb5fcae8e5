"""The short form of `make fuzz`: the same files each time, in all formats and modes."""

from __future__ import annotations

from random import Random

import pytest

from pyspark_sluice.tests.reader.readings.documented import OPEN
from pyspark_sluice.tests.reader.readings.findings import Findings
from pyspark_sluice.tests.reader.readings.generate import FORMATS, group_of
from pyspark_sluice.tests.reader.readings.machine import Machine

pytestmark = pytest.mark.spark

SEED = 20_240_102
GROUPS = {"csv": 3, "json": 3, "xml": 3, "text": 3, "parquet": 2, "orc": 2, "avro": 2, "arrow": 2}


@pytest.mark.parametrize("file_format", FORMATS)
def test_five_readings_of_generated_files_are_the_same(spark, file_format):
    machine, findings = Machine(spark, Random(SEED), cuts=2, failing=2), Findings()
    for number in range(GROUPS[file_format]):
        group = group_of(spark, file_format, SEED, number, 20)
        found = machine.differences(group)
        list(findings.take(machine, found, f"group {number}", small=False))
    assert not findings.undocumented, "\n".join(findings.undocumented.values())
    assert sum(machine.counts.by_format.values()) > 50


def test_no_known_fault_is_left_out():
    assert OPEN == ()
