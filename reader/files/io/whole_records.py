"""Finds the end of the last whole record of a file that is appended to: its last separator."""

from __future__ import annotations

import os

import numpy as np

from ....checkpoint_meta.files.file_split import FileVersion, GrowingMark
from ....checkpoint_meta.storage.urls import is_local, local_name
from ....errors import FileChangedError
from .file_version import mark_at, naming, replaced

_STEP = 64 * 1024
"""Bytes that are searched at a time for the last separator of a file, from its end."""


def mark_after_last_record(
    path: str, start: int, size: int, version: np.uint64, separator: bytes
) -> GrowingMark:
    """The mark of a file after its last whole record up to `size`; at `start` without one.

    A record whose end has not been written yet is left for later, so the last record of a file
    is read when it is terminated.

    Args:
        path: a local file.
        start: up to here it was taken.
        size: of the file, as listed.
        version: its version then (`versions_of`); looked at where `start` is not 0.
        separator: what ends a record.

    Raises:
        FileChangedError: this is not the file that was taken up to `start`: another inode, other
            bytes before `start`, or no end of a record there; or it is not a local one.
    """
    # Only the driver asks this, which has the index anyway; tasks start faster without it.
    from ....checkpoint_meta.index.fingerprints import may_be

    if not is_local(path):
        raise FileChangedError(
            "cannot resume reading a file that is not local",
            path,
            "onOverwrite=appendTail",
            "a path of a local or mounted file system: objects are replaced, not appended to",
            "Set onOverwrite to ignore, reprocess or fail.",
        )
    width = len(separator)
    file = FileVersion(path, size, -1)
    with naming(file), open(local_name(path), "rb") as opened:
        descriptor = opened.fileno()
        # What was taken ended with a separator; anything else there shows another file at once.
        if size > start > 0 and os.pread(descriptor, width, start - width) != separator:
            raise replaced(path, start, f"no end of a record before byte {start}")
        if start and not may_be(version, mark_at(descriptor, start)):
            raise replaced(path, start)
        end = _after_last(separator, descriptor, start, size)
        return mark_at(descriptor, end)


def _after_last(separator: bytes, descriptor: int, start: int, size: int) -> int:
    width, end = len(separator), size
    while end > start:
        begin = max(start, end - _STEP)
        at = os.pread(descriptor, end - begin, begin).rfind(separator)
        if at >= 0:
            return begin + at + width
        # A separator may lie across two pieces.
        end = begin + width - 1 if begin > start else start
    return start
