"""Streams with `trigger(availableNow=True)`, as users run them, and a batch read."""

import json
from collections import Counter

import pytest

import pyspark_sluice
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END, SEVERAL_BATCHES


@SEVERAL_BATCHES
def test_a_failing_sink_and_a_restart_lose_nothing_and_what_lands_meanwhile_waits(lake):
    for i in range(5):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10), folder=f"d{i % 3}/e")
    stored = {}
    failures = iter([False, True, False, False])

    def sink(frame, batch_id):
        rows = [row.id for row in frame.collect()]
        if next(failures):
            message = "the sink is down"
            raise RuntimeError(message)
        if stored:
            # The batch that is left takes longer than the discovery interval.
            (lake.source / "late.json").write_text('{"id": 1000}\n')
        stored[batch_id] = rows

    def run():
        frame = lake.frame(maxFilesPerTrigger=2, discoveryInterval="20ms")
        return lake.finish(frame.writeStream.foreachBatch(sink))

    with pytest.raises(Exception, match="the sink is down"):
        run()
    assert list(stored) == [0]
    query = run()
    assert {batch: len(rows) for batch, rows in stored.items()} == {0: 20, 1: 20, 2: 10}
    assert Counter(i for rows in stored.values() for i in rows) == lake.landed
    (source,) = json.loads(query.lastProgress.json)["sources"]
    assert source["latestOffset"] is not None


def test_a_batch_read_takes_the_same_options_and_needs_no_state(lake):
    for i in range(3):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10), folder="deep")
    reader = lake.spark.read.format("sluice").option("fileFormat", "json")
    rows = reader.schema("id long, text string").load(str(lake.source)).collect()
    assert Counter(row.id for row in rows) == lake.landed
    assert not lake.checkpoint.exists()


@pytest.mark.thorough("variants are the bytes that Spark reads, in test_other_writers.py")
def test_whole_records_arrive_in_spark_as_variants(lake):
    for i in range(3):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    reader = lake.spark.readStream.format("sluice").schema("v variant")
    reader = reader.option("singleVariantColumn", "v").option("fileFormat", "json")
    frame = reader.option("checkpointLocation", str(lake.checkpoint)).load(str(lake.source))
    writer = frame.selectExpr(
        "variant_get(v, '$.id', 'long') AS id", "variant_get(v, '$.text', 'string') AS text"
    ).writeStream
    lake.finish(writer.format("parquet"), str(lake.sink))
    lake.check_exactly_once()
    rows = lake.spark.read.parquet(str(lake.sink)).collect()
    assert all(row.text == f"row {row.id}" for row in rows)


@pytest.mark.thorough("what streams share, not what they read")
def test_streams_of_a_registered_source_write_no_new_name_into_their_shared_environment(
    spark, tmp_path
):
    # Spark has no lock there: two that add a name at once can spoil it for the whole session.
    session = spark.newSession()
    pyspark_sluice.register(session)
    sources = session._jsparkSession.sessionState().dataSourceManager()
    shared = sources.lookupDataSource("sluice").dataSourceCls().envVars()
    before = set(shared.keySet())
    assert before >= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE", "SPARK_LOCAL_DIRS"}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
    place = {"checkpointLocation": str(tmp_path / "checkpoint")}
    reader = session.readStream.format("sluice").schema("id int")
    reader = reader.options(**place, **FOR_RUNS_THAT_END)
    frame = reader.option("fileFormat", "json").load(str(tmp_path / "in"))
    query = frame.writeStream.format("noop").options(**place).trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    assert sum(progress.numInputRows for progress in query.recentProgress) == 1
    assert set(shared.keySet()) == before
    assert "SPARK_BUFFER_SIZE" not in spark.sparkContext.environment


def land(lake, name, *rows):
    (lake.source / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def start(lake):
    reader = lake.spark.readStream.format("sluice").option("fileFormat", "json")
    reader = reader.option("checkpointLocation", str(lake.checkpoint))
    writer = reader.load(str(lake.source)).writeStream.trigger(availableNow=True)

    def sink(frame, batch):
        frame.write.mode("overwrite").json(str(lake.sink / f"batch={batch}"))

    return lake.run(writer.foreachBatch(sink).option("checkpointLocation", str(lake.checkpoint)))


def ingested(lake):
    rows = []
    for path in lake.sink.glob("batch=*/*.json"):
        rows += [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.thorough("test_processes.py has the helper without Spark")
def test_the_helper_starts_a_query_again_with_new_columns_and_for_no_other_error(lake):
    land(lake, "0.json", {"id": 1, "at": {"zip": "a"}})
    pyspark_sluice.run_with_evolution(lambda: start(lake), timeout=PATIENCE)
    land(lake, "1.json", {"id": 2, "new": True, "at": {"zip": "b", "city": "x"}})
    land(lake, "2.json", {"id": 3, "other": [1]})
    pyspark_sluice.run_with_evolution(lambda: start(lake), timeout=PATIENCE)
    assert ingested(lake) == [
        {"id": "1", "at": {"zip": "a"}},
        {"id": "2", "at": {"zip": "b", "city": "x"}, "new": "true"},
        {"id": "3", "other": ["1"]},
    ]
    (lake.source / "bad.json").write_text('{"id": 3')
    with pytest.raises(Exception, match="MalformedDataError"):
        pyspark_sluice.run_with_evolution(lambda: start(lake), timeout=PATIENCE)
