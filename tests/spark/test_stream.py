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


@pytest.mark.thorough("the demo's query idles, in test_crash.py")
def test_an_idle_stream_takes_one_more_file_after_its_last_batch(lake, until):
    lake.land("0.json", range(10))
    query = lake.start({"processingTime": "0 seconds"}, discoveryInterval="50ms")
    until(lambda: len(lake.ingested()) == 10, "first batch")
    query.processAllAvailable()  # idle: the commit of the last batch never comes
    lake.land("1.json", range(10, 20))
    until(lambda: len(lake.ingested()) == 20, "second batch")
    assert query.exception() is None
    lake.check_exactly_once()


def test_two_actions_in_one_foreach_batch_see_the_same_rows(lake):
    for i in range(6):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    first, second = Counter(), Counter()

    def sink(frame, batch_id):
        first.update(row.id for row in frame.collect())
        second.update(row.id for row in frame.collect())

    writer = lake.frame(maxFilesPerTrigger=2).writeStream.foreachBatch(sink)
    writer = writer.trigger(availableNow=True).option("checkpointLocation", str(lake.checkpoint))
    assert lake.run(writer).awaitTermination(PATIENCE)
    assert first == second == lake.landed


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


@pytest.mark.thorough("selection has tests without Spark")
def test_the_files_that_are_read_are_those_that_spark_reads(lake, tmp_path):
    names = [
        *("a.json", "b.csv", "c.txt", "_d.json", ".e.json", "_f=1.json", "g.json._COPYING_"),
        *("_h=1/i.json", "_j/k.json", ".l/m.json", "_metadata", "_metadata.json"),
        *("_metadata_n/o.json", "_common_metadata", "p=1/_q=2/r.csv", "s._COPYING_/t.json"),
    ]
    for name in names:
        path = lake.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")

    def read(source, given):
        rows = []
        reader = lake.spark.readStream.format(source).schema("value string").options(**given)
        checkpoint = str(tmp_path / f"{source}{len(given)}")
        if source == "sluice":
            reader = reader.options(fileFormat="text", checkpointLocation=checkpoint)
        else:
            reader = reader.options(recursiveFileLookup="true")
        writer = reader.load(str(lake.source)).writeStream.trigger(availableNow=True)
        writer = writer.foreachBatch(lambda frame, _: rows.extend(frame.collect()))
        assert lake.run(writer.option("checkpointLocation", checkpoint)).awaitTermination(PATIENCE)
        return sorted(row.value for row in rows)

    for given in ({}, {"pathGlobFilter": "*.{json,csv}"}):
        expected = read("text", given)
        assert len(expected) > 4
        assert read("sluice", given) == expected
