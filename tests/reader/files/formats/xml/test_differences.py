"""Each row of the table of differences in docs/xml.md, read by Spark and by us."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.reader.files.formats.xml.test_as_spark import (
    of_spark,
    own_rows,
    written,
)

pytestmark = pytest.mark.spark

FAILS = "the task fails"
REFUSED = "refused by name"
BAD = "_corrupt_record"

# Name of the row -> schema, bytes, and the rows of both.
CASES: dict[str, tuple[str, bytes, Any, Any]] = {
    "a record that is not well-formed": (
        "a int",
        b"<rs><r><a>1</b></r><r><a>2</a></r></rs>",
        [{"a": None, BAD: "<rs><r><a>1</b></r><r><a>2</a></r></rs>"}],
        [{"a": None, BAD: "<r><a>1</b></r>"}, {"a": 2, BAD: None}],
    ),
    "markup between records that is not well-formed": (
        "a int",
        b"<rs><r><a>1</a></r> & << <r><a>2</a></r></rs>",
        [{"a": 1, BAD: None}, {"a": None, BAD: "<rs><r><a>1</a></r> & << <r><a>2</a></r></rs>"}],
        [{"a": 1, BAD: None}, {"a": 2, BAD: None}],
    ),
    "several root elements": (
        "a int",
        b"<r><a>1</a></r><r><a>2</a></r>",
        [{"a": 1, BAD: None}, {"a": None, BAD: "<r><a>1</a></r><r><a>2</a></r>"}],
        [{"a": 1, BAD: None}, {"a": 2, BAD: None}],
    ),
    "fields behind a value that does not fit": (
        "a int, b int, n struct<x:int,b:int>",
        b"<rs><r><n><x>x</x><b>1</b></n><b>2</b><a>3</a></r></rs>",
        [{"a": None, "b": 1, "n": None,
          BAD: "<rs><r><n><x>x</x><b>1</b></n><b>2</b><a>3</a></r></rs>"}],
        [{"a": 3, "b": 2, "n": {"x": None, "b": 1},
          BAD: "<r><n><x>x</x><b>1</b></n><b>2</b><a>3</a></r>"}],
    ),
    "an attribute of the record that does not fit": (
        "_a int, b int",
        b"<rs><r a='x'><b>1</b></r></rs>",
        FAILS,
        [{"_a": None, "b": 1, BAD: "<r a='x'><b>1</b></r>"}],
    ),
    "text of the record that does not fit": (
        "_VALUE int, b int",
        b"<rs><r>x<b>1</b></r></rs>",
        FAILS,
        [{"_VALUE": None, "b": 1, BAD: "<r>x<b>1</b></r>"}],
    ),
    "the least int": (
        "a int",
        b"<rs><r><a>-2147483648</a></r></rs>",
        [{"a": None, BAD: "<rs><r><a>-2147483648</a></r></rs>"}],
        [{"a": -2147483648, BAD: None}],
    ),
    "two signs": (
        "a int",
        b"<rs><r><a>--5</a></r></rs>",
        [{"a": 5, BAD: None}],
        [{"a": None, BAD: "<r><a>--5</a></r>"}],
    ),
    "text behind a number": (
        "a double",
        b"<rs><r><a>12abc</a></r></rs>",
        [{"a": 12.0, BAD: None}],
        [{"a": None, BAD: "<r><a>12abc</a></r>"}],
    ),
    "bytes that are not UTF-8": (
        "a string",
        b"<rs><r><a>\xff</a></r><r><a>2</a></r></rs>",
        FAILS,
        [{"a": None, BAD: "<r><a>\ufffd</a></r>"}, {"a": "2", BAD: None}],
    ),
    "an array of arrays": ("a array<array<int>>", b"<rs><r><a>1</a></r></rs>", FAILS, REFUSED),
    "a map of arrays": (
        "a map<string,array<int>>",
        b"<rs><r><a><k>1</k></a></r></rs>",
        FAILS,
        REFUSED,
    ),
    "a binary column": (
        "a binary",
        b"<rs><r><a>x</a></r></rs>",
        [{"a": None, BAD: "<rs><r><a>x</a></r></rs>"}],
        REFUSED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_spark_and_we_differ_as_the_table_says(spark, tmp_path, name):
    ddl, content, theirs, ours = CASES[name]
    ddl += f", {BAD} string"
    [path] = written(tmp_path / "in", [content])
    assert _outcome(lambda: of_spark(spark, path.parent, ddl).get(path.name, [])) == theirs
    assert _outcome(lambda: own_rows(path, ddl)) == ours


def test_an_encoding_that_is_given_counts_here_and_not_in_spark(spark, tmp_path):
    [path] = written(tmp_path / "in", [b"<rs><r><a>\xe9</a></r></rs>"])
    ddl = f"a string, {BAD} string"
    given = {"encoding": "ISO-8859-1"}
    assert _outcome(lambda: of_spark(spark, path.parent, ddl, **given)) == FAILS
    assert own_rows(path, ddl, **given) == [{"a": "é", BAD: None}]
    path.write_bytes(b"<?xml version='1.0' encoding='ISO-8859-1'?>" + path.read_bytes())
    assert of_spark(spark, path.parent, ddl)[path.name] == own_rows(path, ddl)


def test_a_number_with_a_sign_is_not_the_null_of_its_digits(spark, tmp_path):
    [path] = written(tmp_path / "in", [b"<rs><r><a>-1</a></r></rs>"])
    ddl = f"a int, {BAD} string"
    [row] = of_spark(spark, path.parent, ddl, nullValue="1")[path.name]
    assert row["a"] == 0
    assert own_rows(path, ddl, nullValue="1") == [{"a": -1, BAD: None}]


def _outcome(read):
    try:
        return read()
    except OptionError:
        return REFUSED
    except (PySparkException, Py4JJavaError):
        return FAILS
