"""The options of Spark's readers, and each row of the table in docs/from-spark.md."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyspark_sluice.connector.options.aliases import AUTO_LOADER, SPARK, WITHOUT_EFFECT
from pyspark_sluice.connector.options.model import option_names
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END, SEVERAL_BATCHES

PAGE = Path(__file__).parent.parent.parent / "docs" / "from-spark.md"
SCHEMA = "id long, text string"
CASES: dict[str, Callable[[Any], None]] = {}
ELSEWHERE = {
    "values that Spark's readers silently lose": "reader/readings/test_tables.py",
    "a listing that fails": "enumerator/files/test_enumerator.py",
    "Spark's own vectorised readers": "spark/test_direct_write.py",
}
"""Rows that are shown by tests of their own."""


def row(name: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def known(case):
        CASES[name] = case
        return case

    return known


def read_by(lake, source, **options):
    """The rows of an AvailableNow run, batch by batch."""
    given = {"schema": SCHEMA, **options}
    schema = given.pop("schema")
    checkpoint = str(lake.checkpoint / source)
    reader = lake.spark.readStream.format("json" if source == "spark" else "sluice")
    if source == "sluice":
        reader = reader.options(fileFormat="json", checkpointLocation=checkpoint)
        reader = reader.options(**FOR_RUNS_THAT_END)
    reader = reader.options(**given)
    frame = (reader if schema is None else reader.schema(schema)).load(str(lake.source))
    batches: list[Any] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: batches.append(batch.collect()))
    writer = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint)
    query = lake.run(writer)
    assert query.awaitTermination(PATIENCE)
    return [sorted(row.id for row in batch if row.id is not None) for batch in batches]


def fails(lake, source, text, **options):
    with pytest.raises(Exception, match=text):
        read_by(lake, source, **options)


@row("`mode`")
def _mode(lake):
    (lake.source / "bad.json").write_text('{"id": 1}\nbad\n')
    assert read_by(lake, "spark") == [[1]]
    fails(lake, "sluice", "bad.json")


@row("an option that the format does not have")
def _unknown_option(lake):
    lake.land("0.json", range(3))
    assert read_by(lake, "spark", sep=";") == [[0, 1, 2]]
    fails(lake, "sluice", "sep", sep=";")


@row("without a schema")
def _schema(lake):
    lake.land("0.json", range(3))
    fails(lake, "spark", "[Ss]chema must be specified", schema=None)
    found = read_by(lake, "sluice", schema=None, inferColumnTypes="true")
    assert found == [[0, 1, 2]]


@row("`maxFilesPerTrigger`")
def _files(lake):
    lake.land("0.json", range(2000))
    limit = {"maxFilesPerTrigger": "1"}
    assert len(read_by(lake, "spark", **limit)) == 1
    found = read_by(lake, "sluice", maxBytesPerTrigger="20k", **limit)
    assert len(found) > 1
    assert sorted(i for batch in found for i in batch) == [*range(2000)]


@row("`maxBytesPerTrigger`")
def _bytes(lake):
    for number in range(2):
        lake.land(f"{number}.json", range(number * 100, number * 100 + 100))
    both = {"maxFilesPerTrigger": "3", "maxBytesPerTrigger": "2048"}
    fails(lake, "spark", "maxBytesPerTrigger", **both)
    # A soft limit: one file is larger than it, and is taken whole.
    assert max(map(len, read_by(lake, "spark", maxBytesPerTrigger="2048"))) == 100
    assert max(map(len, read_by(lake, "sluice", **both))) < 100


@row("`maxFileAge`")
def _age(lake):
    lake.land("new.json", range(3))
    assert read_by(lake, "spark") == [[0, 1, 2]]
    assert read_by(lake, "sluice") == [[0, 1, 2]]
    late = lake.land("late.json", range(3, 6))
    month_ago = time.time() - 30 * 86_400
    os.utime(late, (month_ago, month_ago))
    assert read_by(lake, "spark") == []
    assert read_by(lake, "sluice") == [[3, 4, 5]]


@row("directories without `key=value` names")
def _directories(lake):
    lake.land("0.json", range(3), folder="below")
    assert read_by(lake, "spark") == []
    assert read_by(lake, "spark", recursiveFileLookup="true") == [[0, 1, 2]]
    assert read_by(lake, "sluice") == [[0, 1, 2]]


def test_every_row_of_the_table_is_shown_by_a_test():
    text = PAGE.read_text(encoding="utf-8").partition("except for these differences.")[2]
    lines = text.partition("\n## ")[0].splitlines()
    rows = [re.split(r" (?<!\\)\| ", line)[0][2:] for line in lines if line.startswith("| ")]
    assert len(rows) == len(CASES) + len(ELSEWHERE) + 1  # the heading is empty
    named = [*CASES, *ELSEWHERE]
    assert [name for name in named if sum(found.startswith(name) for found in rows) != 1] == []
    tests = Path(__file__).parent.parent
    assert [path for path in ELSEWHERE.values() if not (tests / path).is_file()] == []


OF_SEVERAL_BATCHES = ("`maxFilesPerTrigger`", "`maxBytesPerTrigger`")


@pytest.mark.thorough("queries of Spark's own source; ours has tests of each option")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=SEVERAL_BATCHES) if name in OF_SEVERAL_BATCHES else name
        for name in CASES
    ],
)
def test_spark_and_sluice_do_what_the_table_says(lake, name):
    CASES[name](lake)


OBJECTS = (
    "catalyst.csv.CSVOptions",
    "catalyst.json.JSONOptions",
    "execution.datasources.parquet.ParquetOptions",
    "execution.datasources.orc.OrcOptions",
    "execution.datasources.text.TextOptions",
    "execution.datasources.FileIndexOptions",
)
# FileStreamOptions and FileSourceOptions do not list theirs.
OTHERS = """
    maxFilesPerTrigger maxBytesPerTrigger maxFileAge latestFirst fileNameOnly cleanSource
    sourceArchiveDir maxCachedFiles discardCachedInputRatio ignoreCorruptFiles ignoreMissingFiles
"""


def test_every_option_of_spark_s_readers_is_known(spark):
    java = spark._jvm.java.lang
    loader = java.Thread.currentThread().getContextClassLoader()
    names = {name.lower() for name in OTHERS.split()}
    for name in OBJECTS:
        options = java.Class.forName(f"org.apache.spark.sql.{name}$", True, loader)
        listed = options.getField("MODULE$").get(None).getAllOptions().mkString(",")
        names |= {one.lower() for one in listed.split(",")}
    assert len(names) > 60
    here = {*option_names(), *(known.name.lower() for known in (*SPARK, *AUTO_LOADER))}
    here |= {name.lower() for name in WITHOUT_EFFECT}
    assert sorted(names - here) == []
