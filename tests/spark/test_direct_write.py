"""Rows that go straight into data files: what Spark sees of them, and what is in them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from pyspark_sluice import tables
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END, HAS_READ_LIMITS

SCHEMA = "id long, text string"
IN_PLACE = {"fileFormat": "parquet", "writeCopy": "never"}


def files_of(lake, **options):
    """The stream of files; rows are written into the sink's directory."""
    usual = {
        "fileFormat": "json",
        "checkpointLocation": str(lake.checkpoint),
        "writeTo": str(lake.sink),
        "writeSchema": SCHEMA,
        **FOR_RUNS_THAT_END,
    }
    reader = lake.spark.readStream.format("sluice")
    for key, value in {**usual, **options}.items():
        if value is not None:
            reader = reader.option(key, str(value))
    return reader.load(str(lake.source))


def land(lake, sink, **options):
    """An AvailableNow run to its end."""
    writer = files_of(lake, **options).writeStream.foreachBatch(sink)
    writer = writer.trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    assert query.awaitTermination(PATIENCE)


def in_table(lake):
    rows = DeltaTable(str(lake.sink)).to_pyarrow_table(columns=["id"])
    return Counter(rows["id"].to_pylist())


def test_rows_are_in_the_table_once_over_many_batches_and_runs(lake):
    for number in range(6):
        lake.land(f"{number}.json", range(number * 10, number * 10 + 10))
    land(lake, tables.delta(str(lake.sink)), maxFilesPerTrigger=2)
    lake.land("late.json", range(60, 70))
    land(lake, tables.delta(str(lake.sink)))
    assert in_table(lake) == lake.landed
    assert lake.spark.read.parquet(str(lake.sink)).count() == 70


@pytest.mark.thorough("tables in buckets have tests without Spark")
def test_an_iceberg_table_in_a_bucket_takes_files_with_the_credentials_that_it_is_given(
    lake, tmp_path, bucket, server
):
    storage = server.options
    properties = {
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"s3://{bucket}/lake",
        "s3.endpoint": server.url,
        "s3.region": storage["client_kwargs"]["region_name"],
        "s3.access-key-id": storage["key"],
        "s3.secret-access-key": storage["secret"],
    }
    catalog = SqlCatalog("x", **properties)
    catalog.create_namespace("lake")
    table = catalog.create_table("lake.orders", pa.schema([("id", pa.int64())]))
    with table.update_spec() as update:
        update.add_field("id", "bucket[2]")
    sink = tables.iceberg(table, storage_options=storage)
    options = {"writeTo": f"s3://{bucket}/rows", "storageOptions": json.dumps(storage)}
    for number in range(2):
        lake.land(f"{number}.json", range(number * 10, number * 10 + 10))
        land(lake, sink, **options)
    table = catalog.load_table("lake.orders")
    rows = table.scan().to_arrow()
    assert Counter(rows["id"].to_pylist()) == lake.landed
    assert rows.column_names == ["id", "text"]
    parts = Counter(part["id_bucket_2"] for part in table.inspect.files()["partition"].to_pylist())
    assert parts == {0: 2, 1: 2}
    # The tasks wrote them so, and nothing was written again at the commit.
    names = [path.rpartition("/")[2] for path in table.inspect.files()["file_path"].to_pylist()]
    assert not [name for name in names if name.startswith("ids-")]


