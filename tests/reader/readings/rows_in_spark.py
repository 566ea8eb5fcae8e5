"""Rows of the table of differences for which a query of Spark reads by Sluice, or Spark writes."""

from __future__ import annotations

import datetime as dt
import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from pyspark_sluice.tests.reader.files.reading import read_rows
from pyspark_sluice.tests.reader.readings import other_rows
from pyspark_sluice.tests.reader.readings.other_rows import Row, values

ROWS: dict[str, Row] = {}
row = partial(other_rows.row, rows=ROWS)


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
    from pyspark_sluice.tests.reader.readings.of_spark import in_zones

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
