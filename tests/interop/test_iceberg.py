"""Iceberg tables between Sluice and Spark's own connector: who reads what the other has written."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pyspark_sluice.errors import TableError
from pyspark_sluice.tests.interop.conftest import DAY, row, rows, write_every_type

pytestmark = [
    pytest.mark.drivers,
    pytest.mark.thorough("needs Maven, and a Spark that both connectors know: `make interop`"),
]


class Table:
    """A table that Spark's connector makes, and both open."""

    def __init__(self, lake: Any, catalog: SqlCatalog, name: str) -> None:
        self.lake, self.catalog = lake, catalog
        self.name = name

    def sql(self, statement: str) -> Any:
        return self.lake.sql(statement.format(table=f"lake.db.{self.name}", name=f"db.{self.name}"))

    @property
    def ours(self) -> Any:
        return self.catalog.load_table(f"db.{self.name}")

    @property
    def rows(self) -> list[dict[str, Any]]:
        return rows(self.sql("SELECT * FROM {table}"))

    @property
    def ids(self) -> list[int]:
        return [one["id"] for one in self.rows]


@pytest.fixture
def table(lake: Any, catalog: SqlCatalog, request: pytest.FixtureRequest) -> Table:
    table = Table(lake, catalog, f"t{abs(hash(request.node.nodeid))}")
    definition = getattr(request, "param", columns())
    table.sql(f"CREATE TABLE {{table}} {definition}")
    return table


def columns(*more: str, required: str = "") -> str:
    return " ".join([f"(id bigint{required}, name string, day date) USING iceberg", *more])


def of_version(version: int) -> str:
    return columns(f"TBLPROPERTIES ('format-version' = '{version}')")


def test_spark_and_pyiceberg_read_every_type_of_our_table(lake, catalog, feed):
    written = write_every_type(feed.landing / "0.parquet", small=False)
    source = lake.read.parquet(str(feed.landing))
    source.limit(0).writeTo("lake.db.types").using("iceberg").create()
    feed.options = {"fileFormat": "parquet"}
    table = Table(lake, catalog, "types")
    feed.run_into(table.ours)
    assert repr(table.rows) == repr(rows(source))
    by_pyiceberg = table.ours.scan().to_arrow().sort_by("id").cast(written.schema)
    assert repr(by_pyiceberg.to_pylist()) == repr(written.to_pylist())


PARTITIONS = [
    "day", "name", "bucket(4, id)", "bucket(4, name)", "truncate(10, id)", "truncate(2, name)",
    "years(day)", "months(day)", "days(day)",
]  # fmt: skip


@pytest.mark.parametrize(
    "table", [columns(f"PARTITIONED BY ({p})") for p in PARTITIONS], indirect=True, ids=PARTITIONS
)
def test_spark_finds_the_rows_of_each_partition(table, feed):
    names = ["", None, "ä 日本", "a/b=c?%", "abc", "abd", "x" * 200]
    days = ["0001-01-01", None, "1969-12-31", "1970-01-01", "2024-02-29", DAY, "9999-12-31"]
    landed = [
        {"id": number, "name": name, "day": day}
        for number, (name, day) in enumerate(zip(names, days, strict=True), start=-3)
    ]
    feed.land(*landed)
    feed.run_into(table.ours)
    assert table.ids == [one["id"] for one in landed]
    for one in landed:
        # Spark leaves out each partition that its own transform says cannot have the row.
        name = f"name = '{one['name']}'" if one["name"] is not None else "name IS NULL"
        day = f"day = DATE '{one['day']}'" if one["day"] is not None else "day IS NULL"
        for where in (f"id = {one['id']}", name, day):
            selected = rows(table.sql(f"SELECT * FROM {{table}} WHERE {where}"))
            assert one["id"] in [other["id"] for other in selected], where


