"""A difference that is only near a documented one is not taken for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.readings.documented import row_of
from pyspark_sluice.tests.reader.readings.model import CORRUPT, Difference, Group

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
