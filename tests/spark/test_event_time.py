"""A watermark over files that arrived in random order, and a read between two bounds."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.functions import window

from pyspark_sluice.tests.spark.hours import drain, in_event_time, write_hours

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thorough("the order of event time has tests without Spark"),
]


def test_a_watermark_drops_nothing_in_event_time_and_much_in_the_order_of_arrival(spark, tmp_path):
    landing = tmp_path / "in"
    total = write_hours(landing, days=3, rows=20)
    own = in_event_time(spark, landing, tmp_path / "own", 24)
    arrival = spark.readStream.schema("at timestamp, key int").format("json")
    arrival = arrival.options(maxFilesPerTrigger=24, recursiveFileLookup=True)
    peer = arrival.load(str(landing)).withWatermark("at", "1 hour")
    rows, batches = [], []
    for name, frame in (("own", own), ("peer", peer)):
        counted = {}

        def keep(frame, _, counted=counted):
            counted.update({(row["window"], row["key"]): row["count"] for row in frame.collect()})

        windows = frame.groupBy(window("at", "1 hour"), "key").count()
        progress = drain(windows, tmp_path / name, keep)
        rows.append(sum(counted.values()))
        batches.append(sum(1 for batch in progress if batch["numInputRows"]))
    assert (rows[0], batches[0]) == (total, 3)
    assert rows[1] < total


def test_a_watermark_drops_no_row_of_parquet_files_in_the_order_of_a_column(spark, tmp_path):
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("key", pa.int32())])
    hours = list(range(48))
    random.Random(5).shuffle(hours)
    (tmp_path / "in").mkdir()
    for number, hour in enumerate(hours):
        at = [begin + timedelta(hours=hour, minutes=minute) for minute in range(60)]
        rows = pa.table({"at": at, "key": [hour % 3] * 60}, schema)
        path = tmp_path / "in" / f"part-{number:03}.parquet"
        pq.write_table(rows, path, row_group_size=20)
        os.utime(path, (1_770_000_000 + number, 1_770_000_000 + number))
    counted, batches = {}, set()

    def run(last):
        def keep(frame, batch):
            if batch > last:
                raise RuntimeError("the process ends here")
            batches.add(batch)
            for row in frame.collect():
                counted[row["window"]["start"]] = row["count"]

        checkpoint = tmp_path / "checkpoint"
        frame = spark.readStream.format("sluice").schema("at timestamp, key int")
        frame = frame.options(
            fileFormat="parquet",
            fileOrder="eventTime",
            eventTimeColumn="at",
            maxEventTimeSkew="5h",
            checkpointLocation=str(checkpoint),
        ).load(str(tmp_path / "in"))
        windows = frame.withWatermark("at", "1 hour").groupBy(window("at", "1 hour")).count()
        return drain(windows, checkpoint, keep)

    with pytest.raises(StreamingQueryException, match="the process ends here"):
        run(2)
    assert 0 < len(counted) < 48
    progress = run(1000)
    dropped = [each["numRowsDroppedByWatermark"] for p in progress for each in p["stateOperators"]]
    assert (sum(dropped), len(counted), set(counted.values())) == (0, 48, {60})
    assert len(batches) >= 8
