"""What a watermark of an hour drops of thirty days of files that arrived in random order."""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window

from .bench import Bench, Result
from .streams import PATIENCE, Input, load

DAYS = 30
ROWS_PER_FILE = 500
KEYS = 20
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_HOURS = 72
"""Files of a batch, of which each covers an hour."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """What became of one query."""

    seconds: float
    rows: int
    """Rows that are in a window at the end."""

    state: int
    """Most rows of state after any batch."""

    batches: int


def event_time(bench: Bench) -> Iterator[Result]:
    """A watermark of one hour over 30 days of files that arrived in random order."""
    with tempfile.TemporaryDirectory(prefix="sluice-event-time-") as root:
        total = write_hours(Path(root), DAYS)
        own = aggregate(bench.spark, "sluice", Path(root), "1 hour")
        work = f"{total:,} rows of {DAYS} days in {DAYS * 24} files"
        if not bench.peers:
            yield from _results(work, own, None, total)
            return
        for watermark in ("1 hour", f"{DAYS + 1} days"):
            peer = aggregate(bench.spark, "spark", Path(root), watermark)
            yield from _results(f"{work}; the peer waits {watermark}", own, peer, total)


def _results(work: str, own: Aggregation, peer: Aggregation | None, total: int) -> list[Result]:
    batches = f"{own.batches} batches, Sluice waits 1 hour"
    return [
        Result(
            f"{work}: rows dropped as late",
            100 * (total - own.rows) / total,
            100 * (total - peer.rows) / total if peer else None,
            "%",
            note=batches,
        ),
        Result(f"{work}: most rows of state", own.state, peer.state if peer else None, "rows"),
        Result(f"{work}: the query", own.seconds, peer.seconds if peer else None),
    ]


def write_hours(root: Path, days: int, rows: int = ROWS_PER_FILE, keys: int = KEYS) -> int:
    """A file for each hour, modified in random order; how many rows there are."""
    chance = random.Random(11)
    hours = list(range(days * 24))
    chance.shuffle(hours)
    for number, hour in enumerate(hours):
        begin = _BEGIN + timedelta(hours=hour)
        path = root / begin.strftime("%Y/%m/%d/%H") / "part-0.json"
        path.parent.mkdir(parents=True)
        lines = [
            json.dumps(
                {
                    "at": (begin + timedelta(seconds=chance.randrange(3600))).isoformat(),
                    "key": chance.randrange(keys),
                }
            )
            for _ in range(rows)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        arrived = 1_770_000_000 + number
        os.utime(path, (arrived, arrived))
    return len(hours) * rows


def aggregate(
    spark: SparkSession, source: str, path: Path, watermark: str, hours: int = _HOURS
) -> Aggregation:
    """Count rows by hour and key in one AvailableNow run; what each window has in the end.

    Args:
        spark: the session.
        source: "sluice", in the order of event time, or "spark".
        path: as `write_hours` has made it.
        watermark: how long the query waits for late rows.
        hours: so many hours, and as many files, are in a batch.
    """
    options = {"maxFilesPerTrigger": str(hours)}
    if source == "sluice":
        options = {
            "fileOrder": "eventTime",
            "eventTimePattern": "{yyyy}/{MM}/{dd}/{HH}",
            "maxEventTimeSkew": f"{hours - 1}h",
        }
    read = Input(path, "at timestamp, key int", "json", options)
    counted: dict[tuple[Any, int], int] = {}

    def keep(frame: DataFrame, _batch: int) -> None:
        for row in frame.collect():
            counted[row["window"]["start"], row["key"]] = row["count"]

    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as checkpoint:
        begin = time.perf_counter()
        query = (
            load(spark, source, read, checkpoint)
            .withWatermark("at", watermark)
            .groupBy(window("at", "1 hour"), "key")
            .count()
            .writeStream.outputMode("update")
            .foreachBatch(keep)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(int(PATIENCE)):
            query.stop()
            msg = f"not drained after {PATIENCE:.0f} s"
            raise TimeoutError(msg)
        seconds = time.perf_counter() - begin
        progress = query.recentProgress
    state = max(map(state_rows, progress))
    batches = sum(1 for one in progress if one["numInputRows"])
    return Aggregation(seconds, sum(counted.values()), state, batches)


def state_rows(progress: Mapping[str, Any]) -> int:
    """Rows in the state of a query after one batch."""
    return sum(int(operator["numRowsTotal"]) for operator in progress["stateOperators"])
