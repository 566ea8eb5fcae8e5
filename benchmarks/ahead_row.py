"""How long a trigger takes on a slow state store, by the number of checkpoints that may wait.

Drives the coordinator as Spark does, without Spark: 200 batches of 50 ms each, one file a batch, on
a store whose every write of a checkpoint takes 100 ms.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pyarrow as pa
from typing_extensions import override

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.layout import CHECKPOINTS
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import readers_of
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings

from .bench import Bench, Result

BATCHES, BATCH_SECONDS, WRITE_SECONDS = 200, 0.05, 0.1


class _SlowStore(MemoryStateStore):
    @override
    def publish(self, name: str, data: bytes) -> None:
        if name.startswith(CHECKPOINTS):
            time.sleep(WRITE_SECONDS)
        super().publish(name, data)


def ahead(_: Bench) -> Iterator[Result]:
    """200 batches of 50 ms on a store that takes 100 ms, with 0 to 4 checkpoints ahead."""
    with tempfile.TemporaryDirectory() as landing:
        for number in range(BATCHES):
            (Path(landing) / f"{number:04}.json").write_text('{"id": 1}\n', encoding="utf-8")
        on_request = _trigger_seconds(landing, 0)
        for waiting in (1, 2, 4):
            yield Result(
                f"a trigger of a 50 ms batch, checkpointsAhead={waiting}",
                _trigger_seconds(landing, waiting) * 1000,
                on_request * 1000,
                "ms",
                "checkpointsAhead=0",
            )


def _trigger_seconds(landing: str, waiting: int) -> float:
    options = parse_options({"path": landing, "fileFormat": "json"}, streaming=False)
    store = _SlowStore()
    source = FileSource(options, pa.schema([("id", pa.int64())]))
    settings = CoordinatorSettings(
        BatchLimits(files=1), parallelism=1, checkpoints_ahead=waiting, commit_patience=0.0
    )
    coordinator = Coordinator(source, store, settings)
    coordinator.prepare_available_now()
    before, ref = NO_CHECKPOINT, coordinator.latest(NO_CHECKPOINT)
    commits, seconds = ReaderCommits(store), list[float]()
    while True:
        began = time.monotonic()
        (checkpoint,) = coordinator.assignments(before, ref)
        time.sleep(BATCH_SECONDS)
        for reader in readers_of(checkpoint):
            zeros = [0] * checkpoint.header.assigned_splits
            commits.publish(
                ReaderCommit(
                    checkpoint=ref.checkpoint, epoch=ref.epoch, reader=reader, attempt=0,
                    rows=zeros, input_bytes=zeros, microseconds=zeros,
                )
            )  # fmt: skip
        following = coordinator.latest(ref)
        if following == ref:
            coordinator.close()
            return median(seconds)
        seconds.append(time.monotonic() - began)
        before, ref = ref, following
