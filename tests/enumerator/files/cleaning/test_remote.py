"""Cleaning up where fsspec leads, in each bucket, and behind a coordinator that runs."""

from __future__ import annotations

import re
import uuid

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.cleanup_marks import CleanupMarks
from pyspark_sluice.checkpoint_meta.documents.reader_commit import (
    ReaderCommit,
    ReaderCommits,
    about,
)
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.storage.bucket_storage import BucketStorage
from pyspark_sluice.checkpoint_meta.storage.contract import Storage
from pyspark_sluice.checkpoint_meta.storage.fsspec_storage import FsspecStorage
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.urls import loaded_paths
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.state_location import check_not_cleaned
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.coordinator.coordinator import Coordinator
from pyspark_sluice.enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from pyspark_sluice.enumerator.files.cleaning.places import present_version
from pyspark_sluice.enumerator.files.discovery.selection.name_patterns import ReadyMarker
from pyspark_sluice.enumerator.settings import CoordinatorSettings
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.patience import wait_until


@pytest.mark.slow
class CleaningSuite:
    """Subclasses make the fixture `location`: a URL below which nothing is, and its options."""

    kind: type[Storage] = FsspecStorage
    changed = b"TEXT of changed"
    below = "prefix-below"

    @pytest.fixture
    def before_cleaning(self):
        return lambda: None

    @pytest.mark.parametrize("mode", ["delete", "archive"])
    def test_what_was_read_goes_and_what_has_changed_or_is_in_the_way_stays(
        self, location, before_cleaning, mode
    ):
        root, options = location
        storage, base = open_storage(root, options)
        assert type(storage) is self.kind

        def texts(directory):
            start = f"{base}/{directory}/"
            return {name[len(start) :]: storage.whole(name) for name in storage.files(start)}

        names = ["a", "day=1/b", "changed", "gone", "taken", "half-done", "prefix"]
        for name in [*names, self.below]:
            storage.create(f"{base}/in/{name}", b"text of " + name.encode())
        urls = [storage.url(f"{base}/in/{name}") for name in names]
        read = [present_version(storage, FileVersion(url, 0, -1)) for url in urls]
        storage.delete(f"{base}/in/changed")
        storage.create(f"{base}/in/changed", self.changed)
        storage.delete(f"{base}/in/gone")
        if mode == "archive":
            storage.create(f"{base}/old/taken", b"TEXT of taken")
            storage.create(f"{base}/old/half-done", b"text of half-done")
        archive = f"{root}/old" if mode == "archive" else ""
        cleaner = FileCleaner(CleaningPolicy(mode, loaded_paths(f"{root}/in"), archive), options)
        splits = [FileSplit(file, 0, file.size) for file in read if file is not None]
        cleaner.take_in(((split, None) for split in splits), 0)
        before_cleaning()
        cleaner.clean(lambda: None)
        assert texts("in") == {
            "changed": self.changed,
            self.below: b"text of " + self.below.encode(),
        }
        if mode == "archive":
            goes = ("a", "day=1/b", "half-done", "prefix")
            moved = {name: b"text of " + name.encode() for name in goes}
            archived = texts("old")
            (second,) = archived.keys() - {*moved, "taken"}
            assert re.fullmatch(r"taken\.[0-9a-f]{16}", second)
            assert archived == {**moved, "taken": b"TEXT of taken", second: b"text of taken"}
        figures = cleaner.figures()
        assert (figures["changed"], figures["gone"], figures["failing"]) == (1, 1, 0)

    @pytest.mark.parametrize("mode", ["delete", "archive"])
    def test_markers_go_with_their_files(self, location, mode):
        root, options = location
        storage, base = open_storage(root, options)
        for name in ("a/1", "a/_SUCCESS", "b/1", "b/2", "b/_SUCCESS"):
            storage.create(f"{base}/in/{name}", name.encode())
        urls = [storage.url(f"{base}/in/{name}") for name in ("a/1", "b/1")]
        read = [present_version(storage, FileVersion(url, 0, -1)) for url in urls]
        archive = f"{root}/old" if mode == "archive" else ""
        policy = CleaningPolicy(
            mode, loaded_paths(f"{root}/in"), archive, marker=ReadyMarker("_SUCCESS")
        )
        cleaner = FileCleaner(policy, options)
        cleaner.take_in(((FileSplit(file, 0, file.size), None) for file in read if file), 0)
        cleaner.clean(lambda: None)
        assert cleaner.figures()["failing"] == 0, cleaner.figures()
        left = [name.removeprefix(f"{base}/") for name in storage.files(f"{base}/in/")]
        assert sorted(left) == ["in/b/2", "in/b/_SUCCESS"]

    def test_files_of_one_name_below_two_paths_are_all_in_the_archive(self, location):
        root, options = location
        storage, base = open_storage(root, options)
        names = [f"{folder}/{n}.json" for folder in "ab" for n in range(8)]
        for name in names:
            storage.create(f"{base}/{name}", name.encode())
        urls = [storage.url(f"{base}/{name}") for name in names]
        read = [present_version(storage, FileVersion(url, 0, -1)) for url in urls]
        cleaner = FileCleaner(
            CleaningPolicy("archive", loaded_paths(f"{root}/a,{root}/b"), f"{root}/old"), options
        )
        splits = [FileSplit(file, 0, file.size) for file in read if file is not None]
        cleaner.take_in(((split, None) for split in splits), 0)
        cleaner.clean(lambda: None)
        archived = [storage.whole(name).decode() for name in storage.files(f"{base}/old/")]
        assert sorted(archived) == names
        assert [name for name in names if storage.exists(f"{base}/{name}")] == []


