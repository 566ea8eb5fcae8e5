"""HDFS: the faults of a real NameNode and real DataNodes."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from pyspark_sluice.checkpoint_meta.storage import hdfs_storage
from pyspark_sluice.checkpoint_meta.storage.contract import PART
from pyspark_sluice.checkpoint_meta.storage.hdfs_storage import HdfsStorage
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.storage_errors import (
    AnotherVersion,
    RefusedRequest,
    patiently,
)
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs, mini_hdfs_command
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.thorough import HDFS

pytest.importorskip("hdfs_native")

ODD_NAMES = ["a b", "a%20b", "a#b", "a?b=c&d", "a*b", "ä ö", "{x}", "day=2026-01-01", "x" * 200]


@pytest.fixture
def root():
    return f"/{uuid.uuid4().hex}"


@pytest.fixture
def storage(hdfs):
    return HdfsStorage(hdfs.authority, {})


def test_odd_names_are_listed_and_read_as_they_are(storage, root):
    for name in ODD_NAMES:
        storage.create(f"{root}/{name}", name.encode())
    assert storage.names(root) == sorted(ODD_NAMES)
    assert [storage.whole(f"{root}/{name}").decode() for name in ODD_NAMES] == ODD_NAMES


def test_only_the_owner_may_write_in_new_directories(storage, hdfs, root):
    hdfs.tell(f"quota {root} 1000")
    hdfs.tell(f"mode {root} 777")
    storage.create(f"{root}/a/b/file", b"x")
    storage.rename(f"{root}/a/b/file", f"{root}/c/d/file")
    client = storage._client
    modes = {
        path: client.get_file_info(f"{root}/{path}").permission for path in ("a", "a/b", "c/d")
    }
    assert modes == dict.fromkeys(modes, 0o755)
    assert client.get_file_info(f"{root}/c/d/file").permission == 0o644


def test_a_large_file_is_read_and_copied_in_parts_of_one_version(storage, root):
    data = os.urandom(PART + 1000)
    storage.create(f"{root}/a", data)
    storage.copy(f"{root}/a", f"{root}/b")
    assert storage.whole(f"{root}/b") == data
    parts = storage.parts(f"{root}/a")
    next(parts)
    time.sleep(0.01)
    storage.delete(f"{root}/a")
    storage.create(f"{root}/a", data)
    with pytest.raises(AnotherVersion):
        next(parts)


@HDFS
def test_no_failover_loses_a_publish_or_doubles_one(tmp_path, root, monkeypatch):
    pair = MiniHdfs(mini_hdfs_command(), tmp_path, "pair")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(pair.configuration))
    storage = HdfsStorage("lake", {})
    # The configuration's default.
    default, name = open_storage(f"hdfs://{root}/a", {})
    assert default.url(name) == f"hdfs://{root}/a"
    default.create(name, b"x")
    assert storage.names(root) == ["a"]
    created = []

    def write(at):
        number = 0
        while failovers.is_alive() or number < 5:
            name, data = f"{root}/{at}/{number}", b"%d %d" % (at, number)
            try:
                patiently(partial(storage.create, name, data))
            except FileExistsError:
                # Its own: the answer to an earlier try was lost.
                assert storage.whole(name) == data
            created.append((name, data))
            number += 1

    def fail_over():
        for how in ("end", "handover"):
            pair.tell(f"failover {how}")

    failovers = threading.Thread(target=fail_over)
    try:
        failovers.start()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        failovers.join()
        assert {name: storage.whole(name) for name, _ in created} == dict(created)
    finally:
        pair.close()


def test_safe_mode_is_waited_out_and_named_in_the_end(hdfs, storage, root):
    hdfs.tell("safe on")
    try:
        with pytest.raises(OSError, match=r"SafeModeException.*safe mode") as error:
            patiently(lambda: storage.create(f"{root}/a", b"x"), attempts=2)
        assert error.value.filename.startswith(f"hdfs://{hdfs.authority}/")
        assert not storage.exists(f"{root}/a")
        threading.Timer(1.0, lambda: hdfs.tell("safe off")).start()
        patiently(lambda: storage.create(f"{root}/a", b"x"))
    finally:
        hdfs.tell("safe off")
    assert storage.whole(f"{root}/a") == b"x"


def test_missing_permission_is_final_and_names_the_user(hdfs, storage, root, monkeypatch):
    storage.create(f"{root}/d/a", b"x")
    hdfs.tell(f"mode {root}/d 755")
    hdfs.tell(f"mode {root}/d/a 600")
    monkeypatch.setenv("HADOOP_USER_NAME", "eve")
    eve = HdfsStorage(hdfs.authority, {})
    for action in (
        lambda: eve.create(f"{root}/d/b", b""),
        lambda: eve.read(f"{root}/d/a"),
        lambda: eve.delete(f"{root}/d/a"),
        lambda: eve.rename(f"{root}/d/a", f"{root}/d/c"),
    ):
        with pytest.raises(PermissionError, match="Permission denied: user=eve"):
            patiently(action)
    assert storage.names(f"{root}/d") == ["a"]


def test_a_quota_is_named_and_leaves_nothing(hdfs, storage, root):
    hdfs.tell(f"quota {root} 3")
    for name in ("a", "b"):
        storage.create(f"{root}/{name}", b"x")
    with pytest.raises(OSError, match=r"NSQuotaExceeded.*quota"):
        storage.create(f"{root}/c", b"x")
    hdfs.tell(f"quota {root}-bytes 9 1000")
    with pytest.raises(OSError, match=r"DSQuotaExceeded.*quota"):
        storage.create(f"{root}-bytes/c", b"x")
    assert list(storage.files(root)) == [f"{root}/a", f"{root}/b"]
    assert list(storage.files(f"{root}-bytes")) == []


def test_a_lost_data_node_is_read_around_and_a_lost_block_is_named(hdfs, storage, root):
    data = os.urandom(3 * PART)
    storage.create(f"{root}/two", data)
    storage.create(f"{root}/one", data)
    hdfs.tell(f"copies {root}/one 1")
    # Its second copy is deleted some heartbeats later.
    time.sleep(20)
    parts = storage.parts(f"{root}/two")
    read = next(parts)
    hdfs.tell(f"stop {root}/one")
    try:
        assert read + b"".join(parts) == data

        def is_written():
            # The name node may name the lost node again until it knows.
            with suppress(OSError):
                storage.create(f"{root}/three", b"x")
            return storage.exists(f"{root}/three")

        wait_until(is_written, "a write around the lost node", 120)
        with pytest.raises(OSError, match="All DataNodes failed") as error:
            storage.whole(f"{root}/one")
        assert "\n" not in str(error.value)
    finally:
        hdfs.tell("start")
    assert patiently(lambda: storage.whole(f"{root}/one")) == data


def test_a_name_node_that_does_not_answer_is_given_up(hdfs, storage, root, monkeypatch):
    monkeypatch.setattr(hdfs_storage, "_SECONDS", 1.0)
    storage.create(f"{root}/a", b"x")
    os.kill(hdfs.process.pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(OSError, match="did not answer within 1 seconds"):
            storage.create(f"{root}/b", b"x")
        assert time.monotonic() - started < 5
    finally:
        os.kill(hdfs.process.pid, signal.SIGCONT)
    assert patiently(lambda: storage.whole(f"{root}/a")) == b"x"


def test_the_process_ends_while_threads_make_requests(hdfs):
    program = f"""
