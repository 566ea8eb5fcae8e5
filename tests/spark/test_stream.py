"""A stream with `trigger(availableNow=True)`, as users run it, and a batch read."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import SEVERAL_BATCHES


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
        writer = frame.writeStream.foreachBatch(sink).trigger(availableNow=True)
        return lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))

    with pytest.raises(Exception, match="the sink is down"):
        run().awaitTermination(PATIENCE)
    assert list(stored) == [0]
    query = run()
    assert query.awaitTermination(PATIENCE)
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
    writer = writer.format("parquet").option("checkpointLocation", str(lake.checkpoint))
    assert lake.run(writer.trigger(availableNow=True), str(lake.sink)).awaitTermination(PATIENCE)
    lake.check_exactly_once()
    rows = lake.spark.read.parquet(str(lake.sink)).collect()
    assert all(row.text == f"row {row.id}" for row in rows)
