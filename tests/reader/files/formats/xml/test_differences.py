"""Each row of the table of differences in docs/differences.md, read by Spark and by us."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from pyspark_sluice.tests.reader.files.formats.xml.shown_differences import (
    BAD,
    CASES,
    OTHERS,
    ROWS,
    outcome,
)
from pyspark_sluice.tests.reader.files.formats.xml.two_readers import (
    of_spark,
    own_rows,
    written,
)


@pytest.mark.parametrize(
    ("ddl", "content", "theirs", "ours"),
    [case for _, *case in CASES],
    ids=[row for row, *_ in CASES],
)
def test_spark_and_we_differ_as_the_table_says(spark_answers, tmp_path, ddl, content, theirs, ours):
    ddl += f", {BAD} string"
    [path] = written(tmp_path / "in", [content])
    by_spark = partial(spark_answers, lambda s: of_spark(s, path.parent, ddl), path, ddl)
    assert outcome(lambda: by_spark().get(path.name, [])) == theirs
    assert outcome(lambda: own_rows(path, ddl)) == ours


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
