"""The main job: a directory ingested exactly once, under every trigger."""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest

import pyspark_sluice
from pyspark_sluice.tests.patience import PATIENCE


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


def test_once_ignores_the_limits(lake):
    for i in range(12):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    query = lake.start({"once": True}, maxFilesPerTrigger=5)
    assert query.awaitTermination(PATIENCE)
    assert lake.batches() == [12]
    lake.check_exactly_once()


@pytest.mark.effect_of("openCostBytes")
def test_each_batch_has_as_many_tasks_as_it_wants_after_one_that_wanted_many(lake):
    from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
    from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
    from pyspark_sluice.connector.source.file_source import driver_cores

    for i in range(17):
        lake.land(f"{i:02}.json", range(i * 10, i * 10 + 10))
    # As if each file were half of what a reader is meant to read.
    lake.drain(maxFilesPerTrigger=12, openCostBytes="64m")
    history = CheckpointHistory(open_store(str(lake.state)))
    readers = [len({r for r, _ in history.load(ref).assigned}) for ref in history.checkpoints()]
    assert lake.batches() == [12, 5]
    # By size 7 and 3; rounded up so that no core is idle at the end, and a file each at most.
    cores = driver_cores()
    assert readers == [min(n, -(-by_size // cores) * cores) for n, by_size in ((12, 7), (5, 3))]
    lake.check_exactly_once()


@pytest.mark.effect_of("maxSplitBytes")
def test_a_large_file_is_one_file_to_the_limit_on_files(lake):
    lake.land("0.json", range(5000))
    lake.land("1.json", range(5000, 5010))
    lake.drain(maxFilesPerTrigger=1, maxSplitBytes="16k")
    splits = lake.batches()
    assert len(splits) == 2
    assert splits[0] > 5
    assert splits[1] == 1
    lake.check_exactly_once()


def test_the_limit_reached_first_counts(lake):
    sizes = [lake.land(f"{i}.json", range(i * 10, i * 10 + 10)).stat().st_size for i in range(6)]
    lake.drain(maxFilesPerTrigger=3, maxBytesPerTrigger=sum(sizes[:2]))
    assert len(lake.batches()) >= 3
    lake.check_exactly_once()


def test_an_idle_stream_takes_one_more_file_after_its_last_batch(lake, until):
    lake.land("0.json", range(10))
    query = lake.start({"processingTime": "0 seconds"}, discoveryInterval="50ms")
    until(lambda: len(lake.ingested()) == 10, "first batch")
    query.processAllAvailable()  # idle: the commit of the last batch never comes
    lake.land("1.json", range(10, 20))
    until(lambda: len(lake.ingested()) == 20, "second batch")
    assert query.exception() is None
    lake.check_exactly_once()


def test_hidden_files_and_folders_are_not_read(lake):
    lake.land("a.json", range(10))
    landed = lake.landed.copy()
    lake.land("_skip.json", range(100, 110))
    lake.land("b.json", range(200, 210), folder="_temporary")
    lake.land("c.json", range(300, 310), folder=".hidden/deep")
    lake.landed = landed
    lake.drain()
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


def test_a_batch_abandoned_by_a_limit_does_not_hold_up_the_stream(lake):
    for i in range(4):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    counts = []

    def sink(frame, batch_id):
        counts.append(len(frame.limit(1).collect()))

    writer = lake.frame(maxFilesPerTrigger=2).writeStream.foreachBatch(sink)
    writer = writer.trigger(availableNow=True).option("checkpointLocation", str(lake.checkpoint))
    assert lake.run(writer).awaitTermination(PATIENCE)
    assert counts == [1, 1]


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


def test_a_restart_with_nothing_new_ends_at_once_and_reads_nothing_again(lake):
    lake.land("0.json", range(10))
    lake.drain()
    lake.drain()
    lake.check_exactly_once()
    lake.land("1.json", range(10, 20))
    lake.drain()
    lake.check_exactly_once()


def test_a_stream_may_wait_for_its_path(lake, until):
    lake.source.rmdir()
    options = {"failOnMissingPath": "false", "discoveryInterval": "50ms"}
    lake.start({"processingTime": "0 seconds"}, **options).processAllAvailable()
    lake.land("0.json", range(10))
    until(lambda: len(lake.ingested()) == 10, "rows")
    lake.check_exactly_once()


def test_a_batch_read_takes_the_same_options_and_needs_no_state(lake):
    for i in range(3):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10), folder="deep")
    reader = lake.spark.read.format("sluice").option("fileFormat", "json")
    rows = reader.schema("id long, text string").load(str(lake.source)).collect()
    assert Counter(row.id for row in rows) == lake.landed
    assert not lake.checkpoint.exists()


def test_a_batch_read_refuses_what_only_a_stream_can_do_by_name(lake):
    lake.land("0.json", range(10))
    reader = lake.spark.read.format("sluice").schema("id long, text string")
    for given, told in (
        ({"maxFilesPerTrigger": "1"}, "maxFilesPerTrigger: found 1 in a batch read"),
        ({"maxBytesPerTrigger": "1m"}, "maxBytesPerTrigger: found 1048576 in a batch read"),
        ({"cleanSource": "delete"}, "cleanSource: found delete in a batch read"),
        ({"onOverwrite": "reprocess"}, "onOverwrite: found reprocess in a batch read"),
    ):
        with pytest.raises(Exception, match=told):
            reader.options(**given).load(str(lake.source)).collect()
        reader = lake.spark.read.format("sluice").schema("id long, text string")
    assert (lake.source / "0.json").exists()
    anyway = pyspark_sluice.options(cleanSource="off", checkpointsAhead=1, discoveryInterval="1s")
    assert reader.options(**anyway).load(str(lake.source)).count() == 10


def test_a_stream_takes_options_as_an_object(lake):
    for i in range(4):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    made = pyspark_sluice.options(max_files_per_trigger=2, fileOrder="name")
    query = lake.drain(**made)
    assert len([p for p in query.recentProgress if p.numInputRows]) == 2
    lake.check_exactly_once()


def test_a_batch_read_of_an_empty_directory_has_no_rows(lake):
    reader = lake.spark.read.format("sluice").option("fileFormat", "json")
    assert reader.schema("id long").load(str(lake.source)).count() == 0


def test_the_backlog_shows_in_the_progress(lake):
    for i in range(6):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    query = lake.drain(maxFilesPerTrigger=2)
    backlogs = [json.loads(p.json)["sources"][0]["latestOffset"] for p in query.recentProgress]
    first = json.loads(backlogs[0]) if isinstance(backlogs[0], str) else backlogs[0]
    assert first["filesSeen"] == 6
    assert first["splitsOutstanding"] <= 4


def test_whole_records_arrive_in_spark_as_variants(lake):
    for i in range(3):
        lake.land(f"{i}.json", range(i * 10, i * 10 + 10))
    reader = lake.spark.readStream.format("sluice").schema("v variant")
    reader = reader.option("singleVariantColumn", "v").option("fileFormat", "json")
    frame = reader.option("checkpointLocation", str(lake.checkpoint)).load(str(lake.source))
    writer = frame.selectExpr("v:id::long AS id", "v:text::string AS text").writeStream
    writer = writer.format("parquet").option("checkpointLocation", str(lake.checkpoint))
    assert lake.run(writer.trigger(availableNow=True), str(lake.sink)).awaitTermination(PATIENCE)
    lake.check_exactly_once()
    rows = lake.spark.read.parquet(str(lake.sink)).collect()
    assert all(row.text == f"row {row.id}" for row in rows)


def test_a_single_variant_column_next_to_others_is_refused(lake):
    lake.land("0.json", range(3))
    with pytest.raises(Exception, match="columns other than the one variant text"):
        lake.drain(singleVariantColumn="text")


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


def test_a_name_that_is_not_utf_8_is_read_like_any_other(lake):
    landed = lake.land("0.json", range(10), folder="plain")
    odd = os.fsencode(lake.source) + b"/text=caf\xe9"
    os.mkdir(odd)
    os.rename(landed, odd + b"/\xff 100%.json")
    lake.land("1.json", range(10, 20))
    lake.drain(maxFilesPerTrigger=1)
    lake.drain()
    lake.check_exactly_once()
    batch = lake.spark.read.format("sluice").option("fileFormat", "text")
    rows = batch.schema("value string, _metadata struct<file_path string, file_name string>")
    places = {row._metadata for row in rows.load(str(lake.source)).collect()}
    assert sorted(places) == [
        (f"file:{lake.source}/1.json", "1.json"),
        (f"file:{lake.source}/text%3Dcaf%E9/%FF%20100%25.json", "%FF%20100%25.json"),
    ]
