"""Where files are cleaned up: local file systems, buckets, and any other file system of fsspec."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import zip_longest
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


class _CopyingPlace(Place):
    """Where no rename replaces nothing: a move is a copy that appears whole, then a deletion."""

    workers = _WORKERS
    kind: str
    elsewhere: str

    def __init__(self, storage_options: Mapping[str, Any]) -> None:
        self._storage_options = storage_options

    @override
    def move(self, file: FileVersion, target: str) -> None:
        store, name = self._opened(file.path)
        other, goal = self._opened(target)
        if other is not store:
            raise OSError(errno.EXDEV, f"the archive is {self.elsewhere}", target)
        there = self.present(FileVersion(target, 0, -1))
        if there is None:
            # A crash before the deletion leaves both, and the next attempt finds them equal.
            self._copy(store, name, goal)
            there = self.present(FileVersion(target, 0, -1))
            if there is None or there.size != file.size:
                raise OSError(errno.EIO, "the copy in the archive is incomplete", target)
        elif there.size != file.size or not self._same(store, name, goal):
            found = f"the archive has another {self.kind} with that name"
            raise FileExistsError(errno.EEXIST, found, target)
        self.delete(file)

    def _same(self, store: Any, name: str, goal: str) -> bool:
        pairs = zip_longest(self._blocks(store, name), self._blocks(store, goal))
        return all(one == other for one, other in pairs)

    @abstractmethod
    def _opened(self, url: str) -> tuple[Any, str]:
        """What `url` is in, the same object each time, and its name there."""

    @abstractmethod
    def _copy(self, store: Any, name: str, goal: str) -> None:
        """Make the copy, of which nothing is at `goal` before all of it is."""

    @abstractmethod
    def _blocks(self, store: Any, name: str) -> Iterator[bytes]:
        """The content."""


class BucketPlace(_CopyingPlace):
    """Objects of one bucket, which the store itself copies."""

    kind, elsewhere = "object", "in another bucket"

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
    def _opened(self, url: str) -> tuple[Bucket, str]:
        opened = open_bucket(url, self._storage_options)
        assert opened is not None
        return opened

    @override
    def _copy(self, store: Bucket, name: str, goal: str) -> None:
        # The store makes the copy appear whole, so it needs no temporary name.
        patiently(lambda: store.copy(name, goal), attempts=4)

    @override
    def _blocks(self, store: Bucket, name: str) -> Iterator[bytes]:
        for at in range(0, store.head(name).size, _BLOCK):
            yield store.part(name, at, _BLOCK).data


class FsspecPlace(_CopyingPlace):
    """Any file system of fsspec, by its own copy and delete."""

    kind, elsewhere = "file", "on another file system"

    @override
    def present(self, file: FileVersion) -> FileVersion | None:
        files, path = self._opened(file.path)
        files.invalidate_cache()
        page = DirectoryPages(files).file(path)
        if not page.names:
            return None
        return FileVersion(file.path, page.sizes[0], page.modified[0], page.etags[0])

    @override
    def delete(self, file: FileVersion) -> None:
        files, path = self._opened(file.path)
        with contextlib.suppress(FileNotFoundError):
            files.rm_file(path)

    @override
    def _opened(self, url: str) -> tuple[Any, str]:
        return by_fsspec(storage_url(url), self._storage_options)

    @override
    def _copy(self, store: Any, name: str, goal: str) -> None:
        store.makedirs(goal.rpartition("/")[0], exist_ok=True)
        # Hadoop's name for an incomplete copy, which is never read. After a crash it is written
        # again.
        temporary = f"{goal}._COPYING_"
        store.cp_file(name, temporary)
        store.mv(temporary, goal)

    @override
    def _blocks(self, store: Any, name: str) -> Iterator[bytes]:
        with store.open(name, "rb") as stream:
            while data := stream.read(_BLOCK):
                yield data


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
