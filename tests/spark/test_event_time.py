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

from pyspark_sluice.benchmarks.event_time_row import aggregate, write_hours
from pyspark_sluice.tests.patience import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thorough("the order of event time has tests without Spark"),
]


def test_a_watermark_drops_nothing_in_event_time_and_much_in_the_order_of_arrival(spark, tmp_path):
    total = write_hours(tmp_path, days=3, rows=20)
    own = aggregate(spark, "sluice", tmp_path, "1 hour", hours=24)
    assert own.rows == total
    assert own.batches == 3
    peer = aggregate(spark, "spark", tmp_path, "1 hour", hours=24)
    assert peer.rows < total


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

        checkpoint = str(tmp_path / "checkpoint")
        frame = spark.readStream.format("sluice").schema("at timestamp, key int")
        frame = frame.options(
            fileFormat="parquet",
            fileOrder="eventTime",
            eventTimeColumn="at",
            maxEventTimeSkew="5h",
            checkpointLocation=checkpoint,
        ).load(str(tmp_path / "in"))
        windows = frame.withWatermark("at", "1 hour").groupBy(window("at", "1 hour")).count()
        writer = windows.writeStream.outputMode("update").foreachBatch(keep)
        writer = writer.option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(int(PATIENCE))
        finally:
            query.stop()
        return query.recentProgress

    with pytest.raises(StreamingQueryException, match="the process ends here"):
        run(2)
    assert 0 < len(counted) < 48
    progress = run(1000)
    dropped = [each["numRowsDroppedByWatermark"] for p in progress for each in p["stateOperators"]]
    assert (sum(dropped), len(counted), set(counted.values())) == (0, 48, {60})
    assert len(batches) >= 8
