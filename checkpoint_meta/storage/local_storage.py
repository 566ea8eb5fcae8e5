"""Files of a local or mounted file system, which survive a crash of the machine.

A file that is renamed must not replace another one. Python has no name for such a rename; the
kernel has, and most file systems that cannot link can do it (FAT, exFAT, SMB).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from typing_extensions import override

from ...errors import StateError
from .contract import PART, Chunk, Data, Draft, FileStatus, Look, Page, Storage
from .storage_errors import AnotherVersion, BeyondTheEnd
from .urls import local_name, written_path

PARTIAL: Final = ".partial"

DELETED: Final = ".sluice-deleted"
"""The end of a file's name for the microseconds before its deletion; it begins with a dot."""

_NO_HARD_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Errors of link(2) on FAT, on SMB and on most FUSE mounts."""

_LONG_NAME: Final = 255 - len(f".{DELETED}")
"""Bytes; most file systems permit 255 of them."""

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
        self._root = root.rstrip("/") or "/"

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
    def read(self, name: str, start: int = 0, length: int = PART, etag: str = "") -> Chunk:
        with open(name, "rb") as file:
            status = _status(os.fstat(file.fileno()))
            file.seek(start)
            data = file.read(length)
        if not data and length:
            raise BeyondTheEnd(errno.EINVAL, f"it has {status.size} bytes", name)
        return Chunk(data, status)

    @override
    def whole(self, name: str) -> bytes:
        return Path(name).read_bytes()

    @override
    def create(self, name: str, data: Data) -> None:
        directory, temporary = _parent(name), _temporary(name)
        # The directory comes first: a file in it is durable only if its own entry in its parent is.
        if make_directory(directory, self._root):
            _delete_left_over(directory)
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _link_or_rename(temporary, name)
        except FileExistsError:
            # It may be what we have created: the name is to be durable when that is found out.
            sync(directory)
            raise
        finally:
            # After a rename it is gone already. A crash before leaves it, and listings skip its
            # name.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        # Last: without it a crash of the machine may lose the name of a file whose bytes are safe.
        sync(directory)

    @override
    def begin(self, name: str) -> Draft:
        make_directory(_parent(name), self._root)
        return LocalDraft(Path(name))

    @override
    def look(self, name: str) -> Look:
        try:
            status = os.stat(name)
        except FileNotFoundError:
            # A process has died between the two steps of `delete`.
            _put_back(_hidden(Path(name)), name)
            status = os.stat(name)
        except NotADirectoryError as error:
            raise FileNotFoundError(*error.args) from error
        return Look(_status(status), _mark(status), status.st_ctime_ns // 1000)

    @override
    def rename(self, name: str, target: str, mark: str = "") -> None:
        # A rename would move the link, and leave the data where they are.
        if os.path.islink(name):
            raise OSError(errno.ELOOP, "a symbolic link is not moved", name)
        make_directory(_parent(target), self._root)
        try:
            rename_exclusively(name, target)
        except StateError:
            # A file system without: two steps, the first of which replaces nothing.
            os.link(name, target)
            sync(_parent(target))
            return self.delete(name, mark)
        if mark and mark != _mark(os.stat(target)):
            _put_back(Path(target), name)
            raise AnotherVersion(errno.ESTALE, "replaced while it was moved", name)
        sync(_parent(target))
        return None

    @override
    def copy(self, name: str, target: str, etag: str = "") -> None:
        make_directory(_parent(target), self._root)
        temporary = _temporary(target)
        try:
            shutil.copy2(name, temporary)
            sync(temporary)
            _link_or_rename(temporary, target)
            sync(_parent(target))
        finally:
            Path(temporary).unlink(missing_ok=True)

    @override
    def persist(self, name: str) -> None:
        sync(name)
        sync(_parent(name))

    @override
    def delete(self, name: str, mark: str = "") -> None:
        path = Path(name)
        if mark:
            # What has another name can be compared, and not be replaced meanwhile. What a process
            # that died has left there has been replaced by what has the name now.
            hidden = _hidden(path)
            try:
                path.rename(hidden)
            except FileNotFoundError:
                return
            if mark != _mark(os.stat(hidden)):
                _put_back(hidden, name)
                raise AnotherVersion(errno.ESTALE, "replaced while it was deleted", name)
            path = hidden
        path.unlink(missing_ok=True)

    @override
    def delete_tree(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            if os.path.isdir(name):
                # A crash half-way leaves the directory with the rest, and the next deletion
                # finishes it.
                for child in Path(name).iterdir():
                    child.unlink(missing_ok=True)
                os.rmdir(name)
            else:
                os.unlink(name)

    @override
    def names(self, directory: str) -> list[str]:
        # Temporary files, of other processes as well, and what NFS keeps of files that are still
        # open.
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))

    @override
    def pages(
        self, prefix: str, *, after: str = "", until: str = "", folders: bool = False
    ) -> Iterator[Page]:
        files, directories = dict[str, FileStatus](), list[str]()
        with os.scandir(prefix) as entries:
            for entry in entries:
                if entry.is_dir():
                    # A link may lead to a directory above.
                    directories += [] if entry.is_symlink() else [f"{entry.path}/"]
                    continue
                # A draft may have got its name meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    files[entry.path] = self.stat(entry.path)
        yield Page.of(files, directories)

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
        sync(str(self._target.parent))
        return str(self._target)

    @override
    def discard(self) -> None:
        super().discard()
        self._path.unlink(missing_ok=True)


def _status(status: os.stat_result) -> FileStatus:
    # In microseconds, as a listing has it.
    return FileStatus(status.st_size, status.st_mtime_ns // 1000)


def _mark(status: os.stat_result) -> str:
    # Not the time of the last change of the inode: a rename changes that.
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def _hidden(path: Path) -> Path:
    name = os.fsencode(path.name)
    # A longer name would have no room for the rest.
    short = path.name if len(name) <= _LONG_NAME else hashlib.sha256(name).hexdigest()
    return path.with_name(f".{short}{DELETED}")


def _put_back(hidden: Path, name: str) -> None:
    """Give a file its name again, unless another one has it by now."""
    with contextlib.suppress(FileNotFoundError, FileExistsError):
        try:
            _link_or_rename(str(hidden), name)
        except StateError:
            # A file system that cannot: this is better than a file that nobody sees.
            hidden.rename(name)
        hidden.unlink(missing_ok=True)


def _parent(name: str) -> str:
    return os.path.dirname(name) or "."


def _temporary(target: str) -> str:
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name}.{uuid.uuid4().hex}.tmp")


def _delete_left_over(directory: str) -> None:
    with contextlib.suppress(OSError):
        left = [n for n in os.listdir(directory) if n.startswith(".") and n.endswith(".tmp")]
        if not left:
            return
        # By the clock of the file system, which is the one that gives files their times.
        probe = Path(directory) / f".{uuid.uuid4().hex}.tmp"
        probe.touch()
        old = probe.stat().st_mtime - _LEFT_OVER_SECONDS
        probe.unlink()
        for path in map(Path(directory).joinpath, left):
            if path.stat().st_mtime < old:
                path.unlink(missing_ok=True)


def _link_or_rename(temporary: str, target: str) -> None:
    # A link, unlike a plain rename, fails where the target exists.
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        rename_exclusively(temporary, target)


_durable: set[str] = set()
"""Directories whose own entry this process has made durable."""


def sync(name: str) -> None:
    """Make durable what was written to a file, or the names that were given in a directory."""
    # A directory cannot be opened for writing, and fsync does not ask for it.
    descriptor = os.open(name, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: str, root: str) -> bool:
    """Make a directory, and those above it, durably; True the first time in this process.

    A directory is durable once its parent is. One that was there may be the work of a process that
    died before it got so far: up to `root` and its parent those are made sure, too.
    """
    # It may have been deleted since: then its entry is no longer durable.
    if directory in _durable and os.path.exists(directory):
        return False
    above = list(_upwards(directory))
    new = list(takewhile(lambda folder: not os.path.exists(folder), above))
    os.makedirs(directory, exist_ok=True)
    ours = [folder for folder in above if folder.startswith(f"{root.rstrip('/')}/")]
    for folder in dict.fromkeys([*new, *ours, root, _parent(root)]):
        if folder in new or folder not in _durable:
            # A parent above `root` may belong to another user, and not be readable.
            with contextlib.suppress(PermissionError):
                sync(_parent(folder))
            _durable.add(folder)
    return True


def _upwards(directory: str) -> Iterator[str]:
    """Yield a directory and those above it."""
    yield directory
    while (parent := _parent(directory)) != directory:
        directory = parent
        yield directory


_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCL: Final = 4
"""macOS's name for the same."""

