"""A state as a query leaves it: real files, a real coordinator, real readers, and no Spark."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.contract import StateStore
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.reader.task import Assignment, Attempt, ReaderTask
from pyspark_sluice.tests.patience import PATIENCE

QUERY_ID = "7c1f0c6e-5a0e-4b1e-9d0a-2f4b8f6f3a51"


def ingest(root: Path, batches: int, files: int = 4) -> StateStore:
    """Ingest that many batches of files; one of them is torn, and more land than are read."""
    landing = root / "landing <b>"
    landing.mkdir(parents=True)
    store = open_store(str(root / "state"))
    options = parse_options(
        {"path": str(landing), "mode": "FAILFAST", "onspliterror": "return"},
        streaming=False,
    )
    source = FileSource(options, pa.schema([("id", pa.int64()), ("text", pa.string())]))
    settings = CoordinatorSettings(
        BatchLimits(files=files), parallelism=3, max_split_attempts=1, background_interval=0.05
    )
    coordinator = Coordinator(source, store, settings)
    task = ReaderTask(
        source.create_reader,
        source.split_serializer,
        ReaderCommits(store),
        source.reader_event_types,
        may_return=True,
    )
    ref, landed = NO_CHECKPOINT, 0
    for number in range(batches):
        for _ in range(files + (number % 3)):
            rows = 200 + 3000 * (landed % 5)
            lines = "".join(f'{{"id": {i}, "text": "row {i}"}}\n' for i in range(rows))
            torn = "{ torn <script>alert(1)</script>\n" if landed == 6 else ""
            hidden = landing / f".{landed}"
            hidden.write_text(torn or lines)
            hidden.rename(landing / f"{landed:05}.json")
            landed += 1
        before, deadline = ref, time.monotonic() + PATIENCE
        while (ref := coordinator.latest(before)) == before and time.monotonic() < deadline:
            time.sleep(0.02)
        (checkpoint,) = coordinator.assignments(before, ref)
        by_reader: dict[int, list[FileSplit]] = {}
        for reader, batch in checkpoint.assigned:
            by_reader.setdefault(reader, []).extend(source.split_serializer.read(1, batch))
        for reader, splits in by_reader.items():
            for _ in task.read(Assignment(ref, reader, splits), Attempt(0, QUERY_ID)):
                pass
        coordinator.commit(ref)
    before = ref
    while coordinator.latest(before) == before and coordinator.report()["backlogFiles"] == 0:
        time.sleep(0.02)
    coordinator.close()
    return store
