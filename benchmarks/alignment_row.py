"""How many rows a join of two backlogs keeps in its state, with and without alignment."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from .bench import Bench, Result
from .event_time_row import state_rows, write_hours
from .streams import PATIENCE, Input, load

DAYS = 10
KEYS = 1000
HOURS = (8, 24)
"""Files in a batch of clicks and in one of orders, of which each covers an hour."""


@dataclass(frozen=True, slots=True)
class Join:
    """What became of one query."""

    seconds: float
    rows: int
    """Rows that the join gave."""

    state: int
    """Most rows of state after any batch."""

    batches: int


def alignment(bench: Bench) -> Iterator[Result]:
    """State of a join of two backlogs that are read at different speeds, aligned and not."""
    with tempfile.TemporaryDirectory(prefix="sluice-alignment-") as root:
        clicks, orders = Path(root, "clicks"), Path(root, "orders")
        total = sum(write_hours(path, DAYS, keys=KEYS) for path in (clicks, orders))
        aligned = join(bench.spark, clicks, orders, "clicks-and-orders")
        apart = join(bench.spark, clicks, orders, "") if bench.peers else None
    if apart is not None and apart.rows != aligned.rows:
        msg = f"{aligned.rows} rows aligned, {apart.rows} not aligned"
        raise AssertionError(msg)
    hours = "{} hours of clicks and {} hours of orders".format(*HOURS)
    work = f"join of {total:,} rows of {DAYS} days, in batches of {hours} at most"
    for what, unit in (("state", "rows"), ("seconds", "s"), ("batches", "batches")):
        own = getattr(aligned, what)
        peer = None if apart is None else getattr(apart, what)
        said = "most rows of state" if what == "state" else f"the query in {what}"
        yield Result(f"{work}: {said}", own, peer, unit, "not aligned")


def join(
    spark: SparkSession, clicks: Path, orders: Path, group: str, hours: tuple[int, int] = HOURS
) -> Join:
    """Join clicks and orders of one key and a quarter of an hour, in one AvailableNow run.

    Args:
        spark: the session.
        clicks: as `write_hours` has made it.
        orders: the same.
        group: the alignment group; empty for none.
        hours: of clicks and of orders in a batch, at most.
    """
    found = 0

    def count(frame: DataFrame, _batch: int) -> None:
        nonlocal found
        found += frame.count()

    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as checkpoint:

        def read(path: Path, files: int) -> DataFrame:
            options = {
                "sourceName": path.name,
                "fileOrder": "eventTime",
                "eventTimePattern": "{yyyy}/{MM}/{dd}/{HH}",
                "maxEventTimeSkew": f"{hours[1] - 1}h",
                "maxFilesPerTrigger": str(files),
                **({"alignmentGroup": group} if group else {}),
            }
            given = Input(path, "at timestamp, key int", "json", options)
            frame = load(spark, "sluice", given, checkpoint).withWatermark("at", "1 hour")
            return frame.alias(path.name)

        begin = time.perf_counter()
        near = "clicks.at between orders.at - interval 15 minutes and orders.at"
        query = (
            read(clicks, hours[0])
            .join(read(orders, hours[1]), expr(f"clicks.key = orders.key and {near}"))
            .writeStream.foreachBatch(count)
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
    return Join(seconds, found, max(map(state_rows, progress)), len(progress))