# What kernels and file systems answer that do not know the flag.
_CANNOT: Final = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def rename_exclusively(source: str, target: str) -> None:
    """Rename `source` to `target`, atomically, if there is no `target`.

    Raises:
        FileExistsError: `target` is there.
        StateError: this file system cannot do that.
    """
    rename = _system_call()
    if rename is None:
        raise _refused(target, "the operating system has no exclusive rename")
    if rename(os.fsencode(source), os.fsencode(target)) == 0:
        return
    # ctypes keeps errno for this thread, other calls of the interpreter cannot overwrite it.
    number = ctypes.get_errno()
    if number in _CANNOT:
        raise _refused(target, f"an exclusive rename fails with {os.strerror(number)!r}")
    raise OSError(number, os.strerror(number), target)


def _system_call() -> Callable[[bytes, bytes], int] | None:
    # None is this process, which has loaded the C library.
    library = ctypes.CDLL(None, use_errno=True)
    linux = getattr(library, "renameat2", None)
    if linux is not None:
        return lambda old, new: int(linux(_AT_FDCWD, old, _AT_FDCWD, new, _RENAME_NOREPLACE))
    mac = getattr(library, "renamex_np", None)
    if mac is not None:
        return lambda old, new: int(mac(old, new, _RENAME_EXCL))
    return None


def _refused(target: str, found: str) -> StateError:
    return StateError(
        "the file system cannot create a file only if it does not exist",
        _parent(target),
        f"no hard links, and {found}",
        "hard links, or a rename that does not overwrite",
        "Point stateLocation at another file system, or at an object store by its URL rather "
        "than through a mount.",
    )
