"""Directories that a start need not read, and that a record of them never hides a file."""

import os
import shutil
import time

import pyarrow.parquet as pq
import pytest

import pyspark_sluice
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.documents.listing_record import newest_listing
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.enumerator.files.discovery import tree_discovery
from pyspark_sluice.enumerator.files.discovery.local import listing_cache, local_tree
from pyspark_sluice.tests.enumerator.files.discovery.finding import Ledger, land, make_discovery

OLDER = CheckpointIdentity(CheckpointRef(1, 1), "lineage", "1" * 16)
NEWER = CheckpointIdentity(CheckpointRef(2, 1), "lineage", "2" * 16)
RECORD = "listings/0000000001.json"


@pytest.fixture(autouse=True)
def aged(monkeypatch):
    """Few files are enough, and directories count as old at once."""
    monkeypatch.setattr(listing_cache, "_YOUNGEST", 20_000_000)
    for module in (tree_discovery, local_tree):
        monkeypatch.setattr(module, "MOST_COMPARED", 0)
    return lambda: time.sleep(0.05)


class Start:
    """Starts of a query over one directory, with the store of its state."""

    def __init__(self, root, aged):
        self.root, self.store, self.now, self.wait = root / "in", MemoryStateStore(), 0.0, aged

    def find(self, known, *checkpoints, **options):
        """Names that the first pass of a start finds whose state is the last checkpoint."""
        self.wait()
        self.now += 1
        ledger = Ledger(*(f"{self.root}/{name}" for name in known))
        discovery = make_discovery(self.root, clock=lambda: self.now, **options)
        discovery.recall(self.store, checkpoints)
        files = [path for files in discovery.listing(ledger) for path in files.paths]
        discovery.remember()
        discovery.notify_entered()
        self.skipped = discovery.skipped
        return sorted(os.path.relpath(file, self.root) for file in files)


@pytest.fixture
def start(tmp_path, aged):
    """`b` came after the older checkpoint, and a run after the newer one has recorded both."""
    start = Start(tmp_path, aged)
    for name in ("a", "b", "d/c", "_x"):
        land(start.root, name)
    assert start.find(["a", "b", "d/c"], OLDER, NEWER) == []
    assert start.store.list("listings") == ["0000000001.json"]
    return start


def test_a_start_trusts_the_directories_whose_files_its_state_knows(start, calls):
    for chain in ([NEWER], [OLDER, NEWER]):
        calls.clear()
        assert start.find(["a", "b", "d/c"], *chain) == []
        assert calls == {}
        assert start.skipped.counts == {"ignoredPathSegmentRegex": 1}
        assert [one.path for one in start.skipped.sample] == [f"{start.root}/_x"]
    land(start.root, "d/new")
    assert start.find(["a", "b", "d/c"], NEWER) == ["d/new"]
    assert calls["scandir"] == 1
    # To show that the tests below can fail: this state does not know `b`.
    assert start.find(["a", "d/c", "d/new"], NEWER) == []


def test_a_state_that_was_restored_from_a_backup_or_is_of_another_query_trusts_no_newer_record(
    start,
):
    for chain in (
        [OLDER],
        [OLDER, CheckpointIdentity(NEWER.ref, "another", NEWER.checksum)],
        [OLDER, CheckpointIdentity(NEWER.ref, NEWER.lineage, "3" * 16)],
    ):
        assert start.find(["a", "d/c"], *chain) == ["b"]


def test_other_options_or_paths_trust_no_record(start):
    assert start.find(["a", "d/c"], NEWER, glob="[ab]") == ["b"]
    assert start.find(["a", "d/c"], NEWER, incremental=True) == ["b"]
    assert start.find(["a", "d/c"], NEWER, wants_versions=True) == ["a", "b", "d/c"]


def test_another_machine_or_another_start_of_it_trusts_no_record(start, monkeypatch):
    for boot in ("another", ""):
        monkeypatch.setattr(tree_discovery, "boot_id", lambda boot=boot: boot)
        assert start.find(["a", "d/c"], NEWER) == ["b"]


def test_every_full_listing_interval_a_start_trusts_no_record(start):
    record = newest_listing(start.store)
    start.now = record.full_listing + 98
    assert start.find(["a", "d/c"], NEWER, full_listing_interval=100.0) == []
    assert start.find(["a", "d/c"], NEWER, full_listing_interval=100.0) == ["b"]
    # A clock that was set back.
    start.now = record.full_listing - 10
    assert start.find(["a", "d/c"], NEWER, full_listing_interval=100.0) == ["b"]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "newer"])
