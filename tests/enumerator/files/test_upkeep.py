"""Bases, merges and deletions of a file source's state, with the real coordinator."""

import threading
import time
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.testing import Fault, MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.connector.views.files_as_of import FilesAsOf
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.errors import StateCorruptError, StateMissingError
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.protocol.opened import opened
from pyspark_sluice.tests.thorough import sampled

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


REPLACING = {
    "onOverwrite": "replace",
    "onDelete": "retract",
    "writeFileColumn": "file",
    "discoveryInterval": "10",
}


def test_a_deletion_that_ends_late_spares_the_times_of_absent_files_that_a_restart_reads(tmp_path):
    (tmp_path / "in").mkdir()
    query = Query(tmp_path / "in")
    query.land(3)
    places = {"path": "in", "writeTo": "out", "checkpointLocation": "ck"}
    options = {name: str(tmp_path / place) for name, place in places.items()} | REPLACING
    source = FileSource(parse_options(options, streaming=True), pa.schema([("id", pa.int64())]))
    query.settings = CoordinatorSettings(BatchLimits(), 1, commit_patience=0.0)
    coordinator = Coordinator(source, query.store, query.settings)

    def next_batch():
        before = query.ref
        wait_until(lambda: coordinator.latest(before) != before)
        query.ref = coordinator.latest(before)
        coordinator.assignments(before, query.ref)

    next_batch()
    complete = query.ref
    # Each of these batches names another object: since when more files are absent.
    for name in ("0000.json", "0001.json"):
        before = query.ref
        (query.directory / name).unlink()
        next_batch()
    opened(coordinator).upkeep._prune(complete, 0)
    coordinator.close()
    # A kill before the host has written the last one into its log.
    coordinator = Coordinator(source, query.store, query.settings)
    coordinator.assignments(complete, before)
    coordinator.close()


FILES = 12


class SmallRuns(FileSource):
    """Seals, merges and deletes all the time."""

    def policy(self):
        merging = MergePolicy(flush_at=2, fan_in=2, longest=8)
        return replace(super().policy(), ledger=LedgerPolicy(merging=merging))


EACH = "dies at each fourth operation, not at each eleventh"


@pytest.mark.parametrize("step", sampled([11, 4], lambda step: step > 4, reason=EACH))
@pytest.mark.parametrize(("verb", "least"), [("publish", 30), ("delete", 8)])
def test_a_crash_at_any_operation_of_a_base_a_merge_or_a_deletion_loses_nothing(
    tmp_path, verb, least, step
):
    options = parse_options({"path": str(tmp_path)}, streaming=False)
    schema, kinds = pa.schema([("id", pa.int64())]), set()
    for after in count(0, step):
        for path in tmp_path.iterdir():
            path.unlink()
        trial = Trial(
            lambda: SmallRuns(options, schema),
            limits=BatchLimits(files=1),
            parallelism=1,
            retained_checkpoints=2,
            fault=Fault("crash before", after, verb=verb),
        )
        for number in range(FILES):
            (tmp_path / f"{number:02}.json").write_text(f'{{"id": {number}}}')
            trial.step()
        trial.run_to_end()
        trial.check(({"id": number} for number in range(FILES)), f"killed at {verb} {after}")
        history = CheckpointHistory(trial.objects)
        for base in history.bases():
            for attachment in history.read_base(base).header.attachments:
                assert f"index/{attachment.name}" in trial.objects.objects
        assert list(FilesAsOf(trial.objects, trial.offsets[-1]).seen())
        kinds |= {name.partition("/")[0] for name in trial.objects.objects}
        if not trial.kills:
            break
    assert after > least
    assert {"bases", "index"} <= kinds
