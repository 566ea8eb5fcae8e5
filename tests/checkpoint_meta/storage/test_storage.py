"""Storage: the contract of each kind of store, and what the text given to `load` names."""

import itertools
import os
import uuid

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.storage.contract import FileStatus, difference
from pyspark_sluice.checkpoint_meta.storage.fsspec_storage import FsspecStorage
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalStorage
from pyspark_sluice.checkpoint_meta.storage.urls import Location, joined, literal, loaded_paths
from pyspark_sluice.tests.checkpoint_meta.storage.storage_suite import StorageSuite


def begun(storage, name):
    draft = storage.begin(name)
    draft.sink.write(b"x")
    draft.publish()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="names descriptors by /proc")
@pytest.mark.parametrize(
    ("create", "named_by"),
    [(lambda storage, name: storage.create(name, b"x"), "link"), (begun, "rename")],
    ids=["created", "begun"],
)
def test_a_local_file_is_durable_before_its_name_and_its_name_before_the_call_returns(
    tmp_path, monkeypatch, create, named_by
):
    """A power failure between two of the calls leaves no name without its bytes."""
    calls, path = [], os.path.join(tmp_path, "file")

    def record(call):
        real = getattr(os, call)

        def noting(target, *more, **how):
            at = os.readlink(f"/proc/self/fd/{target}") if call == "fsync" else str(more[0])
            # A new directory is made durable before, in its parent.
            if at.startswith(str(tmp_path)):
                places = {str(tmp_path): "directory", path: "name"}
                calls.append((call, places.get(at, "temporary file")))
            return real(target, *more, **how)

        monkeypatch.setattr(os, call, noting)

    for call in ("fsync", "link", "rename"):
        record(call)
    create(LocalStorage(str(tmp_path)), path)
    assert calls == [("fsync", "temporary file"), (named_by, "name"), ("fsync", "directory")]


class TestLocal(StorageSuite):
    @pytest.fixture
    def location(self, tmp_path):
        return str(tmp_path / "deep" / "lake"), {}

    def age(self, name):
        os.utime(name, ns=(0, os.stat(name).st_mtime_ns + 1000))


class TestMemoryOfFsspec(StorageSuite):
    creates_atomically = False

    @pytest.fixture
    def location(self):
        return f"memory://lake-{uuid.uuid4().hex}", {}

    def age(self, name):
        file = fsspec.filesystem("memory").store[name]
        file.created = file.created.replace(year=2001)


@pytest.mark.slow
class TestEachStore(StorageSuite):
    @pytest.fixture
    def location(self, any_server, any_bucket):
        return f"{any_server.scheme}://{any_bucket}/lake", any_server.options


class TestHdfs(StorageSuite):
    @pytest.fixture
    def location(self, hdfs):
        return f"hdfs://{hdfs.authority}/{uuid.uuid4().hex}/lake", {}


@pytest.mark.slow
class TestS3OfFsspec(StorageSuite):
    creates_atomically = False  # moto's checks are not atomic for s3fs, which repeats them.

    @pytest.fixture
    def location(self, server, bucket):
        return f"s3://{bucket}/lake", {**server.options, "client": "fsspec"}


@pytest.mark.parametrize(
    ("present", "is_local", "found"),
    [
        (FileStatus(4, 1, "a"), False, "4 bytes"),
        (FileStatus(3, 9_000_000, '"a"'), False, None),
        (FileStatus(3, 1, "b"), False, "ETag b"),
        (FileStatus(3, 999_999), False, None),
        (FileStatus(3, 1_000_000), False, "modified at 1000000 us"),
        (FileStatus(3, -1), False, None),
        (FileStatus(-1, -1), False, None),
        (FileStatus(3, 1), True, "modified at 1 us"),
        (FileStatus(3, 0), True, None),
    ],
)
def test_what_a_version_is_has_one_rule(present, is_local, found):
    answer = difference(FileStatus(3, 0, "a"), present, is_local=is_local)
    assert (answer[0] if answer else None) == found


