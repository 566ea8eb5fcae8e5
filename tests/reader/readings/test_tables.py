"""Each row of the table of differences is true: Spark reads the one thing, Sluice the other."""

from __future__ import annotations

import datetime as dt
import inspect
import os
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.tests.reader.readings import other_rows
from pyspark_sluice.tests.reader.readings.documented import DOCUMENTED
from pyspark_sluice.tests.reader.readings.of_sluice import Ours
from pyspark_sluice.tests.reader.readings.of_spark import in_zones, read_by_spark
from pyspark_sluice.tests.reader.readings.other_rows import Row, values
from pyspark_sluice.tests.reader.readings.table_cases import CASES, plain
from pyspark_sluice.tests.spark.versions import AS_NEWEST

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "differences.md"


def _rows() -> list[str]:
    """The first cells of all tables but that of XML, which has tests of its own."""
    tables = PAGE.read_text("utf-8").partition("\n## All formats\n")[2]
    lines = tables.partition("\n## XML\n")[0].splitlines()
    rows = [re.split(r" (?<!\\)\| ", line)[0][2:] for line in lines if line[:2] == "| "]
    assert rows.count("case") == 6
    return [row for row in rows if row != "case"]


def test_the_first_table_lists_each_case_that_changes_rows_or_values():
    first, *sections = PAGE.read_text("utf-8").split("\n## ")[1:]
    listed = Counter[str]()
    for anchor, cases in re.findall(r"(?m)^\| \[[^]]+\]\(#(.+)\) \| (.+) \|$", first):
        listed[anchor] += len(cases.split("; "))
    in_tables = {
        section.partition("\n")[0].lower().replace(",", "").replace(" ", "-"): changing
        for section in sections
        if (changing := len(re.findall(r"(?m)^\| .+? \| \*\*(?:rows|values)\*\* \|", section)))
    }
    assert listed == in_tables


IN_SPARK: dict[str, Row] = {}
"""Rows for which a query of Spark reads by Sluice, or Spark writes."""

row = partial(other_rows.row, rows=IN_SPARK)


def _by_sluice(spark: Any, path: Path, schema: str, **options: str) -> Any:
    return spark.read.format("sluice").schema(schema).options(**options).load(str(path))


@row("options that the format does not have")
def _unknown_options(spark, folder):
    (folder / "1.json").write_bytes(b'{"a":1}\n')
    assert values(spark.read.schema("a int").option("sep", ";").json(str(folder))) == [1]
    options = {"fileFormat": "json", "sep": ";"}
    with pytest.raises(Exception, match="does not support it"):
        _by_sluice(spark, folder, "a int", **options).collect()


@row("ORC timestamps, where the writer's zone is not the JVM's")
def _orc_zones(spark, folder):
    with in_zones(spark, "UTC", "America/Los_Angeles"):
        spark.sql("SELECT TIMESTAMP'2024-01-02 03:04:05' AS t").write.orc(str(folder / "x"))
    with in_zones(spark, "UTC", "UTC"):
        (theirs,) = spark.read.orc(str(folder / "x")).selectExpr("unix_seconds(t) t").collect()
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    (ours,) = read_rows(sorted((folder / "x").glob("*.orc")), schema, file_format="orc")
    written = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    assert (theirs.t - written.timestamp(), ours["t"]) == (-8 * 3600, written)


@row("ORC: the schema of a file with a backtick")
def _schema_with_backticks(spark, folder):
    path = folder / "x.orc"
    orc.write_table(pa.table({"a`b": [1]}), path)
    assert spark.read.orc(str(path)).columns == ["a"]
    reader = spark.read.format("sluice").option("fileFormat", "orc")
    assert reader.load(str(path)).columns == ["a`b"]


@row("`modifiedAfter`, `modifiedBefore` in a zone other than UTC")
def _modified(spark, folder):
    path = folder / "1.json"
    path.write_bytes(b'{"a":1}\n')
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC).timestamp()
    os.utime(path, (noon, noon))
    # In Berlin it is 14:00, which is not after 14:30.
    given = {"modifiedAfter": "2024-07-01T14:30:00", "timeZone": "Europe/Berlin"}
    theirs = spark.read.schema("a int").options(**given).json(str(folder))
    ours = _by_sluice(spark, folder, "a int", fileFormat="json", **given)
    both = values(theirs), values(ours)
    assert both == ([1], []), both


