"""The contract of every store, its faults, and the remains of writers that crashed."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import time

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.documents.epochs import (
    FORMAT_DOCUMENT,
    claim_epoch,
    open_format,
)
from pyspark_sluice.checkpoint_meta.storage import local_storage
from pyspark_sluice.checkpoint_meta.storage.fsspec_storage import FsspecStorage
from pyspark_sluice.checkpoint_meta.stores.contract import in_parallel
from pyspark_sluice.checkpoint_meta.stores.open_store import (
    RetryingStateStore,
    StorageStateStore,
    open_store,
)
from pyspark_sluice.checkpoint_meta.stores.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.errors import StateError


class StateStoreSuite:
    """The contract. Subclasses make the fixture `store`."""

    def test_a_second_publication_of_a_name_fails_and_changes_nothing(self, store):
        store.publish("a/1", b"first")
        with pytest.raises(FileExistsError):
            store.publish("a/1", b"second")
        assert store.read("a/1") == b"first"

    def test_a_part_is_read_without_the_rest(self, store):
        store.publish("a/1", b"0123456789")
        assert store.read_part("a/1", 3, 4) == b"3456"
        assert store.read_part("a/1", 8, 4) == b"89"
        assert store.read_part("a/1", 10, 4) == b""
        with pytest.raises(FileNotFoundError):
            store.read_part("a/2", 0, 4)
        with pytest.raises(FileNotFoundError):
            store.read("a/2")

    def test_a_listing_is_sorted_and_of_one_directory_only(self, store):
        for name in ("d/2", "d/10", "d/1", "d/sub/3", "e/4", "top"):
            store.publish(name, b"")
        assert store.list("d") == ["1", "10", "2", "sub"]
        assert store.list("d/sub") == ["3"]
        assert store.list("nowhere") == []

    def test_what_is_deleted_once_or_twice_is_gone_and_can_be_published_again(self, store):
        for name in ("d/1", "d/2", "d/sub/3"):
            store.publish(name, b"")
        for _ in range(2):
            store.delete("d/1")
            store.delete("d/sub")
        assert store.list("d") == ["2"]
        store.publish("d/1", b"b")
        assert store.read("d/1") == b"b"


class TestStorageStateStore(StateStoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return open_store(str(tmp_path / "deep" / "state"))


class TestMemoryStateStore(StateStoreSuite):
    @pytest.fixture
    def store(self):
        return MemoryStateStore()


@pytest.fixture
def faulty():
    memory = MemoryStateStore("s3://bucket/state")
    memory.publish("d/1", b"one")
    return FaultyStateStore(memory)


def test_a_passing_fault_is_retried_with_growing_delays(faulty):
    delays = []
    store = RetryingStateStore(faulty, attempts=4, first_delay=0.1, sleep=delays.append)
    faulty.fault = Fault("error before", times=3)
    assert store.read("d/1") == b"one"
    assert delays == [pytest.approx(0.75 * most, rel=1 / 3) for most in (0.1, 0.3, 0.9)]


@pytest.mark.parametrize(
    ("verb", "call"),
    [
        ("read", lambda store: store.read("d/1")),
        ("list", lambda store: store.list("d")),
        ("delete", lambda store: store.delete("d/1")),
        ("publish", lambda store: store.publish("d/2", b"")),
    ],
)
def test_a_lasting_fault_is_raised_with_its_verb_its_place_and_its_cause(faulty, verb, call):
    store = RetryingStateStore(faulty, attempts=3, sleep=lambda _: None)
    faulty.fault = Fault("error before", times=99)
    with pytest.raises(StateError, match=f"failed to {verb} repeatedly: s3://bucket") as e:
        call(store)
    assert isinstance(e.value.__cause__, OSError)
    assert faulty.operations == 3


def test_a_publication_whose_answer_was_lost_succeeds(faulty):
    store = RetryingStateStore(faulty, sleep=lambda _: None)
    faulty.fault = Fault("error after")
    store.publish("d/2", b"mine")
    assert store.read("d/2") == b"mine"


def test_a_bit_that_flips_where_a_lost_answer_is_looked_up_ends_no_query():
    class Flipping(MemoryStateStore):
        """Its first answer is damaged on the way."""

        damaged = 1

        def read(self, name):
            self.damaged -= 1
            return b"mime" if self.damaged >= 0 else super().read(name)

    flipping = Flipping()
    faulty = FaultyStateStore(flipping)
    faulty.fault = Fault("error after")
    RetryingStateStore(faulty, sleep=lambda _: None).publish("d/2", b"mine")
    assert flipping.objects == {"d/2": b"mine"}


def test_what_is_not_there_is_no_fault_and_is_not_retried(faulty):
    store = RetryingStateStore(faulty, sleep=lambda _: None)
    with pytest.raises(FileNotFoundError):
        store.read("d/9")
    with pytest.raises(FileExistsError):
        store.publish("d/1", b"two")
    # What is another's reads alike twice.
    assert faulty.operations == 4


@pytest.mark.parametrize(
    "url",
    ["webhdfs://namenode:9870/state", "sftp://host/state", "memory://state",
     "simplecache::s3://bucket/state", "dbfs:/state"],
)  # fmt: skip
def test_a_file_system_whose_create_is_not_atomic_is_refused_by_name(url):
    with pytest.raises(StateError, match="its create is not known to be atomic") as error:
        open_store(url)
    assert f"found the file system '{url.partition(':')[0]}'" in str(error.value)
    assert "a local path or one of s3, gs, gcs, abfs, az, hdfs" in str(error.value)


def store_of(files):
    """A store on a file system of fsspec."""
    store = StorageStateStore("memory://any")
    store._storage = FsspecStorage(fsspec.filesystem("memory"))
    store._storage._files = files
    return store


def test_a_failed_precondition_of_any_server_means_that_the_object_is_there():
    class Answer(Exception):
        def __init__(self):
            self.response = {"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 412}}

    class Server:
        def pipe_file(self, path, data, mode):
            raise OSError(22, "At least one of the pre-conditions did not hold") from Answer()

    with pytest.raises(FileExistsError):
        store_of(Server()).publish("a/1", b"")


def without_hard_links(monkeypatch):
    def link(source, target):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)


@pytest.mark.parametrize("has_hard_links", [True, False])
def test_a_file_is_never_replaced_and_leaves_no_temporary_one(
    monkeypatch, tmp_path, has_hard_links
):
    if not has_hard_links:
        without_hard_links(monkeypatch)
    store = StorageStateStore(str(tmp_path / "state"))
    store.publish("d/1", b"first")
    with pytest.raises(FileExistsError):
        store.publish("d/1", b"second")
    assert store.read("d/1") == b"first"
    assert os.listdir(tmp_path / "state" / "d") == ["1"]


def test_a_mount_that_can_neither_link_nor_rename_exclusively_is_refused(monkeypatch, tmp_path):
    without_hard_links(monkeypatch)
    monkeypatch.setattr(local_storage, "_system_call", lambda: None)
    store = StorageStateStore(str(tmp_path / "state"))
    with pytest.raises(
        StateError, match="no hard links, and the operating system has no exclusive rename"
    ):
        store.publish("d/1", b"first")
    assert os.listdir(tmp_path / "state" / "d") == []


@pytest.mark.parametrize("by_a_process_that_died", [False, True])
def test_every_directory_that_is_made_is_durable_in_its_parent(
    monkeypatch, tmp_path, by_a_process_that_died
):
    root = tmp_path / "checkpoint" / "sluice" / "source"
    if by_a_process_that_died:
        (root / "d").mkdir(parents=True)
    synced: list[str] = []
    monkeypatch.setattr(local_storage, "sync", lambda d: synced.append(str(d)))
    StorageStateStore(str(root)).publish("d/1", b"")
    known = [] if by_a_process_that_died else [tmp_path]
    expected = [*known, root.parent.parent, root.parent, root, root / "d"]
    assert set(map(str, expected)) <= set(synced)


def test_a_file_system_without_conditional_creation_is_refused_by_name():
    class Plain:
        def unstrip_protocol(self, name):
            return name

        def pipe_file(self, path, data):
            raise AssertionError

    with pytest.raises(StateError, match="only if it does not exist"):
        store_of(Plain()).publish("d/1", b"")


def test_a_store_in_memory_is_listed_and_deleted_from_while_others_publish():
    store, numbers = MemoryStateStore(), itertools.count()
    for number in range(100):
        store.publish(f"a/{number}", b"")

    def publishes(phase, _):
        # A collection lets other threads go on, in the middle of all that makes an object.
        if phase == "start":
            store.publish(f"b/{next(numbers)}", b"")

    thresholds = gc.get_threshold()
    gc.callbacks.append(publishes)
    gc.set_threshold(1)
    try:
        for number in range(100):
            assert len(store.list("a")) == 100 - number
            store.delete(f"a/{number}")
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(publishes)
    assert store.list("b")


def test_a_publish_that_is_repeated_makes_the_name_durable(monkeypatch, tmp_path):
    store = RetryingStateStore(StorageStateStore(str(tmp_path / "d")), sleep=lambda _: None)
    store.publish("checkpoints/warm", b"x")
    real, failed, synced = local_storage.sync, [], []

    def sync(path):
        if str(path).endswith("checkpoints") and not failed:
            failed.append(path)
            raise OSError(5, "Input/output error")
        synced.append(str(path))
        real(path)

    monkeypatch.setattr(local_storage, "sync", sync)
    store.publish("checkpoints/1.arrow", b"content")
    assert failed
    assert str(tmp_path / "d" / "checkpoints") in synced


def test_a_torn_publication_is_seen_by_nobody_and_its_file_goes_after_a_day(tmp_path):
    folder = tmp_path / "d" / "checkpoints"
    folder.mkdir(parents=True)
    old, new = folder / f".1.arrow.{'a' * 32}.tmp", folder / f".2.arrow.{'b' * 32}.tmp"
    for path, age in ((old, 90_000), (new, 3600)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age, time.time() - age))
    store = StorageStateStore(str(tmp_path / "d"))
    assert store.list("checkpoints") == []
    store.publish("checkpoints/2.arrow", b"whole")
    assert sorted(path.name for path in folder.iterdir()) == sorted([new.name, "2.arrow"])
    assert store.list("checkpoints") == ["2.arrow"]
    assert store.read("checkpoints/2.arrow") == b"whole"


def test_many_requests_are_under_way_at_once_and_what_ends_the_process_gets_through():
    began = time.monotonic()
    assert in_parallel(lambda _: time.sleep(0.05), range(64)) == [None] * 64
    assert time.monotonic() - began < 2.0

    def crash(number):
        if number == 7:
            raise SimulatedCrash
        return number

    with pytest.raises(SimulatedCrash):
        in_parallel(crash, range(64))


def test_a_put_whose_answer_was_lost_is_our_own_success(any_server, any_bucket):
    store = open_store(f"{any_server.scheme}://{any_bucket}/lost", any_server.options)
    any_server.fail_next(any_server.lose_answer, kind="PUT")
    puts = any_server.counted(lambda: store.publish("readers/1/00000.json", b"mine"))["PUT"]
    assert puts >= 2, "the client did not repeat the request"
    assert store.read("readers/1/00000.json") == b"mine"
    with pytest.raises(FileExistsError):
        store.publish("readers/1/00000.json", b"theirs")


def test_a_create_that_only_met_another_one_is_tried_again(any_server, any_bucket):
    store = open_store(f"{any_server.scheme}://{any_bucket}/state", any_server.options)
    conflict = any_server.refuse("409 Conflict", "ConditionalRequestConflict")
    any_server.fail_next(conflict, times=2, kind="PUT")
    open_format(store)
    assert store.read("FORMAT") == FORMAT_DOCUMENT
    any_server.fail_next(conflict, times=2, kind="PUT")
    assert claim_epoch(store) == 1
