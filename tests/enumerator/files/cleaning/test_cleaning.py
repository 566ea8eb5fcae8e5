"""Which files are deleted or archived, and when: never one that could still be read."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.documents.cleanup_marks import CleanupMarks
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReturnedSplit, UnfinishedSplit
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.storage import local_storage
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalStorage
from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash
from pyspark_sluice.enumerator.files.cleaning import source_cleanup
from pyspark_sluice.enumerator.files.cleaning.file_cleaner import FileCleaner
from pyspark_sluice.enumerator.files.cleaning.places import _of_version
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.errors import StateError
from pyspark_sluice.tests.enumerator.files.cleaning.keeping import Keeping


@pytest.fixture
def keeping(tmp_path):
    return Keeping(tmp_path)


def test_only_what_completed_checkpoints_have_read_to_its_end_goes(keeping):
    big = keeping.land("big", "0123456789")
    first = keeping.whole("read", "returned", "skipped", "unfinished")
    rest = first[3]._replace(start=3)
    remainder = {"path": [rest.file.path], "size": [rest.file.size], "etag": [""]}
    remainder |= {"modified": [rest.file.modified], "start": [3], "end": [rest.end]}
    keeping.batch(
        [*first, FileSplit(big, 0, 4)],
        keeping.whole("abandoned"),
        commit={
            0: {
                "returned": [ReturnedSplit(index=1, reason="cannot be read")],
                "skipped": {2: "ignoreCorruptFiles"},
                "unfinished": [UnfinishedSplit(index=3, remainder=remainder)],
            },
            1: None,
        },
    )
    keeping.run()
    kept = ["abandoned", "big", "returned", "skipped", "unfinished"]
    assert keeping.left() == kept
    # In a later checkpoint, and by a later incarnation, the rest of them is read.
    keeping.batch([FileSplit(big, 4, 9), rest])
    running = keeping.batch([FileSplit(big, 9, 10), first[1]])
    keeping.run(keeping.history.header(running).parent)
    assert keeping.left() == ["abandoned", "big", "returned", "skipped"]
    keeping.run()
    assert keeping.left() == ["abandoned", "skipped"]


def test_a_file_stays_while_a_retained_checkpoint_would_read_it_again(tmp_path):
    keeping = Keeping(tmp_path, settings=CoordinatorSettings(retained_checkpoints=3))
    for number in range(5):
        keeping.batch(keeping.whole(f"{number}"))
    cleaning = keeping.run()
    # From checkpoint 3, the oldest of three, a query would read what 4 and 5 have read.
    assert keeping.left() == ["2", "3", "4"]
    assert cleaning.hold() == (keeping.head, 3)


def test_a_file_that_has_changed_since_it_was_read_stays(keeping):
    grown, rewritten, gone, same = keeping.whole("grown", "rewritten", "gone", "same")
    keeping.batch([grown, rewritten, gone, same])
    keeping.land("grown", "more than it was")
    os.utime(rewritten.file.path, ns=(0, (rewritten.file.modified + 1) * 1000))
    os.unlink(gone.file.path)
    cleaning = keeping.run()
    assert keeping.left() == ["grown", "rewritten"]
    figures = cleaning.figures()
    assert (figures["files"], figures["bytes"], figures["failing"]) == (1, 4, 0)
    assert (figures["changed"], figures["gone"]) == (2, 1)


@pytest.mark.parametrize("mode", ["delete", "archive"])
@pytest.mark.parametrize("way", ["renamed over it", "written into it"])
def test_a_version_of_equal_size_and_time_that_was_not_read_stays(tmp_path, mode, way):
    keeping = Keeping(tmp_path, mode=mode)
    old, part = keeping.land("old"), keeping.land("part", "0123456789")
    keeping.now = time.time() + 1
    # The second file is read in two batches, and replaced between them.
    keeping.batch([FileSplit(old, 0, old.size), FileSplit(part, 0, 4)])
    time.sleep(1.1)
    for file in (old, part):
        path = Path(file.path if way.startswith("written") else f"{file.path}-new")
        path.write_text("-" * file.size)
        os.utime(path, ns=(0, file.modified * 1000))
        path.rename(file.path)
    keeping.now += 3600
    keeping.batch([FileSplit(part, 4, 10)])
    keeping.start()  # An earlier incarnation has left a mark, which must know when it was planned.
    figures = keeping.run().figures()
    assert (figures["changed"], figures["files"]) == (2, 0)
    assert keeping.left() == ["old", "part"]
    assert keeping.archived() == []


def test_an_archive_keeps_names_below_the_loaded_path_and_replaces_nothing(tmp_path):
    keeping = Keeping(tmp_path, mode="archive")
    keeping.archive.joinpath("day=1").mkdir(parents=True)
    keeping.archive.joinpath("day=1/taken").write_text("somebody else's")
    keeping.archive.joinpath("day=1/same").write_text("day=1/same")
    keeping.batch(keeping.whole("plain", "day=1/a", "day=1/taken", "day=1/same"))
    cleaning = keeping.run()
    assert keeping.left() == []
    (second,) = {*keeping.archived()} - {"day=1/a", "day=1/same", "day=1/taken", "plain"}
    assert keeping.archive.joinpath("day=1/taken").read_text() == "somebody else's"
    assert keeping.archive.joinpath(second).read_text() == "day=1/taken"
    assert cleaning.figures()["failing"] == 0
    # Both names are taken: the file stays until one is free.
    file = keeping.land("day=1/taken")
    keeping.batch([FileSplit(file, 0, file.size)])
    name = _of_version(f"{keeping.archive}/day=1/taken", file)
    Path(name).write_text("somebody else's, too")
    assert "the archive has other files" in keeping.run().figures()["lastError"]
    assert keeping.left() == ["day=1/taken"]
    Path(name).unlink()
    assert keeping.run().figures()["failing"] == 0
    assert Path(name).read_text() == "day=1/taken"


@pytest.mark.parametrize("mode", ["delete", "archive"])
def test_a_marker_goes_with_its_file_or_with_the_last_file_of_its_directory(tmp_path, mode):
    keeping = Keeping(tmp_path, mode=mode, marker="<name>.done")
    changed, *others = keeping.whole("a", "d/b", "d/c")
    for name in ("a", "d/b", "d/c", "later"):
        keeping.land(f"{name}.done", "ok")
    keeping.land("a", "another")
    # A process died between the two.
    (keeping.landing / "d/c").unlink()
    keeping.batch([changed, *others])
    keeping.run()
    assert keeping.left() == ["a", "a.done", "later.done"]
    if mode == "archive":
        assert keeping.archived() == ["d/b", "d/b.done", "d/c.done"]


@pytest.mark.parametrize("mode", ["delete", "archive"])
def test_the_marker_of_a_directory_goes_with_its_last_file(tmp_path, mode):
    keeping = Keeping(tmp_path, mode=mode, marker="_SUCCESS")
    first = keeping.whole("a/1", "b/1", "b/2")
    for name in ("a/_SUCCESS", "b/_SUCCESS", "b/._SUCCESS.crc", "b/c/1", "_SUCCESS"):
        keeping.land(name)
    keeping.batch(first[:2])
    keeping.run()
    kept = ["_SUCCESS", "b/._SUCCESS.crc", "b/2", "b/_SUCCESS", "b/c/1"]
    assert keeping.left() == kept
    keeping.batch(first[2:])
    keeping.run()
    assert keeping.left() == ["_SUCCESS", "b/._SUCCESS.crc", "b/c/1"]
    if mode == "archive":
        assert keeping.archived() == ["a/1", "a/_SUCCESS", "b/1", "b/2", "b/_SUCCESS"]


@pytest.mark.parametrize("mode", ["delete", "archive"])
def test_a_version_that_comes_between_the_look_and_the_act_stays(tmp_path, mode, monkeypatch):
    keeping = Keeping(tmp_path, mode=mode)
    keeping.batch(keeping.whole("a"))
    look = LocalStorage.look

    def then_replaced(self, name):
        seen = look(self, name)
        monkeypatch.undo()
        Path(f"{name}-new").write_text("b")
        os.utime(f"{name}-new", ns=(0, seen.status.modified * 1000))
        os.rename(f"{name}-new", name)
        return seen

    monkeypatch.setattr(LocalStorage, "look", then_replaced)
    assert keeping.run().figures()["changed"] == 1
    assert (keeping.left(), keeping.archived()) == (["a"], [])
    assert (keeping.landing / "a").read_text() == "b"


def test_files_of_the_longest_names_are_deleted(keeping):
    keeping.batch(keeping.whole(*("a" * length for length in (238, 239, 240, 255)), "ü" * 127))
    figures = keeping.run().figures()
    assert (figures["failing"], figures["files"]) == (0, 5)
    assert keeping.left() == []


def test_a_store_that_does_not_answer_keeps_no_process_alive(keeping, monkeypatch):
    class Slow(LocalStorage):
        requests = 16

        def delete(self, name, mark=""):
            asked.set()
            answers.wait(60)

    asked, answers = threading.Event(), threading.Event()
    monkeypatch.setattr(FileCleaner, "_storage_of", lambda *_: Slow())
    before = {thread for thread in threading.enumerate() if not thread.daemon}
    keeping.batch(keeping.whole(*"abcdefgh"))
    cleaning = threading.Thread(target=keeping.run, daemon=True)
    cleaning.start()
    assert asked.wait(60)
    assert {thread for thread in threading.enumerate() if not thread.daemon} == before
    answers.set()
    cleaning.join(60)


def test_what_cannot_be_deleted_is_counted_named_and_tried_again(keeping, monkeypatch):
    keeping.batch(keeping.whole("a", "b"))
    real = os.rename

    def refusing(path, target):
        if os.fspath(path).endswith("/a"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        real(path, target)

    monkeypatch.setattr(os, "rename", refusing)
    cleaning = keeping.run()
    assert keeping.left() == ["a"]
    assert cleaning.figures()["failing"] == 1
    assert "Permission denied" in cleaning.figures()["lastError"]
    monkeypatch.undo()
    # Not hammered: the next try is some seconds later; but a new start tries at once.
    cleaning.step()
    assert keeping.left() == ["a"]
    assert keeping.run().figures() == {
        "files": 2,
        "bytes": 2,
        "changed": 0,
        "gone": 0,
        "failing": 0,
        "checkpointsToClean": 0,
    }


def test_with_very_many_failures_later_checkpoints_wait_and_nothing_is_forgotten(
    keeping, monkeypatch
):
    def refusing(path, _):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(source_cleanup, "_MOST_FAILING", 10)
    keeping.batch(keeping.whole(*(f"{n:04}" for n in range(11))))
    keeping.batch(keeping.whole("later"))
    monkeypatch.setattr(os, "rename", refusing)
    cleaning = keeping.run()
    assert cleaning.figures()["failing"] == 11
    # The state behind it is held, and no mark claims that it is done.
    assert cleaning.hold() == (keeping.head, 2)
    assert keeping.store.list("cleaned") == []
    monkeypatch.undo()
    keeping.run()
    assert keeping.left() == []


def test_a_superseded_query_cleans_nothing(keeping):
    keeping.batch(keeping.whole("a"))
    keeping.is_ours = False
    with pytest.raises(AssertionError, match="superseded"):
        keeping.run()
    assert keeping.left() == ["a"]


def test_what_is_marked_as_done_is_not_looked_at_again(keeping, monkeypatch):
    for number in range(25):
        keeping.batch(keeping.whole(f"{number}"))
    keeping.run()
    assert len(keeping.store.list("cleaned")) == 2
    seen: list[str] = []
    real = os.stat

    def noting(path, **more):
        seen.append(str(path))
        return real(path, **more)

    monkeypatch.setattr(os, "stat", noting)
    keeping.batch(keeping.whole("new"))
    keeping.run()
    assert {os.path.basename(path) for path in seen if "/in/" in path} == {
        "new",
        ".new.sluice-deleted",
    }


def test_damaged_marks_cost_a_second_look_and_nothing_else(keeping):
    keeping.batch([FileSplit(keeping.land("big", "0123456789"), 0, 4)], keeping.whole("a"))
    keeping.run()
    (name,) = keeping.store.list("cleaned")
    keeping.store.objects[f"cleaned/{name}"] = b"{"
    assert CleanupMarks(keeping.store, 9).found() == []
    big = FileSplit(keeping.land("big", "0123456789"), 0, 10).file
    os.utime(big.path, ns=(0, big.modified * 1000))
    keeping.batch([FileSplit(big, 4, 10)])
    cleaning = keeping.run()
    assert cleaning.figures()["gone"] == 1
    # Landed again it is another version; of this one only the second part was ever read.
    assert keeping.left() == ["big"]


OPERATIONS = {"unlink": os, "link": os, "copy2": shutil}


@pytest.mark.sample("delete", "copy", why="the same around other operations")
@pytest.mark.slow
@pytest.mark.parametrize("way", ["delete", "rename", "link", "copy"])
def test_death_around_any_operation_loses_and_doubles_nothing(tmp_path, monkeypatch, way):
    """At every moment a file is whole in one place at least; in the end it is in one exactly."""
    names = [f"{number}/{leaf}" for number in range(2) for leaf in "ab"]
    for moment in range(200):
        root = tmp_path / f"{moment}"
        root.mkdir()
        keeping = Keeping(root, mode="delete" if way == "delete" else "archive")
        for number in range(2):
            keeping.batch(keeping.whole(f"{number}/a", f"{number}/b"))
        keeping.land("not-due")
        died = False
        with monkeypatch.context() as patch:
            _slow_ways(patch, way)
            _make_mortal(patch, keeping, moment)
            try:
                keeping.run()
            except SimulatedCrash:
                died = True
        for name in names:
            places = [keeping.landing / name, keeping.archive / name]
            texts = [place.read_text() for place in places if place.exists()]
            assert way == "delete" or texts, f"{name} is lost"
            assert set(texts) <= {name}
        with monkeypatch.context() as patch:
            _slow_ways(patch, way)
            keeping.run()
        assert keeping.left() == ["not-due"]
        whole = [] if way == "delete" else names
        assert [name for name in keeping.archived() if not name.endswith(".tmp")] == whole
        assert all((keeping.archive / name).read_text() == name for name in whole)
        if not died:
            break
    assert moment >= 8


@pytest.mark.parametrize("way", ["rename", "link", "copy", "left by an attempt that died"])
def test_what_is_archived_is_synced_before_its_source_is_deleted(tmp_path, monkeypatch, way):
    keeping = Keeping(tmp_path, mode="archive")
    keeping.batch(keeping.whole("day=1/a"))
    goal = keeping.archive / "day=1" / "a"
    if way.startswith("left"):
        goal.parent.mkdir(parents=True)
        goal.write_text("day=1/a")
    synced, synced_at_deletion = [], []
    fsync, unlink = os.fsync, os.unlink

    def syncing(descriptor):
        fsync(descriptor)
        synced.append((os.fstat(descriptor).st_ino, goal.exists()))

    def deleting(path):
        if os.fspath(path) == str(keeping.landing / "day=1" / "a"):
            synced_at_deletion.append(list(synced))
        unlink(path)

    _slow_ways(monkeypatch, way)
    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "unlink", deleting)
    keeping.run()
    assert keeping.archived() == ["day=1/a"]
    assert keeping.left() == []
    # A rename deletes the source itself.
    (before,) = synced_at_deletion or [synced]
    assert (goal.parent.stat().st_ino, True) in before, "the name in the archive"
    inodes = {inode for inode, _ in before}
    assert {place.stat().st_ino for place in (tmp_path, keeping.archive)} <= inodes
    # The others move the file itself, so its content is as durable as it was.
    if way not in ("rename", "link"):
        assert goal.stat().st_ino in inodes, "the content of the copy"


def _slow_ways(patch, way):
    real = local_storage.rename_exclusively

    def without(source, goal):
        raise StateError("no exclusive rename")

    def across(source, goal):
        if os.path.dirname(source) == os.path.dirname(goal):
            return real(source, goal)
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    if way == "link":
        patch.setattr(local_storage, "rename_exclusively", without)
    if way == "copy":
        patch.setattr(local_storage, "rename_exclusively", across)


def _make_mortal(patch, keeping, moment):
    """The process dies before or after an operation, whichever is number `moment` of them all."""
    count = iter(range(10_000))

    def around(real):
        def called(*given, **more):
            if next(count) == moment:
                raise SimulatedCrash
            result = real(*given, **more)
            if next(count) == moment:
                raise SimulatedCrash
            return result

        return called

    for name, module in OPERATIONS.items():
        patch.setattr(module, name, around(getattr(module, name)))
    patch.setattr(local_storage, "rename_exclusively", around(local_storage.rename_exclusively))
    patch.setattr(keeping.store, "publish", around(keeping.store.publish))
    patch.setattr(keeping.store, "delete", around(keeping.store.delete))


def test_what_another_chain_could_not_delete_is_not_deleted_before_this_one_has_read_it(
    keeping, monkeypatch
):
    files = keeping.whole("a", "b", "c")
    keeping.batch(files)
    with monkeypatch.context() as patch:

        def denied(self, name):
            raise PermissionError(13, "denied", name)

        patch.setattr(LocalStorage, "delete", denied)
        keeping.run()
    assert keeping.left() == ["a", "b", "c"]
    # The query begins again over the same directory (`startingState`), and reads one file at first.
    keeping.begin_again("f" * 16)
    keeping.batch(files[:1])
    keeping.run()
    assert keeping.left() == ["b", "c"]
    # A mark of the new chain, with its own failures, is restored.
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "delete", denied)
        keeping.batch(files[1:2])
        keeping.run()
    keeping.run()
    assert keeping.left() == ["c"]