@row("directories that are not partitions")
def _directories(spark, folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "1.json").write_bytes(b'{"a":1}\n')
    assert values(spark.read.schema("a int").json(str(folder))) == []
    assert values(_by_sluice(spark, folder, "a int", fileFormat="json")) == [1]


@row("hidden directories that a wildcard matches")
def _hidden(spark, folder):
    for number, name in enumerate(("shown", "_hidden")):
        (folder / name).mkdir()
        (folder / name / "1.json").write_bytes(b'{"a":%d}\n' % number)
    theirs = spark.read.schema("a int").json(str(folder / "*"))
    both = values(theirs), values(_by_sluice(spark, folder / "*", "a int", fileFormat="json"))
    assert both == ([0, 1], [0]), both


@row("`variant` from CSV; intervals")
def _variants(spark, folder):
    (folder / "1.csv").write_bytes(b"5\n")
    assert spark.read.schema("v variant").csv(str(folder)).count() == 1
    read = _by_sluice(spark, folder, "v variant", fileFormat="csv")
    with pytest.raises(Exception, match="cannot be read into columns"):
        read.collect()


OF_TYPES = {
    "Parquet and ORC: text that is not UTF-8",
    "Parquet: geometries, maps with optional keys",
    "Avro: unions of several types other than null",
    "ORC: times finer than a microsecond",
    "Avro: times of a day",
    "Parquet: DuckDB's arrays next to a null",
    "Parquet: integers of 128 bits",
    "Parquet: `UNKNOWN`",
    "Parquet: `TIME`; UUIDs as text",
}
"""Rows with tests next to the formats: blocks/test_logical_types.py, and those of Avro and ORC."""

OF_CORPORA = {
    "Parquet: pages whose checksum does not match",
    "Parquet: Impala's runs that end early",
    "Parquet: variants whose fields are optional",
}
"""Rows of files in the test data of other projects, which are not here: compared once by hand."""

KNOWN = {*(case.row for case in CASES), *other_rows.ROWS, *IN_SPARK, *OF_TYPES, *OF_CORPORA}


def test_every_row_of_the_table_has_a_case_and_every_case_a_row():
    rows = _rows()
    assert len(rows) > 30
    assert [row for row in rows if not any(row.startswith(name) for name in KNOWN)] == []
    of_xml = {d.row for d in DOCUMENTED if d.formats == "xml"}
    named = {*KNOWN, *(d.row for d in DOCUMENTED)} - of_xml
    assert [name for name in named if sum(row.startswith(name) for row in rows) != 1] == []
    xml_table = PAGE.read_text("utf-8").partition("\n## XML\n")[2]
    assert [name for name in of_xml if f"\n| {name}" not in xml_table] == []


@pytest.mark.parametrize("case", CASES, ids=[f"{case.row[:60]}" for case in CASES])
def test_spark_and_sluice_read_what_the_table_says(spark_answers, tmp_path, case):
    paths = case.group.write(tmp_path)

    def by_spark(spark):
        (outcome,) = read_by_spark(spark, case.group, paths, case.mode)
        return plain(outcome)

    by_us = Ours(case.group, case.mode).alone(paths[0])
    expected = spark_answers(by_spark, case.data, case.group.options, str(case.schema), case.mode)
    assert (expected, plain(by_us)) == (case.spark, case.ours), by_us
    assert case.spark != case.ours


@pytest.mark.parametrize("row", other_rows.ROWS)
def test_spark_and_sluice_do_what_the_table_says(spark_answers, tmp_path, row):
    case = other_rows.ROWS[row]
    # The function says what is in the files, whose bytes differ with the version of a library.
    case(lambda question: spark_answers(question, inspect.getsource(case)), tmp_path)


@AS_NEWEST
@pytest.mark.thorough("a session of Spark; the other rows of the table have recorded answers")
@pytest.mark.parametrize("row", IN_SPARK)
def test_spark_s_source_and_sluice_s_do_what_the_table_says(spark, tmp_path, row):
    IN_SPARK[row](spark, tmp_path)
