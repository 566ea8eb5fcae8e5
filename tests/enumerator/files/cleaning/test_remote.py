"""Cleaning up where fsspec leads, and in a bucket through a real S3 API."""

from __future__ import annotations

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.storage.bucket_storage import BucketStorage
from pyspark_sluice.checkpoint_meta.storage.fsspec_storage import FsspecStorage
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.urls import loaded_paths
from pyspark_sluice.enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from pyspark_sluice.enumerator.files.cleaning.places import present_version

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["memory", "s3", "s3 by fsspec"])
def store(request):
    """(URL of a bucket, storage options, the file system to look with, the place expected)."""
    if request.param == "memory":
        return "memory://cleaned", {}, fsspec.filesystem("memory"), FsspecStorage
    server = request.getfixturevalue("server")
    server.fault, options = None, server.options
    files = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False, **options)
    files.call_s3("create_bucket", Bucket="cleaned")
    by_fsspec = request.param != "s3"
    given = {**options, "client": "fsspec"} if by_fsspec else options
    return "s3://cleaned", given, files, FsspecStorage if by_fsspec else BucketStorage


@pytest.mark.parametrize("mode", ["delete", "archive"])
def test_what_was_read_goes_and_what_has_changed_or_is_in_the_way_stays(store, mode):
    root, options, files, kind = store
    storage, _ = open_storage(root, options)
    assert type(storage) is kind
    names = ["a", "day=1/b", "changed", "gone", "taken", "half-done", "prefix"]
    below = "prefix-below" if kind is FsspecStorage else "prefix/below"
    for name in [*names, below]:
        files.pipe_file(f"{root}/in/{name}", b"text of " + name.encode())
    found = [present_version(storage, FileVersion(f"{root}/in/{name}", 0, -1)) for name in names]
    read = [file for file in found if file is not None]
    files.pipe_file(f"{root}/in/changed", b"TEXT OF changed")
    files.pipe_file(f"{root}/in/changed", b"TEXT OF changed, and more")
    files.rm_file(f"{root}/in/gone")
    if mode == "archive":
        files.pipe_file(f"{root}/old/taken", b"TEXT OF taken")
        files.pipe_file(f"{root}/old/half-done", b"text of half-done")
    archive = f"{root}/old" if mode == "archive" else ""
    policy = CleaningPolicy(mode, loaded_paths(f"{root}/in"), archive)
    cleaner = FileCleaner(policy, options)
    cleaner.take_in((FileSplit(file, 0, file.size), None) for file in read)
    cleaner.clean(lambda: None)
    left = {name.partition("/in/")[2] for name in files.find(f"{root}/in")}
    stays = {"changed", below}
    assert left == (stays | {"taken"} if mode == "archive" else stays)
    figures = cleaner.figures()
    assert (figures["changed"], figures["gone"]) == (1, 1)
    assert figures["failing"] == (mode == "archive")
    if mode == "archive":
        texts = {
            name.partition("/old/")[2]: files.cat_file(name) for name in files.find(f"{root}/old")
        }
        assert texts == {
            **{name: b"text of " + name.encode() for name in ("a", "day=1/b", "half-done")},
            "prefix": b"text of prefix",
            "taken": b"TEXT OF taken",
        }
    files.rm(f"{root}/in", recursive=True)


@pytest.mark.parametrize("mode", ["delete", "archive"])
def test_on_each_store_what_was_read_goes_and_its_answers_may_be_lost(any_server, any_bucket, mode):
    root = f"{any_server.scheme}://{any_bucket}"
    for name in ("a", "day=1/b", "changed", "taken"):
        any_server.put(any_bucket, f"in/{name}", b"text of " + name.encode())
    storage, _ = open_storage(root, any_server.options)
    read = [
        present_version(
            storage, FileVersion(f"{any_server.path_scheme}://{any_bucket}/in/{name}", 0, -1)
        )
        for name in ("a", "day=1/b", "changed", "taken")
    ]
    any_server.put(any_bucket, "in/changed", b"text of CHANGED")
    if mode == "archive":
        any_server.put(any_bucket, "old/taken", b"text of TAKEN")
    archive = f"{root}/old" if mode == "archive" else ""
    policy = CleaningPolicy(mode, loaded_paths(f"{root}/in"), archive)
    cleaner = FileCleaner(policy, any_server.options)
    cleaner.take_in((FileSplit(file, 0, file.size), None) for file in read if file is not None)
    deletion = "DELETE" if any_server.scheme == "gs" else "POST"
    any_server.fail_next(any_server.lose_answer, kind=deletion)
    cleaner.clean(lambda: None)
    any_server.fault = None
    taken = ["in/taken"] if mode == "archive" else []
    assert any_server.keys(any_bucket, "in/") == ["in/changed", *taken]
    if mode == "archive":
        assert any_server.keys(any_bucket, "old/") == ["old/a", "old/day=1/b", "old/taken"]
        assert any_server.get(any_bucket, "old/a") == b"text of a"
        assert any_server.get(any_bucket, "old/taken") == b"text of TAKEN"