@pytest.mark.thorough("manifests have tests without Spark")
def test_manifests_give_spark_exactly_the_files_of_their_batches(lake, tmp_path):
    lake.land("0.json", range(10), folder="who=a")
    lake.land("1.json", range(10, 20), folder="who=b")
    manifests = tables.manifest(str(tmp_path / "manifests"))
    more = {"writeSchema": f"{SCHEMA}, who string", "writePartitionBy": "who"}
    land(lake, manifests, maxFilesPerTrigger=1, **more)
    # What somebody else has put there is in no batch.
    pq.write_table(pa.table({"id": [99], "text": ["x"]}), lake.sink / "who=a" / "other.parquet")
    rows = tables.read(str(tmp_path / "manifests")).collect()
    assert Counter(row.id for row in rows) == lake.landed
    assert {row.id: row.who for row in rows} == {i: "ab"[i // 10] for i in range(20)}


@pytest.mark.thorough("partition values have tests without Spark")
def test_partition_values_mean_the_same_in_every_session(lake, tmp_path):
    spark, zone = lake.spark, "spark.sql.session.timeZone"
    lake.land("0.json", range(3), folder="who=01/at=2024-01-02 03%3A04%3A05")
    manifests = tables.manifest(str(tmp_path / "manifests"))
    more = {"writeSchema": f"{SCHEMA}, who string, at timestamp", "writePartitionBy": "who,at"}
    before = spark.conf.get(zone)
    try:
        spark.conf.set(zone, "America/New_York")
        land(lake, manifests, **more)
        spark.conf.set(zone, "Asia/Tokyo")
        rows = tables.read(str(tmp_path / "manifests"))
        named = spark.read.schema(f"{SCHEMA}, who string, at timestamp").parquet(str(lake.sink))
        for frame in (rows, named):
            found = frame.selectExpr("who", "unix_seconds(cast(at as timestamp)) at").distinct()
            assert [tuple(row) for row in found.collect()] == [("01", 1704182645)]
    finally:
        spark.conf.set(zone, before)


def parquet(lake, name, **columns):
    """A Parquet file of the user's below the directory that is read."""
    path = Path(lake.source) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=2)


def ids_of(first, count=5):
    return pa.array(range(first, first + count), pa.int64())


@pytest.mark.thorough("test_direct_write.py of the source has the same without Spark")
@pytest.mark.effect_of("writeCopy")
def test_parquet_files_that_need_no_change_become_part_of_a_table_where_they_are(lake, tmp_path):
    for number in range(4):
        parquet(lake, f"day={number}/{number}.parquet", id=ids_of(5 * number), x=[0.5] * 5)
    parquet(lake, "day=0/empty.parquet", id=ids_of(0, 0), x=pa.array([], pa.float64()))
    sink = tables.delta(str(lake.source))
    options = {**IN_PLACE, "writeSchema": "id long, x double, day int"}
    if HAS_READ_LIMITS:
        options["maxRowsPerTrigger"] = "7"
    land(lake, sink, **options)
    parquet(lake, "day=9/late.parquet", id=ids_of(20), x=[1.5] * 5)
    land(lake, sink, **options)
    land(lake, sink, **options)
    table = DeltaTable(str(lake.source))
    found = table.to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == [*range(25)]
    assert set(found["day"].to_pylist()) == {"0", "1", "2", "3", "9"}
    written = {Path(uri).name for uri in table.file_uris()}
    assert written == {"0.parquet", "1.parquet", "2.parquet", "3.parquet", "late.parquet"}
    assert not Path(lake.sink).exists()
    # Without read limits each of the runs that found files is one batch.
    assert table.history()[0]["version"] >= (4 if HAS_READ_LIMITS else 1)
    actions = table.get_add_actions(flatten=True)
    assert {"min.id", "num_records"} <= set(actions.schema.names)


@pytest.mark.thorough("manifests have tests without Spark")
def test_spark_reads_a_batch_s_files_through_a_reader_of_its_own(lake):
    (lake.source / "odd {name}.xml").write_text("<r><b><t>one</t></b><b><t>two</t></b></r>")
    seen = []
    reader = lake.spark.readStream.format("sluice").option("fileFormat", "binaryFile")
    reader = reader.option("checkpointLocation", str(lake.checkpoint))
    frame = reader.schema("path string, length long").load(str(lake.source))

    def sink(batch, _):
        seen.extend(tables.frame(batch, "xml", {"rowTag": "b"}, schema="t string").collect())

    writer = frame.writeStream.foreachBatch(sink).trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    assert query.awaitTermination(PATIENCE)
    assert [row.t for row in seen] == ["one", "two"]


@pytest.mark.spark
@pytest.mark.drivers
@pytest.mark.thorough("the page's program; its steps are tested here one by one")
def test_the_example_goes_from_an_empty_directory_to_a_table_that_another_engine_reads(tmp_path):
    program = Path(tables.__file__).parent.parent / "examples/quickstart_table/quickstart_table.py"
    ran = subprocess.run(
        [sys.executable, program, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert ran.stdout.strip().endswith("1000 rows in the table")
    files = DeltaTable(str(tmp_path / "home" / "table")).file_uris()
    assert duckdb.read_parquet(files).aggregate("count(*), sum(order_id)").fetchall() == [
        (1000, 499500)
    ]
