"""What `latestOffset` and a small batch cost, above all where a write to the state takes time.

The figures of the call are without Spark: the real coordinator, enumerator and listing over a
directory, readers that acknowledge, and a state whose writes take as long as requested.
The batches are real queries, with state in a directory or in S3 on loopback.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from typing_extensions import override

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.contract import StateStore
from pyspark_sluice.checkpoint_meta.stores.open_store import LocalStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.tests.spark.standalone import BUCKET, S3Server

from .streams import available_now

BATCHES = 200
_ROW = '{"id": 1, "name": "x", "value": 0.5}\n'


class SlowStore(LocalStateStore):
    """A directory whose writes take some time longer."""

    def __init__(self, root: str, seconds: float) -> None:
        super().__init__(root)
        self._seconds = seconds

    @override
    def publish(self, name: str, data: bytes) -> None:
        time.sleep(self._seconds)
        super().publish(name, data)


@contextmanager
def local_state(write_seconds: float) -> Iterator[tuple[StateStore, StateStore]]:
    """A directory whose writes take so much longer for the driver, and as readers see it."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as home:
        yield SlowStore(home, write_seconds), LocalStateStore(home)


def small_files(home: Path, count: int = BATCHES) -> Path:
    """A directory of files of one row."""
    landing = home / "landing"
    landing.mkdir()
    for number in range(count):
        (landing / f"{number:05}.json").write_text(_ROW)
    return landing


def latest_offset(state: StateStore, readers: StateStore) -> Sequence[float]:
    """Milliseconds on Spark's thread of each of 100 `latestOffset` under a backlog.

    Each batch that is handed out takes 0.3 s.

    Args:
        state: the store as the driver sees it.
        readers: the same as readers see it.
    """
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as home:
        landing = small_files(Path(home), 111)
        given = {"path": str(landing), "checkpointlocation": "/unused", "fileformat": "json"}
        source = FileSource(parse_options(given, streaming=True), pa.schema([("id", pa.int64())]))
        commits = ReaderCommits(readers)
        settings = CoordinatorSettings(limits=BatchLimits(files=1))
        coordinator = Coordinator(source, state, settings)
        ref, calls = NO_CHECKPOINT, []
        for _ in range(101):
            began = time.perf_counter()
            end = coordinator.latest(ref)
            calls.append((time.perf_counter() - began) * 1000)
            (checkpoint,) = coordinator.assignments(ref, end)
            time.sleep(0.3)
            for reader, splits in checkpoint.assigned:
                commits.publish(_read(end.checkpoint, end.epoch, reader, splits.num_rows))
            ref = end
        coordinator.close()
    return calls[1:]


def _read(checkpoint: int, epoch: int, reader: int, splits: int) -> ReaderCommit:
    figures = [1] * splits
    return ReaderCommit(
        checkpoint=checkpoint,
        epoch=epoch,
        reader=reader,
        attempt=0,
        rows=figures,
        input_bytes=figures,
        microseconds=figures,
    )


def percentile(values: Sequence[float], part: int) -> float:
    """The value below which `part` percent lie."""
    return statistics.quantiles(values, n=100, method="inclusive")[part - 1]


@contextmanager
def loopback_bucket() -> Iterator[Mapping[str, Any]]:
    """Storage options of a fresh S3 server on loopback, in a process of its own, with a bucket."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as home:
        server = S3Server(Path(home))
        try:
            yield server.options
        finally:
            server.kill()


def batch_milliseconds(spark: SparkSession, state: Mapping[str, str]) -> dict[str, float]:
    """Medians over 200 batches of one file of one row: the whole trigger, and `latestOffset`.

    `state` are the options that say where the state is, and others of the reader.
    """
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as home:
        landing = small_files(Path(home))

        def frame(checkpoint: str) -> DataFrame:
            reader = spark.readStream.format("sluice").option("fileFormat", "json")
            reader = reader.schema("id long, name string, value double").options(**state)
            reader = reader.option("maxFilesPerTrigger", "1").option("parallelism", "1")
            return reader.option("checkpointLocation", checkpoint).load(str(landing))

        run = available_now(frame, BATCHES)
    return {phase: run.median_ms(phase, skip=20) for phase in ("triggerExecution", "latestOffset")}


def bucket_state(options: Mapping[str, Any], name: str) -> dict[str, str]:
    """The options of a query that keeps its state in the bucket."""
    return {"stateLocation": f"s3://{BUCKET}/{name}", "storageOptions": json.dumps(dict(options))}
