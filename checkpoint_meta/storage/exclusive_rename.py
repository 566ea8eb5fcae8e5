"""A rename that fails where the target exists, for file systems without hard links.

Python has no name for it; the kernel has, and most file systems that cannot link can do it (FAT,
exFAT, SMB). A file system that can do neither is refused: nothing on it can be created atomically.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...errors import StateError

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
