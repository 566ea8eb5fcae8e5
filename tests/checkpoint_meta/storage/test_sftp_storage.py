"""SFTP against OpenSSH's own server."""

from __future__ import annotations

import json
import os
import threading

import pyarrow.parquet as pq
import pytest

from pyspark_sluice import run
from pyspark_sluice.checkpoint_meta.storage.contract import PART
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.sftp_storage import SftpStorage
from pyspark_sluice.checkpoint_meta.storage.storage_errors import BeyondTheEnd, patiently
from pyspark_sluice.errors import OptionError, StateError
from pyspark_sluice.tests.checkpoint_meta.storage.ssh_server import SSHD, SshServer
from pyspark_sluice.tests.connector.host.query import keywords

pytest.importorskip("paramiko")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SSHD is None, reason="OpenSSH's server sshd is not installed"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = SshServer(tmp_path_factory.mktemp("ssh"))
    yield server
    server.close()


@pytest.fixture
def storage(server, tmp_path):
    storage, name = open_storage(f"sftp://{server.authority}{tmp_path}/", server.options)
    assert isinstance(storage, SftpStorage)
    assert name == str(tmp_path)
    assert storage.name(storage.url(name)) == name
    return storage


def test_files_are_listed_read_moved_and_deleted(storage, tmp_path):
    large = os.urandom(PART + 1000)
    for name, data in {"d/large": large, "d/ä b": b"x", "d/e/1": b"1", "d/empty": b""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "d/link").symlink_to("large")
    (tmp_path / "d/above").symlink_to("..")
    (tmp_path / "d/broken").symlink_to("nowhere")
    (page,) = storage.pages(f"{tmp_path}/d/")
    sizes = dict(zip(page.names, page.sizes, strict=True))
    leaves = {"large": len(large), "link": len(large), "ä b": 1, "empty": 0}
    assert sizes == {f"{tmp_path}/d/{leaf}": size for leaf, size in leaves.items()}
    assert sorted(page.folders) == [f"{tmp_path}/d/e/"]
    assert storage.whole(f"{tmp_path}/d/large") == large
    assert storage.read(f"{tmp_path}/d/large", 3, 5).data == large[3:8]
    with pytest.raises(BeyondTheEnd):
        storage.read(f"{tmp_path}/d/ä b", 1, 1)
    with pytest.raises(FileExistsError):
        storage.rename(f"{tmp_path}/d/ä b", f"{tmp_path}/d/e/1")
    assert (tmp_path / "d/e/1").read_bytes() == b"1"
    storage.rename(f"{tmp_path}/d/ä b", f"{tmp_path}/old/f/1")
    assert (tmp_path / "old/f/1").read_bytes() == b"x"
    for _ in range(2):
        storage.delete(f"{tmp_path}/d/e/1")
        storage.delete_tree(f"{tmp_path}/old")
    assert not storage.exists(f"{tmp_path}/old")
    for missing in (storage.stat, storage.whole, lambda name: next(storage.pages(name))):
        with pytest.raises(FileNotFoundError):
            missing(f"{tmp_path}/nowhere")


def test_after_a_lost_connection_the_next_try_has_another(server, storage, tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    assert storage.whole(f"{tmp_path}/a") == b"x"
    server.cut()
    read: list[bytes] = []
    threads = [
        threading.Thread(
            target=lambda: read.append(patiently(lambda: storage.whole(f"{tmp_path}/a")))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [b"x"] * 8


def test_an_unknown_host_a_wrong_key_and_unknown_options_are_refused(server, tmp_path):
    (tmp_path / "none").touch()
    options = {**server.options, "known_hosts": str(tmp_path / "none")}
    stranger, _ = open_storage(f"sftp://{server.authority}/x", options)
    with pytest.raises(PermissionError, match="known_hosts"):
        stranger.exists("/x")
    options = {**server.options, "key_filename": server.options["key_filename"][:-4] + "host"}
    denied, _ = open_storage(f"sftp://{server.authority}/x", options)
    with pytest.raises(PermissionError, match="Authentication"):
        denied.exists("/x")
    with pytest.raises(OptionError, match="proxy"):
        open_storage(f"sftp://{server.authority}/x", {"proxy": "x"})


def test_a_query_reads_what_has_its_name_and_archives_it(server, tmp_path):
    landing = tmp_path / "in"
    (landing / "day=1").mkdir(parents=True)
    for number in range(3):
        (landing / f"day=1/{number}.json").write_text(f'{{"id": {number}}}\n')
    (landing / ".3.json.part").write_text('{"id"')
    (landing / "3.json.filepart").write_text('{"id"')
    url = f"sftp://{server.authority}{tmp_path}"
    options = {
        "path": f"{url}/in",
        "storageOptions": json.dumps(server.options),
        "fileFormat": "json",
        "inferColumnTypes": True,
        "checkpointLocation": str(tmp_path / "ck"),
        "pathGlobFilter": "*.json",
        "cleanSource": "archive",
        "sourceArchiveDir": f"{url}/old",
        "cleanSourceRetention": "0s",
        "cleanSourceWhileRetained": True,
    }

    def ids():
        run(**keywords(options), to=f"parquet:{tmp_path / 'table'}")
        return sorted(pq.read_table(tmp_path / "table")["id"].to_pylist())

    assert ids() == [0, 1, 2]
    server.cut()
    (landing / ".3.json.part").write_text('{"id": 3}\n')
    (landing / ".3.json.part").rename(landing / "3.json")
    assert ids() == [0, 1, 2, 3]
    assert sorted(path.name for path in (tmp_path / "old").rglob("*.json")) == [
        "0.json", "1.json", "2.json",
    ]  # fmt: skip
    with pytest.raises(StateError, match="Point stateLocation at one of those"):
        run(
            **keywords({**options, "checkpointLocation": f"{url}/ck"}),
            to=f"parquet:{tmp_path / 'other'}",
        )


@pytest.mark.thorough("10,000 files")
def test_ten_thousand_names_are_one_listing(storage, tmp_path):
    for number in range(10_000):
        (tmp_path / f"{number:05}").touch()
    (page,) = storage.pages(f"{tmp_path}/")
    assert len(page.names) == 10_000
