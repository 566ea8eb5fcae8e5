"""What becomes of a file that is found again and is not as it was.

Not here: how that is noticed (`ledger.py` compares versions).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from ....checkpoint_meta.documents.file_columns import Numbers
from ....errors import FileChangedError


class OnOverwrite(Enum):
    """What a changed file means."""

    IGNORE = "ignore"
    """It is known by its path: nothing."""

    REPROCESS = "reprocess"
    """A new file: it is read whole again."""

    FAIL = "fail"
    """Stop the query with an error."""

    APPEND_TAIL = "appendTail"
    """It has grown: what is new is read."""


class Changes:
    """Decides for changed files where reading begins."""

    def __init__(self, what: OnOverwrite) -> None:
        self._what = what

    def starts(self, changed: Any, paths: Sequence[str], sizes: Numbers, ends: Numbers) -> Numbers:
        """First byte to be read of each file: 0 but for what has grown.

        Args:
            changed: positions of the files that are known in another version.
            paths: of all files.
            sizes: of all files, now.
            ends: up to where each was taken when it was known before.

        Raises:
            FileChangedError: names a file that must not have changed, or has shrunk.
        """
        starts = np.zeros(len(paths), np.int64)
        if not len(changed) or self._what is OnOverwrite.REPROCESS:
            return starts
        if self._what is OnOverwrite.FAIL:
            raise _changed(paths[changed[0]], int(sizes[changed[0]]), int(ends[changed[0]]))
        shrunk = changed[sizes[changed] < ends[changed]]
        if len(shrunk):
            raise _shrunk(paths[shrunk[0]], int(sizes[shrunk[0]]), int(ends[shrunk[0]]))
        starts[changed] = ends[changed]
        return starts


def _changed(path: str, size: int, end: int) -> FileChangedError:
    return FileChangedError(
        "a file that was read has changed",
        path,
        f"another version of {size} bytes, after {end} bytes were read",
        "files that do not change, since onOverwrite=fail",
        "Put the file back, or set onOverwrite to ignore, reprocess or appendTail.",
    )


def _shrunk(path: str, size: int, end: int) -> FileChangedError:
    return FileChangedError(
        "an append-only file was truncated or replaced",
        path,
        f"{size} bytes",
        f"at least the {end} bytes that were already read",
        "Rotate by moving the file away and creating a new name; to keep using this file, set "
        "onOverwrite=reprocess (reads it whole) or ignore (reads no more of it).",
    )
