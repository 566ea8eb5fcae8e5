"""Each row of XML in the table of docs/differences.md, read by Spark and by us."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import read_rows, version
from pyspark_sluice.tests.answers import RefusedBySparkError
from pyspark_sluice.tests.reader.files.formats.xml.documents import of_spark, own_rows, written

FAILS = "the task fails"
REFUSED = "refused by name"
BAD = "_corrupt_record"

# Row of the table, as its first cell begins; schema, bytes, and the rows of both.
CASES: list[tuple[str, str, bytes, Any, Any]] = [
    ("a record, or text between two records, that is not well-formed", "a int",
     b"<rs><r><a>1</b></r><r><a>2</a></r></rs>",
     [{"a": None, BAD: "<rs><r><a>1</b></r><r><a>2</a></r></rs>"}],
     [{"a": None, BAD: "<r><a>1</b></r>"}, {"a": 2, BAD: None}]),
    ("a record, or text between two records, that is not well-formed", "a int",
     b"<rs><r><a>1</a></r> & << <r><a>2</a></r></rs>",
     [{"a": 1, BAD: None}, {"a": None, BAD: "<rs><r><a>1</a></r> & << <r><a>2</a></r></rs>"}],
     [{"a": 1, BAD: None}, {"a": 2, BAD: None}]),
    ("a record, or text between two records, that is not well-formed", "a int",
     b"<r><a>1</a></r><r><a>2</a></r>",
     [{"a": 1, BAD: None}, {"a": None, BAD: "<r><a>1</a></r><r><a>2</a></r>"}],
     [{"a": 1, BAD: None}, {"a": 2, BAD: None}]),
    ("text of a malformed record", "a int", b"<rs><r><a>1</b></r><r><a>2</a></r></rs>",
     [{"a": None, BAD: "<rs><r><a>1</b></r><r><a>2</a></r></rs>"}],
     [{"a": None, BAD: "<r><a>1</b></r>"}, {"a": 2, BAD: None}]),
    ("fields after a value that does not fit", "a int, b int, n struct<x:int,b:int>",
     b"<rs><r><n><x>x</x><b>1</b></n><b>2</b><a>3</a></r></rs>",
     [{"a": None, "b": 1, "n": None,
       BAD: "<rs><r><n><x>x</x><b>1</b></n><b>2</b><a>3</a></r></rs>"}],
     [{"a": 3, "b": 2, "n": {"x": None, "b": 1},
       BAD: "<r><n><x>x</x><b>1</b></n><b>2</b><a>3</a></r>"}]),
    ("an attribute or text of the record itself", "_a int, b int",
     b"<rs><r a='x'><b>1</b></r></rs>",
     FAILS, [{"_a": None, "b": 1, BAD: "<r a='x'><b>1</b></r>"}]),
    ("an attribute or text of the record itself", "_VALUE int, b int", b"<rs><r>x<b>1</b></r></rs>",
     FAILS, [{"_VALUE": None, "b": 1, BAD: "<r>x<b>1</b></r>"}]),
    ("the smallest `int` and `long`", "a int", b"<rs><r><a>-2147483648</a></r></rs>",
     [{"a": None, BAD: "<rs><r><a>-2147483648</a></r></rs>"}], [{"a": -2147483648, BAD: None}]),
    ("the smallest `int` and `long`", "a long", b"<rs><r><a>-9223372036854775808</a></r></rs>",
     [{"a": None, BAD: "<rs><r><a>-9223372036854775808</a></r></rs>"}],
     [{"a": -9223372036854775808, BAD: None}]),
    ("two signs", "a int", b"<rs><r><a>--5</a></r></rs>",
     [{"a": 5, BAD: None}], [{"a": None, BAD: "<r><a>--5</a></r>"}]),
    ("`float` and `double`: text after a number", "a double", b"<rs><r><a>12abc</a></r></rs>",
     [{"a": 12.0, BAD: None}], [{"a": None, BAD: "<r><a>12abc</a></r>"}]),
    ("bytes that are not UTF-8", "a string", b"<rs><r><a>\xff</a></r><r><a>2</a></r></rs>",
     FAILS, [{"a": None, BAD: "<r><a>\ufffd</a></r>"}, {"a": "2", BAD: None}]),
    ("arrays of arrays, maps of arrays", "a array<array<int>>", b"<rs><r><a>1</a></r></rs>",
     FAILS, REFUSED),
    ("arrays of arrays, maps of arrays", "a map<string,array<int>>",
     b"<rs><r><a><k>1</k></a></r></rs>", FAILS, REFUSED),
    ("`binary` columns", "a binary", b"<rs><r><a>x</a></r></rs>",
     [{"a": None, BAD: "<rs><r><a>x</a></r></rs>"}], REFUSED),
    ("a wildcard column (`xs_any`)", "a int, xs_any int", b"<rs><r><a>1</a><q>7</q></r></rs>",
     [{"a": 1, "xs_any": None, BAD: "<rs><r><a>1</a><q>7</q></r></rs>"}], REFUSED),
]  # fmt: skip


def _encoding(answers, tmp_path):
    [path] = written(tmp_path / "in", [b"<rs><r><a>\xe9</a></r></rs>"])
    ddl = f"a string, {BAD} string"
    given = {"encoding": "ISO-8859-1"}
    assert _outcome(lambda: _by_spark(answers, path, ddl, **given)) == FAILS
    assert own_rows(path, ddl, **given) == [{"a": "é", BAD: None}]
    path.write_bytes(b"<?xml version='1.0' encoding='ISO-8859-1'?>" + path.read_bytes())
    assert _by_spark(answers, path, ddl) == own_rows(path, ddl)


def _by_spark(answers, path, ddl, **options):
    return answers(
        lambda spark: of_spark(spark, path.parent, ddl, **options)[path.name], path, ddl, options
    )


def _number_with_a_sign(answers, tmp_path):
    [path] = written(tmp_path / "in", [b"<rs><r><a>-1</a></r></rs>"])
    ddl = f"a int, {BAD} string"
    [row] = _by_spark(answers, path, ddl, nullValue="1")
    assert row["a"] == 0
    assert own_rows(path, ddl, nullValue="1") == [{"a": -1, BAD: None}]


def _default_mode(answers, tmp_path):
    [path] = written(tmp_path / "in", [b"<rs><r><a>x</a></r></rs>"])
    assert _by_spark(answers, path, "a int") == [{"a": None}]
    with pytest.raises(MalformedDataError, match="malformed record"):
        read_rows([path], pa.schema([("a", pa.int32())]), file_format="xml", row_tag="r")


def _second_value(answers, tmp_path):
    """Every way to a second value: elements, texts; in a record, a struct, a map."""
    del answers  # `test_as_spark.py` compares last values with Spark's.
    ddl = "_i string, t string, s struct<_i:int,_VALUE:string>, m map<string,int>"
    records: dict[str, dict[str, Any]] = {
        "<r><t>1</t><t>2</t></r>": {"t": "2"},
        "<r><T>1</T><t>2</t></r>": {"t": "2"},
        "<r><s i='1'/><s i='2'/></r>": {"s": {"_i": 2, "_VALUE": None}},
        "<r><s i='1'>x<b/>y</s></r>": {"s": {"_i": 1, "_VALUE": "y"}},
        "<r><m><k>1</k><k>2</k></m></r>": {"m": [("k", 2)]},
    }
    empty: dict[str, Any] = dict.fromkeys(("_i", "t", "s", "m"))
    for number, (record, last) in enumerate(records.items()):
        [path] = written(tmp_path / str(number), [f"<rs>{record}</rs>".encode()])
        assert own_rows(path, ddl) == [empty | last]
        with pytest.raises(MalformedDataError, match="a second value"):
            own_rows(path, ddl, mode="FAILFAST")
        [row] = own_rows(path, f"{ddl}, rest string", rescuedDataColumn="rest")
        assert row["rest"] is not None


def _inferred(answers, tmp_path, record, theirs, ours):
    """The columns that Spark infers, and ours, with their types."""
    [path] = written(tmp_path / "in", [b"<rs>%s</rs>" % record])

    def by_spark(spark):
        schema = spark.read.format("xml").options(rowTag="r").load(str(path)).schema
        return [(field.name, field.dataType.simpleString()) for field in schema]

    assert answers(by_spark, path) == theirs
    options = ReaderOptions(file_format="xml", row_tag="r", infer_column_types=True)
    schema = inferred_schema([version(path)], options)
    assert [(field.name, str(field.type)) for field in schema] == ours


def _variants_and_multi_line(answers, tmp_path):
    [path] = written(tmp_path / "in", [b"<rs><r><a>1</a></r></rs>"])
    for ddl, options, expected in (
        ("a int", {"multiLine": "true"}, "1"),
        ("v variant", {"singleVariantColumn": "v"}, '{"a":1}'),
        ("a variant", {}, "1"),
    ):

        def by_spark(spark, ddl=ddl, options=options):
            reader = spark.read.format("xml").options(rowTag="r", **options).schema(ddl)
            column = reader.load(str(path)).selectExpr(f"cast({ddl[0]} as string)")
            return column.toArrow()[0].to_pylist()

        assert answers(by_spark, path, ddl, options) == [expected]
        with pytest.raises(OptionError, match=r"(?i)xml"):
            own_rows(path, ddl, **options)


def _outcome(read):
    try:
        return read()
    except OptionError:
        return REFUSED
    except RefusedBySparkError:
        return FAILS


# The other rows of the table -> what shows them.
OTHERS: dict[str, Callable[[Any, Path], None]] = {
    "default `mode`": _default_mode,
    "a second value where the schema has no array": _second_value,
    "a signed number whose digits equal `nullValue`": _number_with_a_sign,
    "`encoding`": _encoding,
    "order of inferred columns": partial(
        _inferred,
        record=b"<r><b>x</b><a>x</a></r>",
        theirs=[("a", "string"), ("b", "string")],
        ours=[("b", "string"), ("a", "string")],
    ),
    "inferred type of a time without a date": partial(
        _inferred,
        record=b"<r><a>12:30</a><b>2020-01</b></r>",
        theirs=[("a", "timestamp"), ("b", "timestamp")],
        ours=[("a", "string"), ("b", "string")],
    ),
    "`multiLine`, `singleVariantColumn`, variant columns": _variants_and_multi_line,
}
ROWS = dict.fromkeys(row for row, *_ in CASES) | OTHERS


@pytest.mark.parametrize(
    ("ddl", "content", "theirs", "ours"),
    [case for _, *case in CASES],
    ids=[row for row, *_ in CASES],
)
def test_spark_and_we_differ_as_the_table_says(spark_answers, tmp_path, ddl, content, theirs, ours):
    ddl += f", {BAD} string"
    [path] = written(tmp_path / "in", [content])
    by_spark = partial(spark_answers, lambda s: of_spark(s, path.parent, ddl), path, ddl)
    assert _outcome(lambda: by_spark().get(path.name, [])) == theirs
    assert _outcome(lambda: own_rows(path, ddl)) == ours


PAGE = Path(__file__).resolve().parents[5] / "docs" / "differences.md"


def test_every_row_of_the_table_has_a_case_and_every_case_a_row():
    table = PAGE.read_text(encoding="utf-8").partition("## XML")[2]
    rows = [line[2:] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= len(ROWS)
    assert [row for row in rows if sum(map(row.startswith, ROWS)) != 1] == []
    assert [name for name in ROWS if not any(row.startswith(name) for row in rows)] == []


@pytest.mark.parametrize("row", OTHERS)
def test_spark_and_we_do_what_the_table_says(spark_answers, tmp_path, row):
    OTHERS[row](spark_answers, tmp_path)
