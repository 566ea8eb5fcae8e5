"""Cuts content into pieces of whole records, looking at each byte once.

A split has the records behind the first separator that begins in its own content, up to the first
one that begins beyond it; so anyone who enters need not know what is before. The first split of a
file begins with a record. Of a file that is appended to, the whole records are those before its
last separator.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ....checkpoint_meta.files.file_split import FileVersion, GrowingMark
from ....checkpoint_meta.storage.urls import is_local, local_name
from ....errors import FileChangedError
from .codecs import Stream
from .file_version import mark_at, naming, replaced
from .request_sizer import SLOW

_STEP = 64 * 1024
"""Bytes that are searched at a time for the last separator of a file, from its end."""


@dataclass(frozen=True)
class Content:
    """The content of a split, and what follows it; each is taken once, in this order."""

    own: Iterator[bytes]
    beyond: Iterator[bytes]
    position: int | None
    """Where it begins in the content of the whole file, if that is known."""

    stream: Stream | None = None
    """What decompresses it, and says how far it is; None if nothing does."""

    is_stored: bool = False
    """True if it comes as it is stored."""

    before: int = 0
    """Where it begins, counted from the first byte of the split."""


@dataclass(frozen=True)
class Limit:
    """The greatest length of a record; more than what content comes in at a time."""

    bytes: int
    error: Callable[[int], Exception]
    """Makes the error for a longer record, which begins at this byte of the split's content."""


def overlaps_itself(separator: bytes) -> bool:
    """True if occurrences may overlap; then where records start depends on where one looks."""
    return any(separator.startswith(separator[i:]) for i in range(1, len(separator)))


def records(
    content: Content, separator: bytes, step: int, limit: Limit, *, is_first: bool, skip: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Whole records of a split in pieces of about `step` bytes, each with where it begins.

    Without the first `skip` bytes of the split's content; positions count from there.

    Raises:
        Exception: a record is longer than `limit` says; its own error.
    """
    held, began = _RecordBuffer(separator, limit, begun=is_first), time.monotonic()
    for data in content.own:
        held.add(data[skip:])
        skip = max(0, skip - len(data))
        # Not long after a limit on seconds is reached its reader gets to know.
        if held.ends and (len(held.data) >= step or time.monotonic() - began > SLOW):
            yield held.taken(held.ends)
            began = time.monotonic()
    boundary = held.at + len(held.data)
    for data in content.beyond:
        if held.add(data[skip:], boundary):
            break
        skip = max(0, skip - len(data))
        # Without a separator in its own content a split has no record: what follows is not read.
        if not held.begun and held.at >= boundary:
            return
    else:
        held.check(len(held.data))
        held.ends = len(held.data)
    if held.begun and held.ends:
        yield held.taken(held.ends)


class _RecordBuffer:
    """Content that was not given out yet."""

    def __init__(self, separator: bytes, limit: Limit, *, begun: bool) -> None:
        self._separator, self._limit = separator, limit
        self._overlaps = overlaps_itself(separator)
        self.begun = begun
        """True once the first record of the split begins where the held content does."""
        self.data = bytearray()
        self.at = 0
        """Where it begins in the split's content."""
        self.ends = 0
        """Behind the last record in it whose end was seen."""

    def add(self, data: bytes, boundary: int | None = None) -> bool:
        """Take more content; true at the first separator from `boundary` on, if that is given."""
        width = len(self._separator)
        # Nothing of a separator that was found may be part of another one.
        begin = max(self.ends, len(self.data) - width + 1)
        self.data += data
        place = self.data.find(self._separator, begin)
        is_first = True
        while place >= 0:
            is_beyond = boundary is not None and self.at + place >= boundary
            if is_beyond and not self.begun:
                return True
            if not self.begun:
                # All before it belongs to the split before.
                self.taken(place + width)
                self.begun, place = True, -width
            elif is_first:
                self.check(place)
            self.ends, is_first = place + width, False
            if is_beyond:
                return True
            if boundary is None and not self._overlaps:
                # What is between is shorter than what comes at a time.
                last = self.data.rfind(self._separator, self.ends)
                self.ends = last + width if last >= 0 else self.ends
                break
            place = self.data.find(self._separator, self.ends)
        tail = max(self.ends, len(self.data) - width + 1)
        if self.begun:
            self.check(tail)
        else:
            self.taken(tail)
        return False

    def taken(self, end: int) -> tuple[int, bytes]:
        """Give out what is before `end`."""
        at, data = self.at, bytes(memoryview(self.data)[:end])
        del self.data[:end]
        self.at, self.ends = at + end, max(0, self.ends - end)
        return at, data

    def check(self, end: int) -> None:
        """Refuse an open record that is too long, up to `end`."""
        if end - self.ends > self._limit.bytes:
            raise self._limit.error(self.at + self.ends)


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
