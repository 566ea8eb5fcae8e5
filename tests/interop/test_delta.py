"""Delta tables between Sluice and Spark's own connector: who reads what the other has written."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyspark_sluice.errors import TableError
from pyspark_sluice.tests.interop.conftest import Feed, row, rows, write_every_type

pytestmark = [
    pytest.mark.drivers,
    pytest.mark.thorough("needs Maven, and a Spark that both connectors know: `make interop`"),
]


def by_id(table: pa.Table) -> str:
    return repr(table.sort_by("id").to_pylist())


def test_every_engine_reads_every_type_of_our_table(lake, feed):
    path = feed.root / "table"
    written = write_every_type(feed.landing / "0.parquet", small=True)
    feed.options = {"fileFormat": "parquet"}
    feed.run(f"delta:{path}")
    by_spark = lake.read.format("delta").load(str(path))
    source = lake.read.parquet(str(feed.landing)).select(*by_spark.columns)
    assert by_spark.schema.simpleString() == source.schema.simpleString()
    assert repr(rows(by_spark)) == repr(rows(source))
    table = DeltaTable(str(path))
    expected = by_id(written)
    assert by_id(table.to_pyarrow_table().select(written.column_names)) == expected
    by_polars = pl.read_delta(str(path)).to_arrow().cast(written.schema)
    assert by_id(by_polars) == expected
    by_duckdb = duckdb.sql(f"SELECT * FROM read_parquet({table.file_uris()})").to_arrow_table()
    assert by_id(by_duckdb.select(written.column_names).cast(written.schema)) == expected


@pytest.mark.parametrize("value", ["", None, " ", "a/b=c?%", "ä 日本", "a:b", "x" * 200, "."])
def test_spark_finds_the_rows_of_any_partition(lake, feed, value):
    path = feed.root / "table"
    feed.land(row(1, value), row(2, "other"))
    feed.run(f"delta:{path}", writePartitionBy="name")
    table = lake.read.format("delta").load(str(path))
    # Hive's layout has one directory for both.
    expected = value or None
    assert [one["name"] for one in rows(table)] == [expected, "other"]
    where = "name is null" if expected is None else f"name = '{value}'"
    assert [one["id"] for one in rows(table.where(where))] == [1]


def test_spark_reads_a_table_that_has_grown(lake, feed):
    path = feed.root / "table"
    feed.options = {"fileFormat": "json", "inferColumnTypes": "true"}
    feed.land({"id": 1})
    feed.run(f"delta:{path}")
    feed.land({"id": 2, "note": "new", "inner": {"x": 1}})
    feed.run(f"delta:{path}")
    old, new = rows(lake.read.format("delta").load(str(path)))
    assert old == {"id": 1, "note": None, "inner": None}
    assert new == {"id": 2, "note": "new", "inner": {"x": 1}}


STATEMENTS = {
    "optimize": "OPTIMIZE {table}",
    "z-order": "OPTIMIZE {table} ZORDER BY (id)",
    "vacuum": "VACUUM {table} RETAIN 0 HOURS",
    "delete": "DELETE FROM {table} WHERE id = 1",
    "update": "UPDATE {table} SET name = 'u' WHERE id = 2",
    "merge": "MERGE INTO {table} t USING (SELECT 2L AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE",
    "add column": "ALTER TABLE {table} ADD COLUMN added int",
    "set properties": "ALTER TABLE {table} SET TBLPROPERTIES (delta.checkpointInterval = 3)",
    "change data feed": "ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
}


def test_our_query_goes_on_after_a_restore_once_its_batches_are_there_again(lake, feed):
    path = feed.root / "table"
    for number in (1, 2):
        feed.land(row(number))
        feed.run(f"delta:{path}")
    lake.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0")
    feed.land(row(3))
    with pytest.raises(TableError, match=r"the table is behind.*sluice add-batches"):
        feed.run(f"delta:{path}")
    command = [sys.executable, "-m", "pyspark_sluice", "add-batches", "--yes", "--force"]
    subprocess.run([*command, str(feed.root / "checkpoint"), f"delta:{path}"], check=True)
    assert feed.run(f"delta:{path}") == 1
    table = lake.read.format("delta").load(str(path))
    assert [one["id"] for one in rows(table)] == [1, 2, 3]


def test_a_clone_by_spark_knows_the_inputs_of_its_table(lake, feed):
    path, clone = feed.root / "table", feed.root / "clone"
    feed.land(row(1))
    feed.run(f"delta:{path}")
    lake.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{path}`")
    with pytest.raises(TableError, match="rows of this input by another query"):
        feed.run(f"delta:{clone}", checkpointLocation=str(feed.root / "second"))
    lake.sql(f"OPTIMIZE delta.`{path}`")
    with pytest.raises(TableError, match="rows of this input by another query"):
        feed.run(f"delta:{path}", checkpointLocation=str(feed.root / "second"))


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_our_query_goes_on_after_a_statement_of_spark(lake, feed, statement):
    path = feed.root / "table"
    for number in (1, 2):
        feed.land(row(number))
        feed.run(f"delta:{path}")
    lake.sql(statement.format(table=f"delta.`{path}`"))
    before = rows(lake.read.format("delta").load(str(path)))
    feed.land(row(3))
    assert feed.run(f"delta:{path}") == 1
    assert feed.run(f"delta:{path}") == 0
    after = rows(lake.read.format("delta").load(str(path)))
    assert [one for one in after if one["id"] != 3] == before
    assert [one["id"] for one in after].count(3) == 1
    first = lake.read.format("delta").option("versionAsOf", 0).load(str(path))
    history = lake.sql(f"DESCRIBE HISTORY delta.`{path}`").count()
    assert history >= 4
    if statement != STATEMENTS["vacuum"]:
        assert first.count() <= 1


def make(lake: Any, feed: Feed, definition: str, *alter: str) -> str:
    path = f"{feed.root / 'table'}"
    lake.sql(f"CREATE TABLE delta.`{path}` {definition}")
    for statement in alter:
        lake.sql(f"ALTER TABLE delta.`{path}` {statement}")
    return path


def properties(*pairs: str) -> str:
    return f"{PLAIN} TBLPROPERTIES ({', '.join(pairs)})"


PLAIN = "(id long, name string, day date) USING delta"
WRITTEN = {
    "plain": [PLAIN],
    "required column": ["(id long NOT NULL, name string, day date) USING delta"],
    "change data feed": [properties("'delta.enableChangeDataFeed' = 'true'")],
    "deletion vectors": [properties("'delta.enableDeletionVectors' = 'true'")],
    "checkpoints of version 2": [properties("'delta.checkpointPolicy' = 'v2'")],
}


@pytest.mark.parametrize("steps", WRITTEN.values(), ids=WRITTEN)
def test_our_query_writes_into_a_table_that_spark_has_made_and_deletes_from(lake, feed, steps):
    path = make(lake, feed, *steps)
    feed.land(row(1), row(2))
    feed.run(f"delta:{path}")
    assert [one["id"] for one in rows(lake.read.format("delta").load(path))] == [1, 2]
    lake.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    feed.land(row(3))
    feed.run(f"delta:{path}")
    assert [one["id"] for one in rows(lake.read.format("delta").load(path))] == [2, 3]


def test_our_query_writes_into_a_table_that_only_grows(lake, feed):
    path = make(lake, feed, properties("'delta.appendOnly' = 'true'") + " PARTITIONED BY (day)")
    feed.land(row(1), row(2))
    feed.run(f"delta:{path}", writePartitionBy="day")
    assert [one["id"] for one in rows(lake.read.format("delta").load(path))] == [1, 2]


# Each with what the error names.
REFUSED = {
    "partitions of its own": ([f"{PLAIN} PARTITIONED BY (day)"], "partition columns: day"),
    "constraint": ([PLAIN, "ADD CONSTRAINT small CHECK (id < 9)"], r"constraints\.small=id < 9"),
    "generated column": (
        ["(id long, day date, y int GENERATED ALWAYS AS (year(day))) USING delta"],
        "generationExpression of y",
    ),
    "identity": (
        ["(k long GENERATED ALWAYS AS IDENTITY, id long, day date) USING delta"],
        "identityColumns",
    ),
    "column mapping": (
        [properties("'delta.columnMapping.mode' = 'name'")],
        "columnMapping.mode=name",
    ),
    "in-commit timestamps": (
        [properties("'delta.enableInCommitTimestamps' = 'true'")],
        "inCommitTimestamp",
    ),
    "row tracking": ([properties("'delta.enableRowTracking' = 'true'")], "rowTracking"),
    "liquid clustering": ([f"{PLAIN} CLUSTER BY (id)"], "clustering"),
    "type widening": ([properties("'delta.enableTypeWidening' = 'true'")], "typeWidening"),
    "defaults": (
        [properties("'delta.feature.allowColumnDefaults' = 'supported'")],
        "allowColumnDefaults",
    ),
}


@pytest.mark.parametrize(("steps", "named"), REFUSED.values(), ids=REFUSED)
def test_a_table_with_what_we_cannot_keep_is_refused_by_name(lake, feed, steps, named):
    path = make(lake, feed, *steps)
    feed.land(row(1))
    with pytest.raises(TableError, match=named):
        feed.run(f"delta:{path}")
    assert rows(lake.read.format("delta").load(path)) == []
