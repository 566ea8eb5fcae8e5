"""Makes local files and directories survive a crash of the machine, and renames them exclusively.

An exclusive rename fails where the target exists. Python has no name for it; the kernel has, and
most file systems that cannot link can do it (FAT, exFAT, SMB).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...errors import StateError

_durable: set[Path] = set()
"""Directories whose own entry this process has made durable."""


def sync(path: Path) -> None:
    """What was written to a file, or the names that were given in a directory, are durable."""
    # A directory cannot be opened for writing, and fsync does not ask for it.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path, root: Path) -> bool:
    """Make a directory, and those above it, durably; True the first time in this process.

    A directory is durable once its parent is. One that was there may be the work of a process that
    died before it got so far: up to `root` and its parent those are made sure, too.
    """
    # It may have been deleted since: then its entry is no longer durable.
    if directory in _durable and directory.exists():
        return False
    new = [made for made in (directory, *directory.parents) if not made.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    ours = [made for made in (directory, *directory.parents) if root in made.parents]
    for made in dict.fromkeys([*new, *ours, root, root.parent]):
        if made in new or made not in _durable:
            # A parent above `root` may belong to somebody else, who does not let us open it.
            with contextlib.suppress(PermissionError):
                sync(made.parent)
            _durable.add(made)
    return True


_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCL: Final = 4
"""macOS's name for the same."""

# What kernels and file systems answer that do not know the flag.
_CANNOT: Final = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def rename_exclusively(source: Path, target: Path) -> None:
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
    raise OSError(number, os.strerror(number), str(target))


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


def _refused(target: Path, found: str) -> StateError:
    return StateError(
        "the file system cannot create a file only if it does not exist",
        str(target.parent),
        f"no hard links, and {found}",
        "hard links, or a rename that does not overwrite",
        "Point stateLocation at another file system, or at an object store by its URL rather "
        "than through a mount.",
    )
