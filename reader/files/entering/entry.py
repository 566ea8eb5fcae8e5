"""Whole records of a split of compressed text.

A split of compressed text is a range of its bytes, and has the records behind the first separator
that begins in its content, up to the first one that begins behind it: so whoever enters need not
know what stands before. Not here: how each codec is entered (the other modules of this folder).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile

from ....checkpoint_meta.splits import FileSplit, FileVersion
from ....errors import SplitReadError
from ..codecs import FAULTS, Readable, broken, decompressed
from ..opening import RandomAccess, open_file
from ..options import Compression, ReaderOptions
from . import bzip2, gzip, zstd

_STEP = 1024 * 1024
_NEAR = 1024 * 1024
"""Where a split begins is known in the content if it is within so many compressed bytes."""

KNOWN = 900 * 1024
"""Whatever stands within so many bytes of content is in a split of which that is known."""


@dataclass(frozen=True)
class Entered:
    """The content of a split, and what follows it; each is taken once, in this order."""

    own: Iterator[bytes]
    beyond: Iterator[bytes]
    position: int | None
    """Where it begins in the content of the whole file, if that is known."""


def anywhere(codec: Compression) -> bool:
    """True if a split may begin at any byte."""
    return codec is Compression.BZIP2


def at_starts(codec: Compression, options: ReaderOptions) -> bool:
    """True if a split may begin where `starts` says."""
    if codec is Compression.GZIP:
        return options.points is not None and gzip.can_find_points()
    return codec is Compression.ZSTD


def starts(file: FileVersion, codec: Compression, options: ReaderOptions) -> list[int]:
    """The bytes at which splits of `file` may begin, 0 among them.

    Raises:
        SplitReadError: the file cannot be read.
    """
    if codec is Compression.GZIP:
        assert options.points is not None
        points = options.points.find(file)
        if points is None:
            points = options.points.keep(file, gzip.find_points(file, options.storage_options))
        return [0, *(point.start for point in points)]
    with open_file(file, options.storage_options) as source:
        try:
            return zstd.frames(source, file.size)
        except ValueError:
            return [0]  # Its reader will say what is wrong with it.


@contextmanager
def entered(
    split: FileSplit, source: RandomAccess, codec: Compression, options: ReaderOptions
) -> Iterator[Entered]:
    """Enter a file where `split` begins.

    Raises:
        MalformedDataError: the bytes do not decompress.
    """
    if codec is Compression.BZIP2:
        yield _bzip2(split, source)
    elif codec is Compression.ZSTD:
        yield _zstd(split, source)
    else:
        with _gzip(split, source, options) as found:
            yield found


def _bzip2(split: FileSplit, source: RandomAccess) -> Entered:
    file, end = split.file, split.end
    found = _told(split, bzip2.blocks(source, file.size, split.start))
    first_beyond: list[bytes] = []

    def own() -> Iterator[bytes]:
        for bit, content in found:
            if bit >= 8 * end and end < file.size:
                first_beyond.append(content)
                return
            yield content

    def beyond() -> Iterator[bytes]:
        yield from first_beyond
        yield from (content for _, content in found)

    position = 0 if split.start == 0 else None
    if 0 < split.start <= _NEAR:
        before = _told(split, bzip2.blocks(source, file.size, 0))
        position = sum(len(c) for _, c in takewhile(lambda one: one[0] < 8 * split.start, before))
    return Entered(own(), beyond(), position)


def _told(split: FileSplit, blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    at = split.start
    try:
        for bit, content in blocks:
            at = bit // 8
            yield bit, content
    except FAULTS as err:
        raise broken(split.file, at, Compression.BZIP2, err) from err


def _zstd(split: FileSplit, source: RandomAccess) -> Entered:
    def between(start: int, part: RandomAccess) -> Iterator[bytes]:
        with decompressed(split.file, part, Compression.ZSTD, start) as stream:
            while data := stream.read(_STEP):
                yield data

    own = between(split.start, _Until(source, split.end))
    position = None
    if split.start <= _NEAR:
        position = sum(len(data) for data in between(0, _Until(source, split.start)))
    return Entered(own, between(split.end, source), position)


@contextmanager
def _gzip(split: FileSplit, source: RandomAccess, options: ReaderOptions) -> Iterator[Entered]:
    file = split.file
    points = {p.start: p for p in (options.points and options.points.find(file)) or ()}
    wanted = {split.start, split.end} - {0, file.size}
    if not wanted <= points.keys():
        raise SplitReadError(
            "the points are gone at which this compressed file was cut",
            file.path,
            f"none at byte {min(wanted - points.keys())}",
            "the points that the driver found, in the state",
            "Put the folder points of the state back as it was, and restart.",
        )
    here, there = points.get(split.start), points.get(split.end)
    start, begun, position = 0, None, 0
    if here is not None:
        first = source.read_at(here.start, 1)[0]
        start, position = here.start + 1, here.content
        begun = gzip.FromPoint(here), gzip.head_of(here, first)
    with decompressed(file, source, Compression.GZIP, start, begun) as stream:
        length = None if there is None else there.content - position
        own = _taken(stream, length)
        yield Entered(own, _taken(stream, None), position)


def _taken(stream: Readable, length: int | None) -> Iterator[bytes]:
    while length is None or length:
        data = stream.read(_STEP if length is None else min(_STEP, length))
        if not data:
            return
        yield data
        length = None if length is None else length - len(data)


class _Until:
    """A file that ends earlier."""

    def __init__(self, source: RandomAccess, end: int) -> None:
        self._source, self._end = source, end

    def read_at(self, position: int, count: int) -> bytes:
        return self._source.read_at(position, max(0, min(count, self._end - position)))

    def close(self) -> None:
        self._source.close()


def records(
    found: Entered, separator: bytes, is_first: bool, step: int, limit: Callable[[int, int], None]
) -> Iterator[tuple[int, bytes]]:
    """Whole records of a split in pieces of about `step` bytes, each with where it begins.

    Positions count from the beginning of the split's content; `limit(position, length)` is asked
    whenever a record goes on, and raises where it is too long.
    """
    held = _Held(separator, begun=is_first)
    for data in found.own:
        held.data += data
        if held.begins(len(held.data)) and len(held.data) >= step:
            yield from held.taken(held.data.rfind(separator))
            limit(held.at, len(held.data))
    # Where the own content ends, in what is held: the record that ends behind it is still ours.
    border = len(held.data)
    for data in found.beyond:
        held.data += data
        if not held.begun:
            # Nothing began in the own content, unless a separator stands across its end.
            if len(held.data) < border + len(separator) - 1:
                continue
            if not held.begins(border):
                return
            border = 0
        end = held.data.find(separator, border)
        if end >= 0:
            yield from held.taken(end)
            return
        border = max(border, len(held.data) - len(separator) + 1)
        limit(held.at, len(held.data))
    if held.begun and held.data:
        yield held.at, held.data


class _Held:
    """Content that was not given out yet."""

    def __init__(self, separator: bytes, *, begun: bool) -> None:
        self._separator = separator
        self.begun = begun
        """True once the first record of the split begins where the content does."""
        self.data = b""
        self.at = 0
        """Where it begins in the split's content."""

    def begins(self, before: int) -> bool:
        """Drop what is another split's, up to the first separator that begins before there."""
        if not self.begun:
            width = len(self._separator)
            end = self.data.find(self._separator, 0, before + width - 1)
            self.begun = end >= 0
            # Of the content so far the last bytes may be the beginning of a separator.
            cut = end + width if self.begun else max(0, len(self.data) - width + 1)
            self.at, self.data = self.at + cut, self.data[cut:]
        return self.begun

    def taken(self, end: int) -> Iterator[tuple[int, bytes]]:
        """The records up to the separator at `end`; nothing if that is negative."""
        if end >= 0:
            cut = end + len(self._separator)
            yield self.at, self.data[:cut]
            self.at, self.data = self.at + cut, self.data[cut:]
