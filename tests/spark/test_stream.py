"""The main job: a directory ingested exactly once, under every trigger."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import SEVERAL_BATCHES


def _sources(query):
    return json.loads(query.lastProgress.json)["sources"][0]


def test_available_now_honours_the_limits_and_ingests_everything_once(lake):
    for i in range(25):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10), folder=f"d{i % 3}/e")
    query = lake.drain(maxFilesPerTrigger=10)
    assert lake.batches() == [10, 10, 5]
    lake.check_exactly_once()
    assert _sources(query)["latestOffset"] is not None


def test_available_now_reads_nothing_newer_than_the_start_of_the_run(lake):
    for i in range(4):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    seen = []

    def sink(frame, batch_id):
        # Three more batches follow, and each takes longer than the discovery interval.
        if not seen:
            lake.land("late.json", range(1000, 1010))
        seen.extend(row.id for row in frame.collect())

    writer = lake.frame(maxFilesPerTrigger=1, discoveryInterval="20ms").writeStream
    writer = writer.foreachBatch(sink).trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    assert query.awaitTermination(PATIENCE)
    assert sorted(seen) == list(range(40))


@SEVERAL_BATCHES
def test_a_failing_sink_and_a_restart_lose_nothing_and_repeat_nothing(lake):
    for i in range(6):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    stored = {}
    failures = iter([False, True, False, False, False])

    def sink(frame, batch_id):
        rows = [row.id for row in frame.collect()]
        if next(failures):
            message = "the sink is down"
            raise RuntimeError(message)
        stored[batch_id] = rows

    def run():
        writer = lake.frame(maxFilesPerTrigger=2).writeStream.foreachBatch(sink)
        writer = writer.trigger(availableNow=True)
        return lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))

    with pytest.raises(Exception, match="the sink is down"):
        run().awaitTermination(PATIENCE)
    assert list(stored) == [0]
    assert run().awaitTermination(PATIENCE)
    assert list(stored) == [0, 1, 2]
    assert Counter(i for rows in stored.values() for i in rows) == lake.landed


def test_a_batch_read_takes_the_same_options_and_needs_no_state(lake):
    for i in range(3):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10), folder="deep")
    reader = lake.spark.read.format("sluice").option("fileFormat", "json")
    rows = reader.schema("id long, text string").load(str(lake.source)).collect()
    assert Counter(row.id for row in rows) == lake.landed
    assert not lake.checkpoint.exists()


@pytest.mark.thorough("variants are the bytes that Spark reads, in test_variants.py")
def test_whole_records_arrive_in_spark_as_variants(lake):
    for i in range(3):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    reader = lake.spark.readStream.format("sluice").schema("v variant")
    reader = reader.option("singleVariantColumn", "v").option("fileFormat", "json")
    frame = reader.option("checkpointLocation", str(lake.checkpoint)).load(str(lake.source))
    writer = frame.selectExpr(
        "variant_get(v, '$.id', 'long') AS id", "variant_get(v, '$.text', 'string') AS text"
    ).writeStream
    writer = writer.format("parquet").option("checkpointLocation", str(lake.checkpoint))
    assert lake.run(writer.trigger(availableNow=True), str(lake.sink)).awaitTermination(PATIENCE)
    lake.check_exactly_once()
    rows = lake.spark.read.parquet(str(lake.sink)).collect()
    assert all(row.text == f"row {row.id}" for row in rows)
