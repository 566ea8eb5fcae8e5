"""A watermark over files that arrived in random order, and a read between two bounds."""

from __future__ import annotations

import pytest

from pyspark_sluice.benchmarks.event_time_row import aggregate, write_hours

pytestmark = pytest.mark.slow


def test_a_watermark_drops_nothing_in_event_time_and_much_in_the_order_of_arrival(spark, tmp_path):
    total = write_hours(tmp_path, days=3, rows=20)
    own = aggregate(spark, "sluice", tmp_path, "1 hour", hours=24)
    assert own.rows == total
    assert own.batches == 3
    peer = aggregate(spark, "spark", tmp_path, "1 hour", hours=24)
    assert peer.rows < total


def test_a_day_is_read_by_its_event_times_and_by_its_name(spark, tmp_path):
    write_hours(tmp_path, days=3, rows=2)
    reader = spark.read.format("sluice").schema("at timestamp, key int")
    reader = reader.options(fileFormat="json", eventTimePattern="{yyyy}/{MM}/{dd}/{HH}")
    by_time = reader.options(startAt="2026-01-02", endAt="2026-01-03").load(str(tmp_path))
    days = {row["at"].day for row in by_time.collect()}
    assert (days, by_time.count()) == ({2}, 48)
    by_name = (
        spark.read.format("sluice").schema("at timestamp, key int").option("fileFormat", "json")
    )
    by_name = by_name.options(startAt="path:2026/01/02", endAt="path:2026/01/03")
    assert sorted(by_name.load(str(tmp_path)).collect()) == sorted(by_time.collect())
