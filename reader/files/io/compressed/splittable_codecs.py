"""The content of a split of compressed text, which is a range of the stored bytes.

Not here: how each codec is entered (the other modules of this folder), and where its records begin
and end (`whole_records.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import SplitReadError
from ...options import Compression, ReaderOptions
from ..codecs import FAULTS, Readable, broken, decompressed
from ..source_file import RandomAccess, SourceFile
from ..whole_records import Content
from . import bzip2, gzip, zstd
from .gzip import Points

_STEP = 1024 * 1024
_NEAR = 1024 * 1024
"""Where a split begins is known in the content if it is within so many compressed bytes."""

KNOWN = 900 * 1024
"""Whatever stands within so many bytes of content is in a split of which that is known."""


def anywhere(codec: Compression) -> bool:
    """True if a split may begin at any byte."""
    return codec is Compression.BZIP2


def at_starts(codec: Compression, points: Points | None) -> bool:
    """True if a split may begin where `starts` says; for gzip that takes a place for `points`."""
    if codec is Compression.GZIP:
        return points is not None and gzip.can_find_points()
    return codec is Compression.ZSTD


def starts(
    file: FileVersion, codec: Compression, options: ReaderOptions, points: Points | None
) -> list[int]:
    """The bytes at which splits of `file` may begin, 0 among them.

    Raises:
        SplitReadError: the file cannot be read.
    """
    if codec is Compression.GZIP:
        assert points is not None
        found = points.find(file)
        if found is None:
            found = points.keep(file, gzip.find_points(file, options.storage_options))
        return [0, *(point.start for point in found)]
    with SourceFile(file, options.storage_options).opened() as source:
        try:
            return zstd.frames(source, file.size)
        except ValueError:
            return [0]  # Its reader will say what is wrong with it.


@contextmanager
def entered(
    split: FileSplit, source: RandomAccess, codec: Compression, points: Points | None
) -> Iterator[Content]:
    """Enter a file where `split` begins.

    Raises:
        MalformedDataError: the bytes do not decompress.
    """
    if codec is Compression.BZIP2:
        yield _bzip2(split, source)
    elif codec is Compression.ZSTD:
        yield _zstd(split, source)
    else:
        with _gzip(split, source, points) as found:
            yield found


def _bzip2(split: FileSplit, source: RandomAccess) -> Content:
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
    return Content(own(), beyond(), position)


def _told(split: FileSplit, blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    at = split.start
    try:
        for bit, content in blocks:
            at = bit // 8
            yield bit, content
    except FAULTS as err:
        raise broken(split.file, at, Compression.BZIP2, err) from err


def _zstd(split: FileSplit, source: RandomAccess) -> Content:
    def between(start: int, part: RandomAccess) -> Iterator[bytes]:
        with decompressed(split.file, part, Compression.ZSTD, start) as stream:
            while data := stream.read(_STEP):
                yield data

    own = between(split.start, _Until(source, split.end))
    position = None
    if split.start <= _NEAR:
        position = sum(len(data) for data in between(0, _Until(source, split.start)))
    return Content(own, between(split.end, source), position)


@contextmanager
def _gzip(split: FileSplit, source: RandomAccess, known: Points | None) -> Iterator[Content]:
    file = split.file
    points = {p.start: p for p in (known and known.find(file)) or ()}
    wanted = {split.start, split.end} - {0, file.size}
    if not wanted <= points.keys():
        raise SplitReadError(
            "the points at which this compressed file was split are missing",
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
        yield Content(own, _taken(stream, None), position)


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
