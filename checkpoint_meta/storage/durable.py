"""Makes files and directories of a local file system survive a crash of the machine.

Not here: what is written, and how a file gets its name.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_durable: set[Path] = set()
"""Directories whose own entry this process has made durable."""


def sync(path: Path) -> None:
    """What was written to a file, or the names that were given in a directory, are durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path, root: Path) -> None:
    """Make a directory, and those above it, durably.

    A directory is durable once its parent is. One that was there may be the work of a process that
    died before it got so far: up to `root` and its parent those are made sure, too.
    """
    # It may have been deleted since: then its entry is no longer durable.
    if directory in _durable and directory.exists():
        return
    new = [made for made in (directory, *directory.parents) if not made.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    ours = [made for made in (directory, *directory.parents) if root in made.parents]
    for made in dict.fromkeys([*new, *ours, root, root.parent]):
        if made in new or made not in _durable:
            # A parent above `root` may belong to somebody else, who does not let us open it.
            with contextlib.suppress(PermissionError):
                sync(made.parent)
            _durable.add(made)
