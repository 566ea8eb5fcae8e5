"""Where files are cleaned up: local file systems, buckets, and any other file system of fsspec.

Not here: which files, and when (`file_cleaner.py`).
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileVersion
from ....checkpoint_meta.storage.bucket import Bucket, open_bucket
from ....checkpoint_meta.storage.client_options import by_fsspec
from ....checkpoint_meta.storage.durable import make_directory, rename_exclusively, sync
from ....checkpoint_meta.storage.storage_errors import patiently
from ....checkpoint_meta.storage.urls import local_path, storage_url
from ....errors import StateError
from ..discovery.object_store.listing_pages import DirectoryPages

_BLOCK = 8 * 1024 * 1024

_WORKERS = 16


class Place(ABC):
    """Removes files one by one; each step can be the last one before a crash. Any thread."""

    workers: int = 1
    """Files that may be worked on at a time."""

    @abstractmethod
    def present(self, file: FileVersion) -> FileVersion | None:
        """The version of the file that is there now; None if it is gone.

        Raises:
            OSError: that cannot be found out.
        """

    @abstractmethod
    def delete(self, file: FileVersion) -> None:
        """Delete the file, which is there.

        Raises:
            OSError: it cannot be deleted.
        """

    @abstractmethod
    def move(self, file: FileVersion, target: str) -> None:
        """Move the file, which is there, to a path or URL of the same kind.

        At every moment it is whole in one of both places. What is at `target` is never
        replaced; the same content there is the work of an attempt that died, and is finished.

        Raises:
            FileExistsError: another file is at `target`.
            OSError: it cannot be moved.
        """


class LocalPlace(Place):
    """One rename where both places are on one file system; else copy, link, delete.

    What is in the archive survives a crash of the machine before the source is deleted.
    """

    def __init__(self, archive: str = "") -> None:
        """`archive` is the directory that all targets of `move` are below."""
        self._archive = _path(archive)

    @override
    def present(self, file: FileVersion) -> FileVersion | None:
        try:
            found = os.stat(_path(file.path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        # In microseconds, as a listing has it.
        return FileVersion(file.path, found.st_size, found.st_mtime_ns // 1000)

    @override
    def delete(self, file: FileVersion) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(file.path))

    @override
    def move(self, file: FileVersion, target: str) -> None:
        source, goal = _path(file.path), _path(target)
        # A rename would move the link, and leave the data where they are.
        if source.is_symlink():
            raise OSError(errno.ELOOP, "a symbolic link is not moved", str(source))
        make_directory(goal.parent, self._archive)
        # An attempt that died between its two steps has left the file in both places.
        if goal.exists():
            _finish(source, goal)
            return
        try:
            self._rename(source, goal)
        except OSError as error:
            # EXDEV: the archive is on another file system.
            if error.errno != errno.EXDEV:
                raise
            self._copy(source, goal)
            self.delete(file)

    def _rename(self, source: Path, goal: Path) -> None:
        try:
            rename_exclusively(source, goal)
        except StateError:
            # A file system without: two steps, the first of which replaces nothing.
            os.link(source, goal)
            sync(goal.parent)
            os.unlink(source)
        else:
            sync(goal.parent)

    def _copy(self, source: Path, goal: Path) -> None:
        temporary = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}.tmp")
        try:
            shutil.copy2(source, temporary)
            sync(temporary)
            self._rename(temporary, goal)
        finally:
            temporary.unlink(missing_ok=True)


def _path(written: str) -> Path:
    return Path(written if written.startswith("/") else local_path(written) or written)


def _finish(source: Path, goal: Path) -> None:
    if not filecmp.cmp(source, goal, shallow=False):
        raise FileExistsError(
            errno.EEXIST, "the archive has another file with that name", str(goal)
        )
    # That attempt may have died before its copy was durable.
    sync(goal)
    sync(goal.parent)
    os.unlink(source)


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


def has_changed(file: FileVersion, present: FileVersion) -> bool:
    """True if `present` is not known to be the version that was read."""
    if file.size != present.size:
        return True
    if file.etag and present.etag:
        # Some clients keep the quotes of HTTP, others do not.
        return file.etag.strip('"') != present.etag.strip('"')
    if file.modified < 0 or present.modified < 0:
        return False
    # A listing may have more of the time than what is asked for one object.
    apart = abs(file.modified - present.modified)
    return apart > 0 if "://" not in file.path else apart >= 1_000_000
