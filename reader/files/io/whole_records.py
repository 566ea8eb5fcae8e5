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
from dataclasses import dataclass, replace

import numpy as np

from ....checkpoint_meta.files.file_split import FileVersion, GrowingMark
from ....checkpoint_meta.storage.urls import is_local, local_name
from ....errors import FileChangedError
from .codecs import Stream
from .file_version import mark_at, naming, replaced
from .pace import SLOW

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

    def behind(self, skip: int) -> Content:
        """The same without its first bytes: they are decompressed again, and dropped."""
        left = [skip]

        def rest(pieces: Iterator[bytes]) -> Iterator[bytes]:
            for data in pieces:
                dropped = min(left[0], len(data))
                left[0] -= dropped
                if dropped < len(data):
                    yield data[dropped:]

        position = None if self.position is None else self.position + skip
        return replace(self, own=rest(self.own), beyond=rest(self.beyond), position=position)


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
    content: Content, separator: bytes, step: int, limit: Limit, *, is_first: bool
) -> Iterator[tuple[int, bytes]]:
    """Whole records of a split in pieces of about `step` bytes, each with where it begins.

    Positions count from the beginning of the split's content.

    Raises:
        Exception: a record is longer than `limit` says; its own error.
    """
    held, began = _Held(separator, limit, begun=is_first), time.monotonic()
    for data in content.own:
        held.add(data)
        # Not long after a limit on seconds is reached its reader gets to know.
        if held.size >= step or time.monotonic() - began > SLOW:
            yield from held.whole()
            began = time.monotonic()
    boundary = held.end
    for data in content.beyond:
        if held.add_beyond(data, boundary):
            break
    yield from held.rest()


class _Held:
    """Content that was not given out yet."""

    def __init__(self, separator: bytes, limit: Limit, *, begun: bool) -> None:
        self._separator = separator
        self._overlaps = overlaps_itself(separator)
        self._limit = limit
        self._begun = begun
        """True once the first record of the split begins where the held content does."""
        self._parts = list[bytes]()
        self._at = 0
        """Where they begin in the split's content."""
        self.end = 0
        """Position after the held bytes."""
        self._open = 0
        """Where the record begins whose end was not seen yet."""
        self._tail = b""
        """The last bytes, in which a separator may begin that ends in the next ones."""

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return self.end - self._at

    def add(self, data: bytes) -> None:
        """Take more of the split's own content."""
        window, start = self._taken(data)
        first = window.find(self._separator)
        if first >= 0:
            self._ends(start + first)
            self._open = start + self._last(window) + len(self._separator)
        self._keep(window, start)

    def add_beyond(self, data: bytes, boundary: int) -> bool:
        """Take more of what follows; true once the records of the split have ended.

        The own content ends at `boundary`.
        """
        window, start = self._taken(data)
        at = window.find(self._separator)
        while 0 <= at < boundary - start:
            # It crosses the boundary, so what follows it still belongs to the split.
            self._ends(start + at)
            at = window.find(self._separator, at + len(self._separator))
        if at >= 0 and self._begun:
            self._ends(start + at)
        self._keep(window, start)
        # Without a separator in its own content a split has no record, so what follows is not read.
        is_over = at >= 0 or not (self._begun or self.end - len(self._tail) < boundary)
        if is_over and self._begun:
            self._cut(self._open)
            self.end = self._open
        return is_over

    def whole(self) -> Iterator[tuple[int, bytes]]:
        """The records that are whole, if there are any; they are held no longer."""
        if self._open > self._at:
            at, rest = self._at, self._cut(self._open)
            data = b"".join(self._parts)
            self._parts, self._at = rest, self._open
            yield at, data

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """All that is held; the last record may end without a separator."""
        if self._begun and self.size:
            self._check(self.end)
            data = b"".join(self._parts)
            self._parts.clear()
            yield self._at, data

    def _taken(self, data: bytes) -> tuple[bytes, int]:
        """Return what has to be searched, and where it begins in the split's content."""
        window, start = self._tail + data, self.end - len(self._tail)
        self._parts.append(data)
        self.end += len(data)
        return window, start

    def _last(self, window: bytes) -> int:
        if self._overlaps:
            # From the right another one might be found, which overlaps the last from the left.
            return len(window) - len(window.split(self._separator)[-1]) - len(self._separator)
        return window.rfind(self._separator)

    def _ends(self, separator: int) -> None:
        """Note that the open record ends at the separator there, and the next one follows it."""
        end = separator + len(self._separator)
        if not self._begun:
            self._parts, self._at, self._begun = self._cut(end), end, True
        else:
            self._check(separator)
        self._open = end

    def _keep(self, window: bytes, start: int) -> None:
        width = len(self._separator)
        # Nothing of a separator that was found may be part of another one.
        self._tail = window[max(len(window) - width + 1, self._open - start, 0) :]
        if not self._begun:
            # All of it belongs to the split before.
            self._parts, self._at = [], self.end
        else:
            self._check(self.end - len(self._tail))

    def _check(self, end: int) -> None:
        if end - self._open > self._limit.bytes:
            raise self._limit.error(self._open)

    def _cut(self, end: int) -> list[bytes]:
        """Keep the parts up to there; returns what follows."""
        # From the end, where the cut nearly always is: a record seldom spans many parts.
        rest, left = list[bytes](), self.end - end
        while left and left >= len(self._parts[-1]):
            left -= len(self._parts[-1])
            rest.append(self._parts.pop())
        if left:
            last = self._parts.pop()
            self._parts.append(last[:-left])
            rest.append(last[-left:])
        return rest[::-1]


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
