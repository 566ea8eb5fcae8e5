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

IN_XML = (
    b"<rs><r><a>x</a><b>1</b></r><r><a>y</a><b>2</b></r></rs>",
    b"<!-- <r/> --><rs><r><a>z</a><b>3</b></r></rs>",
)
BAD = b"<r><a>x</b></r>"
XML = Group(
    *("xml", TWO, {"rowTag": "r"}, IN_XML),
    bad=BAD,
    line_end=b"\n",
    only_spark={"useLegacyXMLParser": "true"},
)


def _readings(found):
    return {difference.kind for difference in found}


@pytest.mark.parametrize("group", [GROUP, XML], ids=["csv", "xml"])
def test_readings_that_are_the_same_give_no_difference(spark_answers, group):
    machine = Machine(recorded(spark_answers), Random(1))
    assert machine.differences(group) == []
    assert machine.counts.by_reading.keys() == {
        *("spark", "cut", "packed", "beside a bad file", "before a bad record")
    }


def _planted(monkeypatch, name, change):
    real = getattr(of_sluice.Ours, name)
    monkeypatch.setattr(of_sluice.Ours, name, lambda self, *given: change(real(self, *given)))


def _without_the_last(rows):
    return rows[:-1] if isinstance(rows, list) else rows


@pytest.mark.parametrize("group", [GROUP, XML], ids=["csv", "xml"])
@pytest.mark.parametrize(
    ("name", "reading"),
    [("cut", {"cut"}), ("packed", {"packed", "beside a bad file"})],
)
def test_a_row_that_one_reading_loses_is_found_in_that_reading(
    spark_answers, monkeypatch, name, reading, group
):
    _planted(monkeypatch, name, _without_the_last)
    assert _readings(Machine(recorded(spark_answers), Random(1)).differences(group)) == reading


def _changed(rows):
    values = [{**row, "b": -1} if row.get("b") == 20 else row for row in rows]
    return values if isinstance(rows, list) else rows


def test_a_value_that_is_not_spark_s_is_found_with_its_file_and_column(spark_answers, monkeypatch):
    _planted(monkeypatch, "read", _changed)
    found = Machine(recorded(spark_answers), Random(1)).differences(GROUP)
    of_spark = {(d.column, d.data) for d in found if d.kind == "spark"}
    assert of_spark == {("b", FILES[2])}
