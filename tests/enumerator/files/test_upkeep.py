"""Bases, merges and deletions of a file source's state, with the real coordinator."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.file_columns import splits_in
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore, SimulatedCrash
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.files.ledger.files_as_of import FilesAsOf
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.testing import HandCrankedCalls
from pyspark_sluice.errors import StateCorruptError, StateMissingError
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.protocol.opened import opened

pytestmark = pytest.mark.slow


class SlowStore(MemoryStateStore):
    """Counts how many bases and runs are being written at a time."""

    def __init__(self):
        super().__init__()
        self.at_once = self.most = 0
        self.slow = 0.0
        self._counting = threading.Lock()

    def publish(self, name, data):
        if name.startswith(("bases/", "index/")):
            with self._counting:
                self.at_once += 1
                self.most = max(self.most, self.at_once)
            time.sleep(self.slow)
            with self._counting:
                self.at_once -= 1
        super().publish(name, data)


class Query:
    def __init__(self, directory, **settings):
        self.directory = directory
        self.store = SlowStore()
        self.settings = CoordinatorSettings(
            BatchLimits(files=1), 1, deltas_per_base=3, commit_patience=0.0, **settings
        )
        self.ref = NO_CHECKPOINT
        self.landed = 0

    def start(self):
        options = parse_options({"path": str(self.directory)}, streaming=False)
        source = FileSource(options, pa.schema([("id", pa.int64())]))
        coordinator = Coordinator(source, self.store, self.settings)
        coordinator.prepare_available_now()
        return coordinator

    def land(self, count=1):
        for _ in range(count):
            (self.directory / f"{self.landed:04}.json").write_text("{}")
            self.landed += 1

    def run(self, *, to_the_end=False):
        coordinator = self.start()
        batches = 0
        while (end := coordinator.latest(self.ref)) != self.ref:
            coordinator.assignments(self.ref, end)
            coordinator.commit(self.ref)
            self.ref = end
            batches += 1
        if to_the_end:
            wait_until(lambda: not opened(coordinator).upkeep.is_busy)
        coordinator.close()
        return batches


def test_runs_of_a_single_batch_come_to_their_bases(tmp_path):
    query = Query(tmp_path)
    for _ in range(14):
        query.land()
        assert query.run() == 1
    bases = CheckpointHistory(query.store).bases()
    # Where a run ends before its base is written, one that is long overdue is waited for.
    assert max(ref.checkpoint for ref in bases) >= 14 - 7


def test_one_piece_of_work_is_done_at_a_time_however_slow_the_store_is(tmp_path):
    query = Query(tmp_path)
    query.store.slow = 0.05
    query.land(40)
    assert query.run(to_the_end=True) == 40
    assert query.store.most == 1
    assert CheckpointHistory(query.store).bases()


def test_a_base_of_which_a_run_is_gone_is_skipped_and_written_again(tmp_path, caplog):
    query = Query(tmp_path, retained_checkpoints=1000)
    query.land(12)
    query.run(to_the_end=True)
    names = [name for name in query.store.objects if name.endswith(".keys.arrow")]
    assert names
    for name in names:
        query.store.objects[name] = b"torn" + query.store.objects[name]
    query.land()
    assert query.run() == 1
    assert "skipping a base" in caplog.text
    restarted = query.start()
    assert restarted.latest(query.ref) == query.ref
    assert len(opened(restarted).enumerator.ledger.seen) == 13
    restarted.close()


def test_a_run_that_is_gone_is_named_where_nothing_is_left_below_its_base(tmp_path):
    query = Query(tmp_path)
    query.land(12)
    query.run(to_the_end=True)
    (*_, newest) = CheckpointHistory(query.store).bases()
    for name in list(query.store.objects):
        if name.startswith("checkpoints/") and int(name[12:22]) <= newest.checkpoint:
            del query.store.objects[name]
        if name.endswith(".keys.arrow"):
            del query.store.objects[name]
    with pytest.raises((StateMissingError, StateCorruptError), match=r"index/.*keys\.arrow"):
        query.start().latest(query.ref)


class DyingStore(MemoryStateStore):
    """One process's handle on objects that outlive it: dies at one operation of the upkeep."""

    def __init__(self, objects, dies_at, *, after):
        super().__init__()
        self.objects = objects
        self.left = dies_at
        self.after = after
        self.dead = False

    def _do(self, name, action, *, counts):
        if self.dead:
            raise SimulatedCrash
        self.left -= counts
        if counts and self.left < 0:
            self.dead = True
            if self.after:
                action()
            raise SimulatedCrash
        return action()

    def publish(self, name, data):
        upkeep = name.startswith(("bases/", "index/", "FORMAT"))
        self._do(name, lambda: super(DyingStore, self).publish(name, data), counts=upkeep)

    def delete(self, name):
        self._do(name, lambda: super(DyingStore, self).delete(name), counts=True)

    def list(self, directory):
        return self._do(directory, lambda: super(DyingStore, self).list(directory), counts=False)

    def read(self, name):
        return self._do(name, lambda: super(DyingStore, self).read(name), counts=False)


