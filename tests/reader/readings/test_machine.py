"""The machine finds what it is made for: planted faults, each seen in the reading it belongs to."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.readings import of_sluice
from pyspark_sluice.tests.reader.readings.machine import Machine
from pyspark_sluice.tests.reader.readings.model import Group
from pyspark_sluice.tests.reader.readings.of_spark import recorded

TWO = pa.schema([("a", pa.string()), ("b", pa.int32())])
FILES = (b"x,1\ny,2\n", b"z,3\n", b"first,10\nsecond,20\nthird,30\n")
GROUP = Group("csv", TWO, {}, FILES, bad=b"p,q,r\n", line_end=b"\n")


def _without_the_last(rows):
    return rows[:-1] if isinstance(rows, list) else rows


def _changed(rows):
    values = [{**row, "b": -1} if row.get("b") == 20 else row for row in rows]
    return values if isinstance(rows, list) else rows


@pytest.mark.parametrize(
    ("method", "fault", "kinds"),
    [
        (None, None, set()),
        ("cut", _without_the_last, {"cut"}),
        ("packed", _without_the_last, {"packed", "beside a bad file"}),
        ("read", _changed, {"spark"}),
    ],
    ids=["none", "cut", "packed", "value"],
)
def test_a_fault_in_one_reading_is_found_there_and_nothing_else(
    spark_answers, monkeypatch, method, fault, kinds
):
    if method is not None:
        sound = getattr(of_sluice.Ours, method)

        def faulty(self, *arguments):
            return fault(sound(self, *arguments))

        monkeypatch.setattr(of_sluice.Ours, method, faulty)
    machine = Machine(recorded(spark_answers), Random(1))
    found = machine.differences(GROUP)
    assert {difference.kind for difference in found} == kinds
    assert {(d.column, d.data) for d in found if d.kind == "spark"} <= {("b", FILES[2])}
    assert machine.counts.keys() == {
        *("spark", "cut", "packed", "beside a bad file", "before a bad record")
    }