import threading, time
from pyspark_sluice.checkpoint_meta.storage.hdfs_storage import HdfsStorage
storage = HdfsStorage("{hdfs.authority}", {{}})
def look():
    while True:
        storage.exists("/")
for _ in range(8):
    threading.Thread(target=look, daemon=True).start()
time.sleep(0.1)
"""
    command = [sys.executable, "-c", program]
    for _ in range(5):
        done = subprocess.run(command, check=False, capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


def test_more_files_than_two_pages_hold_are_listed_in_pages(storage, root, monkeypatch):
    monkeypatch.setattr(hdfs_storage, "_PAGE", 10)
    names = [f"{root}/{number:06}.txt" for number in range(25)]
    for name in names:
        storage.create(name, b"")
    pages = [page.names for page in storage.pages(f"{root}/")]
    assert max(map(len, pages)) == 10
    assert [name for page in pages for name in page] == names


def test_of_a_file_and_of_an_empty_directory_nothing_is_listed(storage, root):
    storage.create(f"{root}/d/a", b"x")
    storage.delete(f"{root}/d/a")
    storage.create(f"{root}/b", b"x")
    assert [page.exists for page in storage.pages(f"{root}/b/")] == [False]
    assert [page.exists for page in storage.pages(f"{root}/d/")] == [False]
    assert storage.exists(f"{root}/d/")
    with pytest.raises(FileNotFoundError):
        list(storage.pages(f"{root}/c/"))


def test_what_a_crash_left_is_deleted_after_a_day(hdfs, storage, root):
    for name in (".a.1.tmp", ".b.2.tmp", ".c", "d.tmp"):
        storage.create(f"{root}/{name}", b"")
    for name in (".a.1.tmp", ".c", "d.tmp"):
        hdfs.tell(f"age {root}/{name} 1000")
    HdfsStorage(hdfs.authority, {}).create(f"{root}/e", b"")
    left = [f"{root}/{name}" for name in (".b.2.tmp", ".c", "d.tmp", "e")]
    assert list(storage.files(root)) == left


def test_without_a_cluster_places_and_options_are_refused_by_name(monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(OptionError, match="HADOOP_CONF_DIR"):
        HdfsStorage("", {})
    with pytest.raises(OptionError, match=r"not known to the client of hdfs.*endpoint, key"):
        HdfsStorage("namenode:8020", {"key": "x", "endpoint": "y", "dfs.replication": 1})


def test_without_a_cluster_an_absent_name_node_is_an_error_in_bounded_time(monkeypatch):
    monkeypatch.setattr(hdfs_storage, "_SECONDS", 0.3)
    storage, name = open_storage("hdfs://127.0.0.1:1/lake/a", {})
    with pytest.raises(OSError, match=r"refused|did not answer") as error:
        storage.create(name, b"x")
    assert not isinstance(error.value, RefusedRequest | FileNotFoundError)
    assert error.value.filename == "hdfs://127.0.0.1:1/lake/.a" + error.value.filename[26:]
