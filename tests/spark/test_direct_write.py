"""Rows that go straight into data files: what Spark sees of them, and what is in them."""

import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

from pyspark_sluice import tables
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END, HAS_READ_LIMITS

SCHEMA = "id long, text string"
IN_PLACE = {"fileFormat": "parquet", "writeCopy": "never"}


def land(lake, sink, **options):
    """An AvailableNow run to its end; rows are written into the sink's directory."""
    usual = {
        "fileFormat": "json",
        "checkpointLocation": str(lake.checkpoint),
        "writeTo": str(lake.sink),
        "writeSchema": SCHEMA,
        **FOR_RUNS_THAT_END,
    }
    reader = lake.spark.readStream.format("sluice").options(**{**usual, **options})
    lake.finish(reader.load(str(lake.source)).writeStream.foreachBatch(sink))


def test_rows_are_in_the_table_once_over_many_batches_and_runs(lake):
    for number in range(6):
        lake.land(f"{number}.json", range(number * 10, number * 10 + 10))
    sink = tables.delta(str(lake.sink))
    land(lake, sink, maxFilesPerTrigger=2)
    lake.land("late.json", range(60, 70))
    land(lake, sink)
    assert lake.in_table() == lake.landed
    assert [each.input for each in sink.inputs()] == [[str(lake.source.resolve())]]
    assert lake.spark.read.parquet(str(lake.sink)).count() == 70


@pytest.mark.sample("delta", why="the same runs; test_removals.py has both kinds of tables")
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_stream_replaces_and_retracts_rows_also_where_it_dies_at_the_commit(lake, tmp_path, kind):
    if kind == "delta":
        sink = tables.delta(str(lake.sink))
    else:
        place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
        catalog = SqlCatalog("x", **place)
        catalog.create_namespace("lake")
        columns = pa.schema([("id", pa.int64()), ("text", pa.string())])
        orders = catalog.create_table("lake.orders", columns)
        sink = tables.iceberg(orders)

    def rows():
        if kind == "delta":
            found = DeltaTable(str(lake.sink)).to_pyarrow_table()
        else:
            found = catalog.load_table("lake.orders").scan().to_arrow()
        return Counter(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))

    def run():
        deleting = {"onDelete": "retract", "retractAfter": "1s", "discoveryAttempts": "1"}
        land(lake, sink, onOverwrite="replace", writeFileColumn="file", **deleting)

    def dies_at_the_commit(is_done):
        add = type(sink).add

        def dying(*arguments):
            if is_done:
                add(*arguments)
            raise RuntimeError("it dies")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(sink), "add", dying)
            with pytest.raises(Exception, match="it dies"):
                run()

    lake.land("1.json", range(10))
    lake.land("2.json", range(10, 20))
    run()
    lake.land("1.json", range(20, 25))
    lake.land("3.json", range(25, 30))
    dies_at_the_commit(is_done=False)
    assert rows() == Counter((i, f"row {i}") for i in range(20))
    dies_at_the_commit(is_done=True)
    run()
    assert rows() == Counter((i, f"row {i}") for i in range(10, 30))
    (lake.source / "2.json").unlink()
    run()
    time.sleep(1.1)
    run()
    assert rows() == Counter((i, f"row {i}") for i in range(20, 30))


@pytest.mark.thorough("partition values and manifests have tests without Spark")
def test_partition_values_and_manifests_mean_the_same_in_every_session(lake, tmp_path):
    spark, zone = lake.spark, "spark.sql.session.timeZone"
    lake.land("0.json", range(3), folder="who=01/at=2024-01-02 03%3A04%3A05")
    manifests = tables.manifest(str(tmp_path / "manifests"))
    more = {"writeSchema": f"{SCHEMA}, who string, at timestamp", "writePartitionBy": "who,at"}
    before = spark.conf.get(zone)
    try:
        spark.conf.set(zone, "America/New_York")
        land(lake, manifests, **more)
        # What somebody else has put there is in no batch.
        (written,) = lake.sink.glob("*/*/*.parquet")
        pq.write_table(pa.table({"id": [99]}), written.with_name("other.parquet"))
        spark.conf.set(zone, "Asia/Tokyo")
        rows = tables.read(str(tmp_path / "manifests"))
        assert sorted(row.id for row in rows.collect()) == [0, 1, 2]
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
