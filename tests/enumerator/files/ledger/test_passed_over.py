"""Files that are there at the first start and are not read: what is written of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.file_columns import splits_in
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.files.ledger.files_as_of import FilesAsOf
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.testing import HandCrankedCalls
from pyspark_sluice.tests.protocol.opened import opened

pytestmark = pytest.mark.slow

OLD = 24
NEW = 6
FLUSH_AT = 8


class Source(FileSource):
    """Hands files over five at a time, and seals and merges all the time."""

    def policy(self):
        merging = MergePolicy(flush_at=FLUSH_AT, fan_in=2, longest=20)
        return replace(super().policy(), portion=5, ledger=LedgerPolicy(merging=merging))


class Query:
    """A directory with old files, and a query that is to read the new ones only."""

    def __init__(self, directory, objects=None):
        self.directory = directory
        self.objects = objects or MemoryStateStore()
        options = {"path": str(directory), "includeExistingFiles": "false"}
        self.source = Source(
            parse_options(options, streaming=False), pa.schema([("id", pa.int64())])
        )
        self.ref, self.taken = NO_CHECKPOINT, []
        self.land("old", OLD)

    def land(self, kind, count):
        for number in range(count):
            (self.directory / f"{kind}-{number:02}").write_text("{}")

    def start(self, fault=None):
        """A new process, with its own handle on the store."""
        store = FaultyStateStore(self.objects)
        store.fault = fault
        settings = CoordinatorSettings(
            BatchLimits(files=4),
            1,
            deltas_per_base=2,
            retained_checkpoints=2,
            commit_patience=0.0,
            discovery_timeout=0.0,
            upkeep_patience=0.0,
            idle_patience=0.0,
        )
        self.coordinator = Coordinator(self.source, store, settings, lambda: 0.0, HandCrankedCalls)
        self.coordinator._open(self.ref)
        self.await_discovery()

    def await_discovery(self):
        calls = self.coordinator._threads.calls
        for _ in range(4):
            calls.run_calls()
            calls.tick()
        while not opened(self.coordinator).enumerator.has_discovered:
            calls.run_calls()
            calls.tick()

    def batch(self):
        """True if there was one."""
        self.await_discovery()
        end = self.coordinator.latest(self.ref)
        if end == self.ref:
            return False
        for checkpoint in self.coordinator.assignments(self.ref, end):
            splits = [s for _, rows in checkpoint.assigned for s in splits_in(rows)]
            self.taken += [split.file.path.rpartition("/")[2] for split in splits]
        self.coordinator.commit(self.ref)
        self.ref = end
        return True

    def drain(self):
        while self.batch():
            pass

    def first_checkpoint(self):
        history = CheckpointHistory(self.objects)
        return min(map(history.load, history.checkpoints()), key=lambda found: found.ref.epoch)


NEW_FILES = [f"new-{number:02}" for number in range(NEW)]


def test_the_first_checkpoint_names_the_runs_that_the_files_are_in(tmp_path):
    query = Query(tmp_path)
    query.start()
    assert query.batch()
    header = query.first_checkpoint().header
    assert header.attachments
    assert header.state_rows == 0
    assert header.assigned_splits == 0
    seen = [path for batch in FilesAsOf(query.objects, query.ref).seen() for path in batch["path"]]
    assert len(seen) == OLD
    # What the next start writes follows what is new.
    before = dict(query.objects.objects)
    query.land("new", NEW)
    query.start()
    query.drain()
    assert sorted(query.taken) == NEW_FILES
    written = {
        name: data
        for name, data in query.objects.objects.items()
        if name not in before and name.startswith("checkpoints/")
    }
    assert len(written) == 2
    assert opened(query.coordinator).enumerator.backlog()["filesSeen"] == OLD + NEW


def test_a_first_checkpoint_that_is_taken_back_gives_its_runs_to_the_next(tmp_path):
    query = Query(tmp_path)
    query.start()
    query.await_discovery()
    query.coordinator._store.fault = Fault("error before", times=100, verb="publish")
    with pytest.raises(OSError, match="no answer"):
        query.coordinator.latest(query.ref)
    query.coordinator._store.fault = None
    query.land("new", NEW)
    query.drain()
    assert query.first_checkpoint().header.attachments
    query.start()
    query.drain()
    assert sorted(query.taken) == NEW_FILES


@pytest.mark.parametrize(
    "kind",
    [
        "crash before",
        "crash half-way",
        pytest.param(
            "crash after",
            marks=pytest.mark.thorough("a crash after one operation is a crash before the next"),
        ),
    ],
)
def test_a_crash_at_any_operation_reads_no_old_file_and_every_new_one(tmp_path, kind):
    for dies_at in range(1000):
        for path in tmp_path.iterdir():
            path.unlink()
        query = Query(tmp_path)
        try:
            query.start(Fault(kind, after=dies_at))
            query.drain()
            query.land("new", NEW)
            query.drain()
            ended = query.coordinator._store.fault is not None
        except SimulatedCrash:
            ended = False
        query.start()
        query.drain()
        query.land("new", NEW)
        query.drain()
        assert sorted(query.taken) == NEW_FILES, dies_at
        if ended:
            break
    assert dies_at > 30
