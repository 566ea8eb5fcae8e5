"""Each row of the table of differences is true: Spark reads the one thing, Sluice the other."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

from pyspark_sluice.tests.reader.files.formats.xml.shown_differences import ROWS as XML_ROWS
from pyspark_sluice.tests.reader.readings import other_rows, rows_in_spark
from pyspark_sluice.tests.reader.readings.documented import DOCUMENTED
from pyspark_sluice.tests.reader.readings.of_sluice import Ours
from pyspark_sluice.tests.reader.readings.of_spark import read_by_spark
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


KNOWN = {*(case.row for case in CASES), *other_rows.ROWS, *rows_in_spark.ROWS}


def test_every_row_of_the_table_has_a_case_and_every_case_a_row():
    rows = _rows()
    assert len(rows) > 30
    assert [row for row in rows if not any(row.startswith(name) for name in KNOWN)] == []
    of_xml = {d.row for d in DOCUMENTED if d.formats == "xml"}
    named = {*KNOWN, *(d.row for d in DOCUMENTED)} - of_xml
    assert [name for name in named if sum(row.startswith(name) for row in rows) != 1] == []
    assert of_xml <= XML_ROWS.keys()


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
@pytest.mark.parametrize("row", rows_in_spark.ROWS)
def test_spark_s_source_and_sluice_s_do_what_the_table_says(spark, tmp_path, row):
    rows_in_spark.ROWS[row](spark, tmp_path)
