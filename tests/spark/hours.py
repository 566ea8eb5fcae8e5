"""Hourly files that were modified in random order, and queries that read them in event time."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_sluice.tests.patience import PATIENCE

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def write_hours(root: Path, days: int, rows: int) -> int:
    """Write a file for each hour. Returns the number of rows."""
    chance = random.Random(11)
    hours = list(range(days * 24))
    chance.shuffle(hours)
    for number, hour in enumerate(hours):
        begin = _BEGIN + timedelta(hours=hour)
        path = root / begin.strftime("%Y/%m/%d/%H") / "part-0.json"
        path.parent.mkdir(parents=True)
        for _ in range(rows):
            at = (begin + timedelta(seconds=chance.randrange(3600))).isoformat()
            with path.open("a") as out:
                out.write(json.dumps({"at": at, "key": chance.randrange(20)}) + "\n")
        os.utime(path, (1_770_000_000 + number,) * 2)
    return len(hours) * rows


def in_event_time(
    spark: SparkSession, path: Path, checkpoint: Path, hours: int, **options: str
) -> DataFrame:
    """A stream of files of `write_hours`, in batches of at most so many hours."""
    reader = (
        spark.readStream.schema("at timestamp, key int")
        .format("sluice")
        .options(
            fileFormat="json",
            fileOrder="eventTime",
            eventTimePattern="{yyyy}/{MM}/{dd}/{HH}",
            maxEventTimeSkew=f"{hours - 1}h",
            checkpointLocation=str(checkpoint),
        )
    )
    return reader.options(**options).load(str(path)).withWatermark("at", "1 hour")


def drain(
    frame: DataFrame,
    checkpoint: Path,
    keep: Callable[[DataFrame, int], Any],
    mode: str = "update",
) -> Sequence[dict[str, Any]]:
    """Run `frame` until nothing is left. Returns the progress of its batches."""
    writer = frame.writeStream.outputMode(mode).foreachBatch(keep)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(int(PATIENCE))
    finally:
        query.stop()
    return query.recentProgress