FILES = 12


class SmallRuns(FileSource):
    """Seals, merges and deletes all the time."""

    def policy(self):
        merging = MergePolicy(flush_at=2, fan_in=2, longest=8)
        return replace(super().policy(), ledger=LedgerPolicy(merging=merging))


def drive(source, store, ref, taken, directory):
    """Batch after batch until nothing is left or the process dies; where Spark is then."""
    settings = CoordinatorSettings(
        BatchLimits(files=1),
        1,
        deltas_per_base=2,
        retained_checkpoints=2,
        commit_patience=0.0,
        discovery_timeout=0.0,
        upkeep_patience=0.0,
    )
    try:
        coordinator = Coordinator(source, store, settings, lambda: 0.0, HandCrankedCalls)
        coordinator._open(ref)
        calls = coordinator._threads.calls
        for _ in range(200):
            landed = min(len(taken) + 2, FILES)
            for number in range(len(list(directory.iterdir())), landed):
                (directory / f"{number:02}.json").write_text("{}")
            for _ in range(4):
                calls.run_calls()
            calls.tick()
            end = coordinator.latest(ref)
            if end == ref and len(taken) == FILES:
                return ref, True
            if end == ref:
                continue
            (checkpoint,) = coordinator.assignments(ref, end)
            taken.extend(s.file.path for _, rows in checkpoint.assigned for s in splits_in(rows))
            coordinator.commit(ref)
            ref = end
    except SimulatedCrash:
        return ref, False
    raise AssertionError


@pytest.mark.parametrize(
    "after",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.thorough("a crash after one operation is a crash before the next"),
        ),
    ],
    ids=["before", "after"],
)
def test_a_crash_at_any_operation_of_a_base_a_merge_or_a_deletion_loses_nothing(tmp_path, after):
    options = parse_options({"path": str(tmp_path)}, streaming=False)
    source = SmallRuns(options, pa.schema([("id", pa.int64())]))
    kinds = set()
    for dies_at in range(1000):
        objects, taken = {}, []
        for path in tmp_path.iterdir():
            path.unlink()
        ref, ended = drive(
            source, DyingStore(objects, dies_at, after=after), NO_CHECKPOINT, taken, tmp_path
        )
        if ended:
            break
        ref, ended = drive(source, DyingStore(objects, 10_000, after=False), ref, taken, tmp_path)
        assert ended
        assert sorted(taken) == sorted(map(str, tmp_path.iterdir())), dies_at
        kinds |= {name.partition("/")[0] for name in objects}
        store = MemoryStateStore()
        store.objects = objects
        for base in CheckpointHistory(store).bases():
            for attachment in CheckpointHistory(store).read_base(base).header.attachments:
                assert f"index/{attachment.name}" in objects
        assert len(list(FilesAsOf(store, ref).seen())) > 0
    assert dies_at > 30
    assert {"bases", "index"} <= kinds