def test_a_file_of_fsspec_is_read_with_the_patience_of_all_others(monkeypatch):
    files = fsspec.filesystem("memory")
    files.pipe_file("/patience/1", b"at last")
    failures = itertools.count()

    class Flaky:
        def __init__(self, handle):
            self.seek, self.close = handle.seek, handle.close
            self._read = handle.read

        def read(self, length):
            if next(failures) < 2:
                raise RuntimeError("503 Slow Down")
            return self._read(length)

    real = files.open
    monkeypatch.setattr(files, "open", lambda *a, **k: Flaky(real(*a, **k)))
    opened = FsspecStorage(files).open("/patience/1")
    assert opened.read(3, 99).data == b"last"
    assert next(failures) == 3


def parts(text):
    return [(path.base.url, *path.wildcards) for path in loaded_paths(text)]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/a/b", [("/a/b",)]),
        ("/a, /b,,/a", [("/a",), ("/b",)]),
        ("/a/{b,c}/d,/e", [("/a", "{b,c}", "d"), ("/e",)]),
        ("/a/{b/c,d}/*.json", [("/a/b/c", "*.json"), ("/a/d", "*.json")]),
        ("/a/{b,{c/d,e}}/f", [("/a/b/f",), ("/a/c/d/f",), ("/a/e/f",)]),
        ("/a/*/./", [("/a", "*")]),
        ("/*", [("/", "*")]),
        (r"/a\,b/c\*d,/e\f", [("/a,b/c*d",), (r"/e\f",)]),
        ("s3a://lake/in/2026-*/x", [("s3://lake/in", "2026-*", "x")]),
        ("s3://{a,b/c}/d", [("s3://a/d",), ("s3://b/c/d",)]),
        ("file:///a%20b%2A/c*/%5Bd", [("/a b*", "c*", r"\[d")]),
        ("http://host/x?y=1", [("http://host/x?y=1",)]),
        ("zip://a*.csv::/b.zip", [("zip://a*.csv::/b.zip",)]),
    ],
)
def test_paths_are_taken_apart(text, meant):
    assert parts(text) == meant


def test_relative_paths_and_the_home_directory_are_local(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert parts("in/x-*,*,~/in") == [
        (str(tmp_path / "in"), "x-*"),
        (str(tmp_path), "*"),
        ("/home/me/in",),
    ]


@pytest.mark.parametrize("text", ["s3://bu*/x", "/a/*/../b"])
def test_a_wildcard_where_none_can_be_is_refused(text):
    with pytest.raises(ValueError, match="wildcard"):
        loaded_paths(text)


def test_a_list_of_paths_is_one_text_in_which_commas_of_names_do_not_separate():
    assert parts(joined(["/a,b", "/c{d,e}", "/f"])) == [("/a,b",), ("/", "c{d,e}"), ("/f",)]


def test_any_path_can_be_written_literally():
    odd = r"/a*b?c[d]e{f,g},h\i"
    assert parts(literal(odd)) == [(odd,)]


@pytest.mark.parametrize(
    "texts",
    [
        ("s3://b/x/y", "s3a://B/x//y/", "S3N://b/z/../x/./y"),
        ("gs://b/x", "gcs://b/x/"),
        ("abfss://c@a.dfs.core.windows.net/x", "az://c/x"),
        ("hdfs://node:8020/x", "hdfs://NODE/x/"),
        ("s3://b", "s3a://b/", "s3://b/."),
        ("s3://b/.x", "s3://b/./.x"),
        ("{}/disk/x", "{}/link/x", "file:{}/disk//x/", "{}/disk/y/../x"),
    ],
)
def test_a_place_is_the_same_however_it_is_written(tmp_path, texts):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    assert len({Location.of(text.format(tmp_path)).resolved for text in texts}) == 1
    one = texts[0].format(tmp_path)
    assert Location.of(one).resolved != Location.of(f"{one}2").resolved
