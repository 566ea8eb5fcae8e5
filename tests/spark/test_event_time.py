"""A watermark over files that arrived in random order, and a read between two bounds."""

from __future__ import annotations

import pytest
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