MERGE_ON_READ = (
    "ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', "
    "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')"
)
EXPIRE = (
    "CALL lake.system.expire_snapshots(table => '{name}', retain_last => 1, "
    "older_than => TIMESTAMP '2999-01-01')"
)
STATEMENTS = {
    "rewrite": ["CALL lake.system.rewrite_data_files('{name}')"],
    "rewrite manifests": ["CALL lake.system.rewrite_manifests('{name}')"],
    "expire": [EXPIRE],
    "delete": ["DELETE FROM {table} WHERE id = 1"],
    "position deletes": [MERGE_ON_READ, "DELETE FROM {table} WHERE id = 1"],
    "update": [MERGE_ON_READ, "UPDATE {table} SET name = 'u' WHERE id = 2"],
    "merge": [
        "MERGE INTO {table} t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    ],
    "add a column": ["ALTER TABLE {table} ADD COLUMN added int"],
    "drop a column": ["ALTER TABLE {table} DROP COLUMN day"],
    "rename a column": ["ALTER TABLE {table} RENAME COLUMN small TO old"],
    "reorder": ["ALTER TABLE {table} ALTER COLUMN day FIRST"],
    "widen": ["ALTER TABLE {table} ALTER COLUMN small TYPE bigint"],
    "partition": ["ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)"],
    "order": ["ALTER TABLE {table} WRITE ORDERED BY id"],
    "tag": ["ALTER TABLE {table} CREATE TAG kept", "ALTER TABLE {table} CREATE BRANCH other"],
}
SMALL = "(id bigint, name string, day date, small int) USING iceberg"


@pytest.mark.parametrize("table", [SMALL], indirect=True, ids=[""])
@pytest.mark.parametrize("statements", STATEMENTS.values(), ids=STATEMENTS)
def test_our_query_goes_on_after_statements_of_spark(table, feed, statements):
    for number in (1, 2):
        feed.land(row(number))
        feed.run_into(table.ours)
    for statement in statements:
        table.sql(statement)
    before = table.rows
    feed.land(row(3))
    assert feed.run_into(table.ours) == 1
    assert feed.run_into(table.ours) == 0
    after = table.rows
    assert [{k: one[k] for k in before[0]} for one in after if one["id"] != 3] == before
    assert [one["id"] for one in after].count(3) == 1
    assert table.sql("SELECT * FROM {table}.snapshots").count() >= 2


def test_our_query_goes_on_after_a_rollback_once_its_batches_are_there_again(table, feed, home):
    for number in (1, 2, 3):
        feed.land(row(number))
        feed.run_into(table.ours)
    first, *_ = table.sql("SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").head(1)
    table.sql(f"CALL lake.system.rollback_to_snapshot('{{name}}', {first.snapshot_id})")
    assert table.ids == [1]
    for more in ((), (row(4),)):
        feed.land(*more)
        with pytest.raises(TableError, match=r"the table is behind.*sluice add-batches"):
            feed.run_into(table.ours)
    command = [sys.executable, "-m", "pyspark_sluice", "add-batches", "--yes", "--force"]
    catalog = {"TYPE": "sql", "URI": f"sqlite:///{home}/catalog.db", "WAREHOUSE": f"file://{home}"}
    subprocess.run(
        [*command, str(feed.root / "checkpoint"), f"iceberg:lake.db.{table.name}"],
        env=os.environ | {f"PYICEBERG_CATALOG__LAKE__{key}": catalog[key] for key in catalog},
        check=True,
    )
    assert feed.run_into(table.ours) == 1
    assert table.ids == [1, 2, 3, 4]


def test_spark_reads_as_of_each_of_our_batches(table, feed):
    for number in (1, 2):
        feed.land(row(number))
        feed.run_into(table.ours)
    snapshots = table.sql("SELECT snapshot_id FROM {table}.snapshots").collect()
    as_of = "SELECT * FROM {{table}} VERSION AS OF {}"
    assert {1, 2} <= {table.sql(as_of.format(one.snapshot_id)).count() for one in snapshots}


WRITTEN = {
    "version 1": of_version(1),
    "two partition fields": columns("PARTITIONED BY (days(day), bucket(2, id))"),
    "statistics off": columns("TBLPROPERTIES ('write.metadata.metrics.default' = 'none')"),
}


@pytest.mark.parametrize("table", WRITTEN.values(), indirect=True, ids=WRITTEN)
def test_our_query_writes_into_a_table_that_spark_has_made(table, feed):
    feed.land(row(1), row(2))
    feed.run_into(table.ours)
    assert table.ids == [1, 2]


@pytest.mark.parametrize("table", [columns(required=" NOT NULL")], indirect=True, ids=[""])
def test_rows_without_a_null_fit_a_required_column(table, feed):
    feed.land(row(1))
    feed.run_into(table.ours)
    feed.land(row(2))
    feed.run_into(table.ours)
    assert table.ids == [1, 2]


@pytest.mark.parametrize("table", [of_version(3)], indirect=True, ids=["version 3"])
def test_a_table_of_version_3_is_refused_by_name(table, feed):
    feed.land(row(1))
    with pytest.raises(TableError, match="version 3"):
        feed.run_into(table.ours)
    assert table.rows == []
