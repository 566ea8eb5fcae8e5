"""Holds what is there against the version that was discovered, and names what differs.

Of a file that is appended to, finds the end of its last whole record: its last separator.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from ....checkpoint_meta.files.file_split import (
    MARKED_BYTES,
    FileVersion,
    GrowingMark,
    growing_mark,
    sample_of,
)
from ....checkpoint_meta.storage.contract import FileStatus
from ....checkpoint_meta.storage.urls import is_local, local_name
from ....errors import FileChangedError, FileVanishedError, SplitReadError

if TYPE_CHECKING:
    import numpy as np

_STEP = 64 * 1024
"""Bytes that are searched at a time for the last separator of a file, from its end."""


class DirectoryMark(FileVanishedError):
    """A name that was listed and is no file: it is not missing."""


@contextmanager
def naming(file: FileVersion) -> Iterator[None]:
    """Turn what the operating system says into an error that names the file and the way out."""
    try:
        yield
    except FileNotFoundError as err:
        raise FileVanishedError(
            "the file was deleted between discovery and reading",
            file.path,
            "no such file",
            f"{file.size} bytes, as discovered",
            "Put it back and restart. Or give up this file alone: stop the query, run "
            "`sluice waive CHECKPOINT --yes`, and start it again. Or set ignoreMissingFiles=true "
            "to skip and count each deleted file.",
        ) from err
    except OSError as err:
        # Arrow reports torn data as an OSError without errno; that is for the format to name.
        if err.errno is None:
            raise
        raise SplitReadError(
            "file cannot be read",
            file.path,
            err.strerror or str(err),
            "a readable file",
            "Check permissions and the storage, then restart; nothing is lost meanwhile.",
        ) from err


def check(file: FileVersion, present: FileStatus) -> None:
    """Raise unless this may be the version of the file.

    Raises:
        FileChangedError: names what differs.
    """
    if (difference := file.difference(present)) is not None:
        raise changed(file, *difference)


def check_local(file: FileVersion, descriptor: int) -> None:
    """Raise unless an open file is the version that was discovered, or has grown from it."""
    # Of the open file, so that a rename between two looks cannot mix two versions.
    status = os.fstat(descriptor)
    mark = growing_mark(file.etag)
    if mark is None:
        # This is what a tiny file costs, thousands of times over.
        if (status.st_size, modified := status.st_mtime_ns // 1000) != file[1:3]:
            check(file, FileStatus(status.st_size, modified))
        if file.sample and sample_of(descriptor, file.size) != file.sample:
            expected = "the content of which other parts were read, or are assigned"
            raise changed(file, "other content of equal size and modification time", expected)
    elif status.st_size < file.size or mark_at(descriptor, mark.end) != mark:
        raise replaced(file.path, mark.end)


def mark_at(descriptor: int, end: int) -> GrowingMark:
    """The mark of an open file that is appended to, taken up to `end`."""
    # The last bytes before `end`: appending changes none of them, and replacing the file does.
    begin = max(0, end - MARKED_BYTES)
    data = os.pread(descriptor, end - begin, begin)
    return GrowingMark(os.fstat(descriptor).st_ino, end, xxh3_64_intdigest(data))


def replaced(path: str, end: int, found: str = "another inode, or other bytes") -> FileChangedError:
    """The error for a file that is not the one that was taken up to `end`."""
    return FileChangedError(
        "an append-only file was replaced",
        path,
        found,
        f"the inode, and the bytes before byte {end}, of the file that was read up to there",
        "Rotate by moving the file away and creating a new name; to keep using this file, set "
        "onOverwrite=reprocess (reads it whole) or ignore (reads no more of it). What a batch was "
        "to read of the old one is given up with `sluice waive CHECKPOINT --yes`.",
    )


def changed(file: FileVersion, found: str, expected: str = "") -> FileChangedError:
    """The error for a file that is there in another version than the one discovered."""
    return FileChangedError(
        "the file changed since discovery",
        file.path,
        found,
        expected or f"{file.size} bytes",
        (
            "A file that is read in parts, or while it is written, must not change: restore the "
            "version that was discovered, with its modification time, and restart. If it "
            "is permanently gone, stop the query and run `sluice waive CHECKPOINT --yes`, which "
            "gives up what its batch cannot read."
        ),
    )


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
