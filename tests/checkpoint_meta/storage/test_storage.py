"""Storage: the contract of each kind of store, and what the text given to `load` names."""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.storage.contract import FileStatus, difference
from pyspark_sluice.checkpoint_meta.storage.fsspec_storage import FsspecStorage
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalStorage
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.storage_errors import AnotherVersion, BeyondTheEnd
from pyspark_sluice.checkpoint_meta.storage.urls import joined, literal, loaded_paths, resolved


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


class StorageSuite:
    """Subclasses make the fixture `location`: a URL below which nothing is, and its options."""

    creates_atomically = True

    @pytest.fixture
    def storage(self, location):
        url, options = location
        self.storage, self.root = open_storage(url, options)
        return self.storage

    def name(self, path):
        return f"{self.root}/{path}"

    def put(self, path, data=b"x"):
        self.storage.create(self.name(path), data)
        return self.name(path)

    def test_a_name_and_its_url_are_each_other_s_inverse(self, storage, location):
        name = self.put("a/b")
        assert storage.name(storage.url(name)) == name
        assert open_storage(storage.url(name), location[1])[1] == name

    def test_what_is_created_is_read_whole_and_in_parts(self, storage):
        name = self.put("a/b/1", b"0123456789")
        assert storage.whole(name) == b"0123456789"
        assert storage.whole(self.put("a/empty", b"")) == b""
        assert storage.read(name, 3, 4).data == b"3456"
        assert storage.read(name, 8, 4).data == b"89"
        assert storage.stat(name).size == 10
        with pytest.raises(BeyondTheEnd):
            storage.read(name, 10, 4)
        opened = storage.open(name, storage.stat(name).etag)
        assert [opened.read(at, 3).data for at in (7, 0)] == [b"789", b"012"]
        assert opened.read(0, 1).status.size == 10
        with pytest.raises(BeyondTheEnd):
            opened.read(10, 1)
        opened.close()

    def test_what_is_not_there_is_file_not_found(self, storage):
        name = self.name("a/1")
        for look in (storage.stat, storage.whole, storage.read):
            with pytest.raises(FileNotFoundError):
                look(name)
        with pytest.raises(FileNotFoundError):
            storage.open(name).read(0, 1)
        assert not storage.exists(name)
        storage.refresh(self.name("nowhere"))

    def test_a_second_creation_fails_and_changes_nothing(self, storage):
        name = self.put("a/1", b"first")
        with pytest.raises(FileExistsError):
            storage.create(name, b"second")
        assert storage.whole(name) == b"first"

    def test_of_many_creations_at_once_one_wins(self, storage):
        if not self.creates_atomically:
            pytest.skip("state is refused here for this reason")
        name, wins, start = self.name("a/1"), list[int](), threading.Barrier(4)

        def create(number):
            start.wait(30)
            with suppress(OSError):
                storage.create(name, str(number).encode())
                wins.append(number)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(create, range(4)))
        # A store that answers "try again" to some may have no winner that knows of it.
        assert len(wins) <= 1
        assert storage.whole(name).decode() in map(str, wins or range(4))

    def test_names_are_those_of_one_directory_and_sorted(self, storage):
        for path in ("d/2", "d/10", "d/1", "d/sub/3", "e/4"):
            self.put(path)
        assert storage.names(self.name("d")) == ["1", "10", "2", "sub"]
        with suppress(FileNotFoundError):
            assert storage.names(self.name("nowhere")) == []
        assert sorted(storage.files(self.name("d"))) == [
            self.name(f"d/{leaf}") for leaf in ("1", "10", "2", "sub/3")
        ]
        assert storage.exists(self.name("d/"))

    def test_pages_have_the_versions_that_are_there(self, storage):
        names = [self.put("d/1", b"abc"), self.put("d/2", b"")]
        self.put("d/sub/3")
        pages = list(storage.pages(self.name("d/"), folders=True))
        rows = sorted(
            itertools.chain.from_iterable(
                zip(page.names, page.sizes, page.modified, page.etags, strict=True)
                for page in pages
            )
        )
        assert [row[:2] for row in rows] == [(names[0], 3), (names[1], 0)]
        for name, *version in rows:
            assert difference(FileStatus(*version), storage.stat(name)) is None
        assert [folder for page in pages for folder in page.folders] == [self.name("d/sub/")]

    def test_stretches_of_a_flat_listing_are_exact(self, storage):
        if not storage.is_flat:
            pytest.skip("a listing of one directory has no stretches")
        keys = [f"in/day={day:02}/{n}" for day in (2, 3, 5, 11) for n in range(3)]
        keys += ["in/day=03-late/x", "in/day=03.5/x", "in/day=03", "in/dax", "in/ä", "inn/x", "a"]
        names = sorted(map(self.put, keys))
        prefixes = ("in/", "in/day=03", "in/day=03/", "")
        afters = ("", "in/day=03", "in/e")
        for prefix, after, until in itertools.product(
            map(self.name, prefixes),
            (text and self.name(text) for text in afters),
            ("", self.name("in/day=05/2")),
        ):
            pages = storage.pages(prefix, after=after, until=until)
            assert [name for page in pages for name in page.names] == [
                name
                for name in names
                if name.startswith(prefix) and name > after and (not until or name <= until)
            ], (prefix, after, until)

    def test_a_replaced_file_of_the_same_size_is_another_version(self, storage):
        name = self.put("d/1", b"one")
        before = storage.stat(name)
        storage.delete(name)
        self.put("d/1", b"two")
        self.age(name)
        is_local = isinstance(storage, LocalStorage)
        assert difference(before, storage.stat(name), is_local=is_local)

    def age(self, name):
        """Stores with version marks need no time in between."""

    def test_a_copy_is_whole_and_what_is_deleted_twice_is_no_error(self, storage):
        name = self.put("d/1", b"one")
        storage.copy(name, self.name("e/sub/2"))
        assert storage.whole(self.name("e/sub/2")) == b"one"
        with pytest.raises(FileExistsError):
            storage.copy(self.put("d/2", b"two"), self.name("e/sub/2"))
        assert storage.whole(self.name("e/sub/2")) == b"one"
        storage.delete(self.name("d/2"))
        assert list(storage.files(self.name("e"))) == [self.name("e/sub/2")]
        self.put("d/12")
        storage.persist(name)
        for path in ("d/3", "e/sub-2"):
            self.put(path)
        for _ in range(2):
            storage.delete(name)
            storage.delete_tree(self.name("d/3"))
            storage.delete_tree(self.name("e/sub"))
        assert list(storage.files(self.name("d"))) == [self.name("d/12")]
        assert list(storage.files(self.name("e"))) == [self.name("e/sub-2")]
        self.put("d/1", b"again")

    def test_a_rename_never_replaces_or_leaves_it_to_the_caller(self, storage):
        one, two = self.put("d/1", b"one"), self.put("d/2", b"two")
        with pytest.raises(OSError, match=r"exists|exclusive rename") as error:
            storage.rename(one, two)
        assert storage.whole(two) == b"two"
        if isinstance(error.value, FileExistsError):
            storage.rename(one, self.name("e/1"))
            assert storage.whole(self.name("e/1")) == b"one"
            assert not storage.exists(one)

    def test_what_was_replaced_after_a_look_is_neither_deleted_nor_moved(self, storage):
        name = self.put("d/1", b"old")
        mark = storage.look(name).mark
        if not mark:
            pytest.skip("it compares nothing")
        storage.delete(name)
        # Of the same length, and for local files of the same time.
        self.put("d/1", b"new")
        with pytest.raises(AnotherVersion):
            storage.delete(name, mark)
        with pytest.raises(OSError, match=r"replaced while it was moved|exclusive rename"):
            storage.rename(name, self.name("d/2"), mark)
        assert storage.whole(name) == b"new"
        assert list(storage.files(self.name("d"))) == [name]
        storage.delete(name, storage.look(name).mark)
        storage.delete(name, mark)
        assert list(storage.files(self.name("d"))) == []

    def test_a_draft_is_seen_once_it_is_published(self, storage):
        name = self.name("table/day=1/1.parquet")
        if isinstance(storage, FsspecStorage):
            with pytest.raises(OSError, match="partly written"):
                storage.begin(name)
            return
        draft, dropped = storage.begin(name), storage.begin(self.name("table/2"))
        draft.sink.write(b"rows")
        dropped.sink.write(b"rows")
        assert not storage.exists(name)
        assert draft.publish() == storage.url(name)
        dropped.discard()
        assert list(storage.files(self.name("table"))) == [name]
        assert storage.whole(name) == b"rows"


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
    return [(path.base, *path.wildcards) for path in loaded_paths(text)]


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
    assert len({resolved(text.format(tmp_path)) for text in texts}) == 1
    assert resolved(texts[0].format(tmp_path)) != resolved(f"{texts[0].format(tmp_path)}2")
