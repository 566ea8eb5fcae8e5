"""One compressed file in several batches, a restart in its middle, and several tasks."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import zlib

import pyarrow as pa
import pytest

COUNT = 100_000


@pytest.fixture(scope="module")
def data():
    chance = random.Random(1)
    texts = (f"{chance.getrandbits(700):x}" for _ in range(COUNT))
    return "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)).encode()


@pytest.mark.parametrize(
    "codec", ["gz", pytest.param("bz2", marks=pytest.mark.thorough("gzip is cut as bzip2 is"))]
)
def test_a_compressed_file_is_read_in_batches_and_goes_on_in_its_middle(lake, data, codec, until):
    stored = gzip.compress(data, 1) if codec == "gz" else bz2.compress(data, 9)
    (lake.source / f"a.json.{codec}").write_bytes(stored)
    lake.landed.update(range(COUNT))
    limits = {"maxBytesPerTrigger": "6m", "discoveryInterval": "100ms"}
    query = lake.start({"processingTime": "0 seconds"}, **limits)
    # Spark refuses to begin over an incomplete log: what is stopped has a batch behind it.
    first = lake.checkpoint / "commits" / "0"
    until(lambda: not query.isActive or first.exists(), "first batch")
    query.stop()
    assert query.exception() is None
    lake.drain(**limits)
    lake.check_exactly_once()
    assert len(lake.batches()) >= 2
    batch = lake.spark.read.format("sluice").schema("id long, text string")
    found = batch.option("fileFormat", "json").load(str(lake.source))
    assert found.rdd.getNumPartitions() == 2
    assert sorted(row.id for row in found.select("id").collect()) == list(range(COUNT))


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_file_that_cannot_be_entered_is_read_in_batches_which_are_cut_ahead(
    lake, data, ahead, until
):
    stored = zlib.compress(data, 1)
    (lake.source / "a.json.deflate").write_bytes(stored)
    lake.landed.update(range(COUNT))
    options = {"maxBytesPerTrigger": "5m", "checkpointsAhead": ahead}
    found, waiting = [], {}

    def sink(frame, batch):
        found.extend(row.id for row in frame.collect())
        left = len(splits) - batch - 1
        until(lambda: _checkpoints(lake) >= batch + 1 + min(ahead, left), "checkpoints ahead", 60)
        waiting[batch] = _checkpoints(lake) - batch - 1

    splits = range(0, len(stored), 4 * 1024 * 1024)
    writer = lake.frame(**options).writeStream.foreachBatch(sink).trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    assert query.awaitTermination(120)
    assert len(splits) >= 3
    assert waiting[0] == ahead, "cut while the first batch ran"
    assert found == list(range(COUNT))
    assert lake.batches() == [1] * len(splits)


def test_a_query_that_starts_from_a_savepoint_goes_on_in_the_middle_of_a_compressed_file(
    lake, data, tmp_path
):
    (lake.source / "a.json.deflate").write_bytes(zlib.compress(data, 1))
    found = {}

    def sink(frame, batch):
        if batch == 1:
            raise RuntimeError("the sink is down")
        found[batch] = [row.id for row in frame.collect()]

    def begin(checkpoint, sink, **options):
        frame = lake.frame(maxBytesPerTrigger="5m", checkpointLocation=str(checkpoint), **options)
        writer = frame.writeStream.foreachBatch(sink).trigger(availableNow=True)
        return lake.run(writer.option("checkpointLocation", str(checkpoint)))

    with pytest.raises(Exception, match="the sink is down"):
        begin(lake.checkpoint, sink).awaitTermination(120)
    rest = []
    other = tmp_path / "other"
    query = begin(
        other,
        lambda frame, _: rest.extend(row.id for row in frame.collect()),
        startingState=f"{lake.state}@1",
    )
    assert query.awaitTermination(120)
    assert found[0] + rest == list(range(COUNT))
    borders = {path.name for path in (lake.state / "points").iterdir()}
    assert borders <= {path.name for path in (other / "sluice" / "source" / "points").iterdir()}


def test_rows_that_nobody_has_counted_are_cut_ahead_as_well(lake, until):
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for number in range(4):
        ids = list(range(100 * number, 100 * number + 100))
        with pa.ipc.new_stream(str(lake.source / f"{number}.arrow"), schema) as stream:
            stream.write(pa.record_batch([ids, list(map(str, ids))], schema=schema))
    found, options = [], {"fileFormat": "arrow", "maxRowsPerTrigger": 10, "checkpointsAhead": 2}

    def sink(frame, batch):
        found.extend(sorted(row.id for row in frame.collect()))
        until(lambda: _checkpoints(lake) >= min(4, batch + 3), "checkpoints ahead", 60)

    writer = lake.frame(**options).writeStream.foreachBatch(sink).trigger(availableNow=True)
    query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert found == list(range(400))


def _checkpoints(lake):
    return len(list((lake.state / "checkpoints").glob("*.arrow")))
