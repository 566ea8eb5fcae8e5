"""The short form of `make fuzz`: the same files each time, in all modes; and it finds faults."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.readings import of_sluice
from pyspark_sluice.tests.reader.readings.documented import row_of
from pyspark_sluice.tests.reader.readings.generate import FORMATS, group_of
from pyspark_sluice.tests.reader.readings.machine import Findings, Machine
from pyspark_sluice.tests.reader.readings.model import CORRUPT, Difference, Group
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


TEXT, BYTES = pa.field("a", pa.string()), pa.field("b", pa.int32())
TIME, ODD = pa.field("t", pa.timestamp("us", "UTC")), pa.field("`t`", pa.int64())
MARK = "\ufeff".encode()
GOOD, BAD = {"a": "x", "b": 1, CORRUPT: None}, {"a": None, "b": None, CORRUPT: "x"}
OTHER = {"a": "y", "b": 1, CORRUPT: None}
BY_NAME = {"header": "true", "enforceSchema": "false"}
MULTI = {"multiLine": "true"}

NEAR: dict[str, Any] = {
    "a document after which nothing is": ("json", MULTI, b'{"a":"[1] 2"}\n', [GOOD], [BAD]),
    "a header that only Sluice refuses": ("csv", BY_NAME, b"a,b\n1,2\n", [GOOD], "refused: column"),
    "a tab as separator": ("csv", {"sep": "\\t"}, b'"x \t1\n', [GOOD], [OTHER]),
    "no quote before the blank": ("csv", {"sep": "||"}, b"x |1\n", [GOOD], [OTHER]),
    "a newline as line separator": ("csv", {"lineSep": "\n"}, b"\rx,1\n", [GOOD], [OTHER]),
    "no line break at a beginning": ("csv", {"lineSep": "||"}, b"x,1||", [GOOD], [OTHER]),
    "a mark within a file": ("csv", {}, b"y,1\n" + MARK + b"x,1\n", [OTHER, GOOD], [OTHER, OTHER]),
    "UTF-16 whose lines are known": (
        *("csv", {"encoding": "UTF-16LE", "lineSep": "\n"}, "x,1\n".encode("utf-16-le")),
        *([GOOD], [OTHER]),
    ),
    "JSON in UTF-16 that only Sluice calls malformed": (
        *("json", {"encoding": "UTF-16LE", "lineSep": "\n"}, b"", [GOOD], [BAD]),
    ),
    "a time, and another column": ("csv", {}, b"12:34,x\n", [GOOD], [OTHER]),
    "good values of XML": ("xml", {"rowTag": "r"}, b"<r/>", [GOOD], [OTHER]),
}


@pytest.mark.parametrize("name", NEAR)
def test_what_is_near_a_documented_difference_is_a_finding(name):
    file_format, options, data, expected, found = NEAR[name]
    schema = pa.schema([TEXT, BYTES, TIME, ODD])
    group = Group(file_format, schema, options, (data,))
    assert row_of(Difference(group, "PERMISSIVE", "spark", data, expected, found)) == ""
