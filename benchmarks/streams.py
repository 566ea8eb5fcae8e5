"""Runs one streaming query into the no-op sink and says how long it took."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

PATIENCE = 1200.0
"""Seconds after which a query is given up."""


@dataclass(frozen=True, slots=True)
class Input:
    """What both sources are pointed at."""

    path: Path
    schema: str
    file_format: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One finished query."""

    seconds: float
    rows: int
    batches: tuple[Mapping[str, Any], ...]
    """Spark's progress events of the batches that had rows."""

    @property
    def batch_seconds(self) -> float:
        """Time in the triggers themselves; starting and stopping the query is left out."""
        total = sum(b["durationMs"].get("triggerExecution", 0) for b in self.batches)
        return float(total) / 1000

    def median_ms(self, phase: str = "triggerExecution", skip: int = 0) -> float:
        """Median duration of one phase over the batches, the first ones left out."""
        return float(statistics.median(b["durationMs"].get(phase, 0) for b in self.batches[skip:]))


def session(packages: str = "") -> SparkSession:
    """Two cores, no web page; `packages` are coordinates of Maven."""
    builder = SparkSession.builder.master("local[2]")
    if "io.delta:" in packages:
        delta = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        builder = builder.config("spark.sql.catalog.spark_catalog", delta)
        extensions = "io.delta.sql.DeltaSparkSessionExtension"
        builder = builder.config("spark.sql.extensions", extensions)
    spark = (
        builder.appName("sluice benchmarks")
        .config("spark.jars.packages", packages)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", "2000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def load(spark: SparkSession, source: str, read: Input, checkpoint: str) -> DataFrame:
    """The streaming frame of `source`: "sluice" or "spark"."""
    reader = spark.readStream.schema(read.schema).options(**read.options)
    if source == "spark":
        # Names in folders like d0001 are no partitions, but Spark has to be asked to go down.
        reader = reader.format(read.file_format).option("recursiveFileLookup", "true")
        return reader.load(str(read.path))
    reader = reader.format("sluice").option("fileFormat", read.file_format)
    return reader.option("checkpointLocation", checkpoint).load(str(read.path))


@contextmanager
def started(frame_of: Any, trigger: Mapping[str, Any]) -> Iterator[tuple[StreamingQuery, float]]:
    """A query on a fresh checkpoint, and when it was started.

    `frame_of` makes the frame for a checkpoint location.
    """
    checkpoint = tempfile.mkdtemp(prefix="sluice-bench-")
    frame = frame_of(checkpoint)
    begin = time.perf_counter()
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(**trigger).start()
    try:
        yield query, begin
    finally:
        query.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)


def available_now(frame_of: Any, rows: int | None = None) -> Run:
    """Drain what is there; raises if the rows are not `rows`."""
    with started(frame_of, {"availableNow": True}) as (query, begin):
        if not query.awaitTermination(int(PATIENCE)):
            msg = f"not drained after {PATIENCE:.0f} s"
            raise TimeoutError(msg)
        return _run(query, time.perf_counter() - begin, rows)


def drained(query: StreamingQuery, begin: float, rows: int) -> Run:
    """Wait until a query with another trigger has taken in `rows`."""
    while True:
        seen = sum(progress["numInputRows"] for progress in query.recentProgress)
        if seen >= rows:
            return _run(query, time.perf_counter() - begin, rows)
        if not query.isActive or time.perf_counter() - begin > PATIENCE:
            query.awaitTermination(1)
            msg = f"only {seen} of {rows} rows after {time.perf_counter() - begin:.0f} s"
            raise TimeoutError(msg)
        time.sleep(0.05)


def _run(query: StreamingQuery, seconds: float, rows: int | None) -> Run:
    batches = tuple(p for p in query.recentProgress if p["numInputRows"])
    found = sum(progress["numInputRows"] for progress in batches)
    if rows is not None and found != rows:
        msg = f"found {found} rows; expected {rows}"
        raise AssertionError(msg)
    return Run(seconds, found, batches)