def test_a_damaged_record_is_not_trusted_and_written_again(start, damage):
    data = start.store.objects[RECORD]
    start.store.objects[RECORD] = {
        "truncated": data[: len(data) // 2],
        "flipped": data.replace(b'"full_listing": 1', b'"full_listing": 2'),
        "empty": b"",
        "newer": data.replace(b'"format": 1', b'"format": 2'),
    }[damage]
    assert start.store.objects[RECORD] != data
    assert start.find(["a", "d/c"], NEWER) == ["b"]
    assert start.find(["a", "b", "d/c"], NEWER) == []
    assert newest_listing(start.store) is not None
    assert len(start.store.list("listings")) == 1


def test_a_directory_whose_times_were_set_back_is_read(start):
    before = os.stat(start.root / "d")
    land(start.root, "d/new")
    os.utime(start.root / "d", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert start.find(["a", "b", "d/c"], NEWER) == ["d/new"]


def test_a_directory_in_the_place_of_another_is_read(start, monkeypatch):
    land(start.root.parent, "other/new")
    other, place = start.root.parent / "other", start.root / "d"
    times = os.stat(place)
    shutil.move(place, start.root.parent / "before")
    shutil.move(other, place)
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert start.find(["a", "b", "d/c"], NEWER) == ["d/new"]
    # A file system of a network that is mounted there: its times prove nothing.
    monkeypatch.setattr(listing_cache, "_local_devices", frozenset)
    assert start.find(["a", "d/new"], NEWER) == ["b"]


def test_a_directory_that_changed_while_it_was_read_is_not_recorded(tmp_path, monkeypatch):
    # Within one tick of the clock another name may come that does not move its times.
    monkeypatch.setattr(listing_cache, "_YOUNGEST", 3_000_000_000)
    start = Start(tmp_path, lambda: None)
    land(start.root, "a")
    assert start.find(["a"], NEWER) == []
    assert start.store.list("listings") == []


def test_a_file_that_may_be_taken_while_its_directory_stays_as_it_is_keeps_it_off_the_record(start):
    land(start.root, "d/empty", "")
    os.utime(start.root / "d/empty", (1, 1))
    known = ["a", "b", "d/c"]
    assert start.find(known, NEWER) == []
    (start.root / "d/empty").write_text("x")
    assert start.find(known, NEWER) == ["d/empty"]


def test_what_a_run_reads_itself_is_recorded_by_the_next_one(start):
    new = [f"e/{number}" for number in range(9)]
    for name in new:
        land(start.root, name)
    assert start.find(["a", "b", "d/c"], NEWER) == new
    # A crash: the state that is restored does not know them.
    assert start.find(["a", "b", "d/c"], NEWER) == new
    third = CheckpointIdentity(CheckpointRef(3, 1), "lineage", "3" * 16)
    assert start.find(["a", "b", "d/c", *new], NEWER, third) == []
    assert newest_listing(start.store).identity == third


class Query:
    """Runs of `pyspark_sluice.run` into a function, which says which files it got."""

    def __init__(self, root, aged):
        self.root, self.wait = root, aged

    def run(self, checkpoint="ck"):
        """Ids of the rows that a run has read."""
        self.wait()
        ids = []

        def sink(batch, _):
            for file in batch.files:
                ids.extend(pq.read_table(file, columns=["id"]).column("id").to_pylist())

        pyspark_sluice.run(
            str(self.root / "in"),
            checkpoint=str(self.root / checkpoint),
            format="json",
            schema="id long",
            to=sink,
            writeTo=str(self.root / "data"),
        )
        return sorted(ids)

    def land(self, *ids):
        for number in ids:
            land(self.root / "in", f"{number}.json", f'{{"id": {number}}}\n')

    def records(self, checkpoint="ck"):
        """The names of the records of listings."""
        folder = self.root / checkpoint / "sluice/source/listings"
        return sorted(os.listdir(folder)) if folder.is_dir() else []


@pytest.fixture
def query(tmp_path, aged):
    return Query(tmp_path, aged)


def test_a_run_with_nothing_new_is_the_one_that_writes_a_record(query):
    query.land(1, 2)
    assert query.run() == [1, 2]
    assert query.records() == []
    for number in (3, 4):
        before = query.records()
        assert query.run() == []
        record = query.records()
        assert len(record) == 1
        assert record != before
        assert query.run() == []
        query.land(number)
        assert query.run() == [number]
        assert query.records() == record


def test_a_checkpoint_that_is_restored_below_its_newer_record_reads_the_files_again(query):
    query.land(1)
    assert query.run() == [1]
    assert query.run() == []
    state, backup = query.root / "ck", query.root / "backup"
    shutil.copytree(state, backup)
    query.land(2)
    assert query.run() == [2]
    for _ in range(2):
        # The first one after the change writes the record that the backup does not have.
        assert query.run() == []
    store = open_store(str(state / "sluice/source"), {})
    assert newest_listing(store).checkpoint == 2
    shutil.copytree(state / "sluice/source/listings", query.root / "listings")
    shutil.rmtree(state)
    shutil.copytree(backup, state)
    shutil.rmtree(state / "sluice/source/listings")
    shutil.copytree(query.root / "listings", state / "sluice/source/listings")
    assert query.run() == [2]
    assert query.run() == []


def test_a_copy_of_a_checkpoint_and_a_fork_go_their_own_ways(query):
    query.land(1)
    assert query.run() == [1]
    assert query.run() == []
    shutil.copytree(query.root / "ck", query.root / "copy")
    query.land(2)
    assert query.run() == [2]
    assert query.run() == []
    assert query.run("copy") == [2]
    assert main(["fork", str(query.root / "ck"), str(query.root / "fork"), "--yes"]) == 0
    assert query.records("fork") == []
    assert query.run("fork") == []
    query.land(3)
    for checkpoint in ("ck", "copy", "fork"):
        assert query.run(checkpoint) == [3]
