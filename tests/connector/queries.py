"""A query of JSON files without Spark: a real coordinator, real readers, a real state directory."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.direct_write import direct_write_of
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.reader.task import Assignment, Attempt, ReaderTask
from pyspark_sluice.tests.patience import PATIENCE, wait_until

SCHEMA = pa.schema([("id", pa.int64())])


class Query:
    """One incarnation after the other over `<root>/ck/sluice/source`."""

    def __init__(
        self,
        root: Path,
        state: str | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
        **options: str,
    ) -> None:
        """`settings` are of `CoordinatorSettings`."""
        self.data = root / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self.location = root / "ck"
        self.state = state or str(self.location / "sluice" / "source")
        self.store = open_store(self.state)
        self.options = {"path": str(self.data), "discoveryInterval": "20ms", **options}
        self.done = NO_CHECKPOINT
        self.settings: dict[str, Any] = {
            "parallelism": 2,
            "commit_patience": 0.0,
            "background_interval": 0.05,
            **settings,
        }
        self.start()

    def start(self) -> None:
        """A new incarnation, which claims an epoch when it is asked for a batch."""
        options = parse_options(self.options, streaming=False)
        self.source = FileSource(options, SCHEMA)
        settings = CoordinatorSettings(**self.settings)
        self.coordinator = Coordinator(self.source, self.store, settings)
        self.task = ReaderTask(
            self.source.create_reader,
            self.source.split_serializer,
            ReaderCommits(self.store),
            self.source.reader_event_types,
            may_return=options.on_split_error == "return",
            writes=direct_write_of(options, SCHEMA),
        )

    def land(self, *names: str, rows: int = 3, text: str | None = None) -> None:
        lines = "".join(json.dumps({"id": at}) + "\n" for at in range(rows))
        for name in names:
            (self.data / name).write_text(lines if text is None else text)

    def plan(self) -> Any:
        """The next checkpoint, as Spark would put it into its offset log."""
        deadline = time.monotonic() + PATIENCE
        while (ref := self.coordinator.latest(self.done)) == self.done:
            assert time.monotonic() < deadline, "nothing was found"
            time.sleep(0.01)
        return ref

    def read(self, ref: Any, readers: tuple[int, ...] = (0, 1)) -> list[Any]:
        """Run the tasks of the batch that ends with `ref`: the ids read, or the paths landed."""
        found: list[Any] = []
        for link in self.coordinator.assignments(self.done, ref):
            for reader in readers:
                splits = [
                    split
                    for of, batch in link.assigned
                    if of == reader
                    for split in self.source.split_serializer.read(1, batch)
                ]
                if splits:
                    assignment = Assignment(
                        link.identity, reader, splits, batch_start=self.done.checkpoint
                    )
                    for batch in self.task.read(assignment, Attempt(0, "query")):
                        found += batch.column(0).to_pylist()
        return found

    def batch(self) -> list[Any]:
        """Plan and run a batch, and let Spark know that it has finished."""
        ref = self.plan()
        found = self.read(ref)
        self.done = ref
        return found

    def restart(self) -> None:
        """The driver was killed; another one goes on."""
        self.coordinator.close()
        self.start()

    def await_base(self, count: int = 1) -> None:
        """Until so many bases are there."""
        wait_until(lambda: len(self.store.list("bases")) >= count, "a base")


def drained(query):
    """Everything that the query still finds, batch by batch, until nothing more comes."""
    found = []
    query.coordinator.close()
    query.start()
    query.coordinator.prepare_available_now()
    while (ref := query.coordinator.latest(query.done)) != query.done:
        found += query.read(ref)
        query.done = ref
    query.coordinator.close()
    return sorted(found)


def in_memory(made):
    store = MemoryStateStore()
    root = made.location / "sluice" / "source"
    for path in root.rglob("*"):
        if path.is_file():
            store.objects[path.relative_to(root).as_posix()] = path.read_bytes()
    return store


def carried_out(plan):
    """Writes a plan of an offline change, if it changes anything; its report."""
    return {**plan.report, **(plan.write() if plan.write is not None else {})}
