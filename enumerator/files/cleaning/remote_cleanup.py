"""Cleans up in buckets, and on any other file system of fsspec.

Not here: the contract (`cleanup_api.py`).
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileVersion
from ....checkpoint_meta.storage.bucket import Bucket, open_bucket
from ....checkpoint_meta.storage.client_options import by_fsspec
from ....checkpoint_meta.storage.retries import patiently
from ....checkpoint_meta.storage.urls import storage_url
from ..discovery.object_store.listing_pages import DirectoryPages
from .cleanup_api import Place

_BLOCK = 8 * 1024 * 1024

_WORKERS = 16


class BucketPlace(Place):
    """Objects of one bucket; a move is a copy that the store makes, then a deletion."""

    workers = _WORKERS

    def __init__(self, storage_options: Mapping[str, Any]) -> None:
        self._storage_options = storage_options

    def _opened(self, url: str) -> tuple[Bucket, str]:
        opened = open_bucket(url, self._storage_options)
        assert opened is not None
        return opened

    @override
    def present(self, file: FileVersion) -> FileVersion | None:
        bucket, key = self._opened(file.path)
        try:
            found = patiently(lambda: bucket.head(key), attempts=4)
        except FileNotFoundError:
            return None
        return FileVersion(file.path, found.size, found.modified, found.etag)

    @override
    def delete(self, file: FileVersion) -> None:
        bucket, key = self._opened(file.path)
        patiently(lambda: bucket.delete_one(key), attempts=4)

    @override
    def move(self, file: FileVersion, target: str) -> None:
        bucket, key = self._opened(file.path)
        other, goal = self._opened(target)
        if other is not bucket:
            raise OSError(errno.EXDEV, "the archive is in another bucket", target)
        there = self.present(FileVersion(target, 0, -1))
        if there is None:
            # The store makes the copy appear whole, so it needs no temporary name. A crash before
            # the deletion leaves both objects, and the next attempt finds them equal.
            patiently(lambda: bucket.copy(key, goal), attempts=4)
            there = self.present(FileVersion(target, 0, -1))
            if there is None or there.size != file.size:
                raise OSError(errno.EIO, "the copy in the archive is incomplete", target)
        elif there.size != file.size or not self._same(bucket, key, goal, file.size):
            raise FileExistsError(
                errno.EEXIST, "the archive has another object with that name", target
            )
        self.delete(file)

    def _same(self, bucket: Bucket, key: str, goal: str, size: int) -> bool:
        return all(
            bucket.part(key, at, _BLOCK).data == bucket.part(goal, at, _BLOCK).data
            for at in range(0, size, _BLOCK)
        )


class FsspecPlace(Place):
    """Any file system of fsspec, by its own copy and delete."""

    workers = _WORKERS

    def __init__(self, storage_options: Mapping[str, Any]) -> None:
        self._options = storage_options

    def _files(self, url: str) -> tuple[Any, str]:
        return by_fsspec(storage_url(url), self._options)

    @override
    def present(self, file: FileVersion) -> FileVersion | None:
        files, path = self._files(file.path)
        files.invalidate_cache()
        page = DirectoryPages(files).file(path)
        if not page.names:
            return None
        return FileVersion(file.path, page.sizes[0], page.modified[0], page.etags[0])

    @override
    def delete(self, file: FileVersion) -> None:
        files, path = self._files(file.path)
        with contextlib.suppress(FileNotFoundError):
            files.rm_file(path)

    @override
    def move(self, file: FileVersion, target: str) -> None:
        files, path = self._files(file.path)
        others, goal = self._files(target)
        if others is not files:
            raise OSError(errno.EXDEV, "the archive is on another file system", target)
        there = self.present(FileVersion(target, 0, -1))
        if there is None:
            files.makedirs(goal.rpartition("/")[0], exist_ok=True)
            # Hadoop's name for an incomplete copy, which is never read. After a crash it is written
            # again.
            temporary = f"{goal}._COPYING_"
            files.cp_file(path, temporary)
            files.mv(temporary, goal)
            there = self.present(FileVersion(target, 0, -1))
            if there is None or there.size != file.size:
                raise OSError(errno.EIO, "the copy in the archive is incomplete", target)
        elif there.size != file.size or not _same(files, path, goal):
            raise FileExistsError(
                errno.EEXIST, "the archive has another file with that name", target
            )
        files.rm_file(path)


def _same(files: Any, one: str, other: str) -> bool:
    with files.open(one, "rb") as first, files.open(other, "rb") as second:
        while True:
            data = first.read(_BLOCK)
            if data != second.read(_BLOCK):
                return False
            if not data:
                return True


def remote_place(url: str, storage_options: Mapping[str, Any]) -> Place:
    """The place that `url` is in."""
    if open_bucket(url, storage_options) is not None:
        return BucketPlace(storage_options)
    return FsspecPlace(storage_options)