class TestMemoryOfFsspec(CleaningSuite):
    # It has no version marks.
    changed = b"another text of changed"

    @pytest.fixture
    def location(self):
        return f"memory://cleaned-{uuid.uuid4().hex}", {}


class TestEachStore(CleaningSuite):
    kind = BucketStorage
    below = "prefix/below"

    @pytest.fixture
    def location(self, any_server, any_bucket):
        return f"{any_server.scheme}://{any_bucket}/lake", any_server.options

    @pytest.fixture
    def before_cleaning(self, any_server):
        kind = "DELETE" if any_server.scheme == "gs" else "POST"
        yield lambda: any_server.fail_next(any_server.lose_answer, kind=kind)
        any_server.fault = None


class TestS3OfFsspec(CleaningSuite):
    @pytest.fixture
    def location(self, server, bucket):
        return f"s3://{bucket}/lake", {**server.options, "client": "fsspec"}


def test_files_go_as_checkpoints_leave_the_retained_ones_and_state_waits_for_them(tmp_path):
    landing = tmp_path / "in"
    landing.mkdir()
    for number in range(8):
        (landing / f"{number}.json").write_text("{}\n")
    options = parse_options(
        {"path": str(landing), "cleansource": "delete", "fileorder": "name"}, streaming=False
    )
    source = FileSource(options, pa.schema([("id", pa.int64())]))
    store, settings = (
        MemoryStateStore(),
        CoordinatorSettings(
            BatchLimits(files=1),
            retained_checkpoints=3,
            deltas_per_base=1,
            background_interval=0.05,
            commit_patience=0.0,
        ),
    )
    coordinator = Coordinator(source, store, settings)
    ref = NO_CHECKPOINT
    for _ in range(8):
        ref = coordinator.latest(ref)
        ReaderCommits(store).publish(
            ReaderCommit(
                **about(coordinator.history.load(ref).identity), reader=0, attempt=0,
                rows=[1], input_bytes=[3], microseconds=[1],
            )
        )  # fmt: skip
        coordinator.commit(ref)
    # A mark follows whenever nothing more is due.
    wait_until(lambda: [m.checkpoint for m in CleanupMarks(store, 0).found()][:1] == [5])
    assert sorted(path.name for path in landing.iterdir()) == ["5.json", "6.json", "7.json"]
    cleaned = coordinator.report()["cleaned"]
    assert (cleaned["files"], cleaned["checkpointsToClean"]) == (5, 3)
    coordinator.close()
    # A query cannot start where its files are gone: from 6 on it reads 7 and 8, which are there.
    history = CheckpointHistory(store)
    refs = {ref.checkpoint: ref for ref in history.checkpoints()}
    assert {5, 6, 7, 8} <= set(refs)
    check_not_cleaned(store, history.header(refs[5]), "")
    early = history.header(refs[5].__class__(4, 1))
    with pytest.raises(OptionError, match="have been cleaned up"):
        check_not_cleaned(store, early, "")
