"""Files of a local or mounted file system, which survive a crash of the machine."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typing_extensions import override

from ...errors import StateError
from . import durable
from .contract import PART, Data, Draft, FileStatus, Page, Part, Storage
from .storage_errors import BeyondTheEnd
from .urls import local_name, written_path

PARTIAL: Final = ".partial"

_NO_HARD_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors of link(2) on FAT, on SMB and on most FUSE mounts."""

_LEFT_OVER_SECONDS: Final = 86_400.0
"""A temporary file that is older is of a writer that has crashed."""


class LocalStorage(Storage):
    """Temporary file, fsync, hard link, fsync of the directory.

    A crash leaves a file whole, or leaves a temporary file that listings skip. Without hard links
    the file is renamed, which must not replace; without both the first creation is refused.
    """

    requests = 1

    def __init__(self, root: str = "/") -> None:
        """Directories below `root`, and `root` itself, are made durable when they are made."""
        self._root = Path(root)

    @override
    def name(self, url: str) -> str:
        return local_name(url)

    @override
    def url(self, name: str) -> str:
        return written_path(name)

    @override
    def stat(self, name: str) -> FileStatus:
        try:
            return _status(os.stat(name))
        except NotADirectoryError as error:
            raise FileNotFoundError(*error.args) from error

    @override
    def read(self, name: str, start: int = 0, length: int = PART, etag: str = "") -> Part:
        with open(name, "rb") as file:
            status = _status(os.fstat(file.fileno()))
            file.seek(start)
            data = file.read(length)
        if not data and length:
            raise BeyondTheEnd(errno.EINVAL, f"it has {status.size} bytes", name)
        return Part(data, status)

    @override
    def whole(self, name: str) -> bytes:
        return Path(name).read_bytes()

    @override
    def create(self, name: str, data: Data) -> None:
        target = Path(name)
        temporary = _temporary(target)
        # The directory comes first: a file in it is durable only if its own entry in its parent is.
        if durable.make_directory(target.parent, self._root):
            _delete_left_over(target.parent)
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _link_or_rename(temporary, target)
        except FileExistsError:
            # It may be what we have created: the name is to be durable when that is found out.
            durable.sync(target.parent)
            raise
        finally:
            # After a rename it is gone already. A crash before leaves it, and listings skip its
            # name.
            temporary.unlink(missing_ok=True)
        # Last: without it a crash of the machine may lose the name of a file whose bytes are safe.
        durable.sync(target.parent)

    @override
    def begin(self, name: str) -> Draft:
        target = Path(name)
        durable.make_directory(target.parent, self._root)
        return LocalDraft(target)

    @override
    def rename(self, name: str, target: str) -> None:
        source, goal = Path(name), Path(target)
        # A rename would move the link, and leave the data where they are.
        if source.is_symlink():
            raise OSError(errno.ELOOP, "a symbolic link is not moved", name)
        durable.make_directory(goal.parent, self._root)
        try:
            durable.rename_exclusively(source, goal)
        except StateError:
            # A file system without: two steps, the first of which replaces nothing.
            os.link(source, goal)
            durable.sync(goal.parent)
            os.unlink(source)
        else:
            durable.sync(goal.parent)

    @override
    def copy(self, name: str, target: str) -> None:
        goal = Path(target)
        durable.make_directory(goal.parent, self._root)
        temporary = _temporary(goal)
        try:
            shutil.copy2(name, temporary)
            durable.sync(temporary)
            _link_or_rename(temporary, goal)
            durable.sync(goal.parent)
        finally:
            temporary.unlink(missing_ok=True)

    @override
    def persist(self, name: str) -> None:
        durable.sync(Path(name))
        durable.sync(Path(name).parent)

    @override
    def delete(self, name: str) -> None:
        Path(name).unlink(missing_ok=True)

    @override
    def delete_tree(self, name: str) -> None:
        target = Path(name)
        with contextlib.suppress(FileNotFoundError):
            if target.is_dir():
                # A crash half-way leaves the directory with the rest, and the next deletion
                # finishes it.
                for child in target.iterdir():
                    child.unlink(missing_ok=True)
                target.rmdir()
            else:
                target.unlink()

    @override
    def names(self, directory: str) -> list[str]:
        # Temporary files, of other processes as well, and what NFS keeps of files that are still
        # open.
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        names, sizes, modified, directories = [], [], [], []
        with os.scandir(prefix) as entries:
            for entry in entries:
                if entry.is_dir():
                    # A link may lead to a directory above.
                    directories += [] if entry.is_symlink() else [f"{entry.path}/"]
                    continue
                # A draft may have got its name meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    status = self.stat(entry.path)
                    names.append(entry.path)
                    sizes.append(status.size)
                    modified.append(status.modified)
        yield Page(names, sizes, modified, [""] * len(names), directories)

    @override
    def exists(self, prefix: str) -> bool:
        return os.path.exists(prefix)

    @override
    def refresh(self, directory: str = "") -> None:
        # A client of a network file system remembers for up to a minute that a name was not
        # there. It learns otherwise when it changes the directory itself.
        probe = Path(directory) / f".{uuid.uuid4().hex}.tmp"
        with contextlib.suppress(OSError):
            probe.touch(exist_ok=False)
            probe.unlink()


class LocalDraft(Draft):
    """A file next to its name, under one that starts with a dot."""

    def __init__(self, target: Path) -> None:
        self._target = target
        # Spark's listings leave out names that begin with a dot, and a rename within one directory
        # is atomic.
        self._path = target.with_name(f".{target.name}{PARTIAL}")
        self.sink = self._path.open("wb")

    @override
    def publish(self) -> str:
        self.sink.flush()
        os.fsync(self.sink.fileno())
        self.sink.close()
        # Only what is durable gets the name. The name itself is part of the directory.
        self._path.rename(self._target)
        durable.sync(self._target.parent)
        return str(self._target)

    @override
    def discard(self) -> None:
        super().discard()
        self._path.unlink(missing_ok=True)


def _status(status: os.stat_result) -> FileStatus:
    # In microseconds, as a listing has it.
    return FileStatus(status.st_size, status.st_mtime_ns // 1000)


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")


def _delete_left_over(directory: Path) -> None:
    # By the clock of the file system, which is the one that gives files their times.
    with contextlib.suppress(OSError):
        probe = directory / f".{uuid.uuid4().hex}.tmp"
        probe.touch()
        old = probe.stat().st_mtime - _LEFT_OVER_SECONDS
        probe.unlink()
        for path in directory.glob(".*.tmp"):
            if path.stat().st_mtime < old:
                path.unlink(missing_ok=True)


def _link_or_rename(temporary: Path, target: Path) -> None:
    # A link, unlike a plain rename, fails where the target exists.
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        durable.rename_exclusively(temporary, target)
