"""What every storage does: subclasses run it on one of them."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from pyspark_sluice.checkpoint_meta.storage.contract import FileStatus, difference
from pyspark_sluice.checkpoint_meta.storage.fsspec_storage import FsspecStorage
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalStorage
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.storage_errors import AnotherVersion, BeyondTheEnd


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
