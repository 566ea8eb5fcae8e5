"""The content of a split of compressed text, which is a range of the stored bytes.

Not here: how each codec is entered (the other modules of this folder), and where its records begin
and end (`whole_records.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import SplitReadError
from ...options import Compression, ReaderOptions
from ..codecs import Readable, StoredFile, Stream
from ..source_file import SourceFile
from ..whole_records import Content
from . import bzip2, gzip, zstd
from .cut_places import AccessPoint, CutPlaces, MemoryCutPlaces

_STEP = 1024 * 1024
SHARES = 8
"""Parts of a file that cannot be entered, at most: each of them decompresses all before it."""

LEAST_SHARE = 4 * 1024 * 1024
"""Compressed bytes of such a part, at least. More than a decoder takes in before it gives out."""


def anywhere(codec: Compression) -> bool:
    """True if a split may begin at any byte."""
    return codec is Compression.BZIP2


def cuts_at_starts(codec: Compression, cut_places: CutPlaces | None) -> bool:
    """True if a split may begin where `starts` says; gzip needs `cut_places` for that."""
    if codec is Compression.GZIP:
        return cut_places is not None and gzip.can_find_points()
    return codec is Compression.ZSTD


def cuts_at_boundaries(codec: Compression, cut_places: CutPlaces | None) -> bool:
    """True if splits may meet at `boundaries`: all that is before one is decompressed again."""
    return cut_places is not None and codec not in (Compression.BZIP2, Compression.ZSTD)


def boundaries(size: int) -> range:
    """The bytes at which a file that cannot be entered is cut."""
    share = max(LEAST_SHARE, -(-size // SHARES))
    return range(share, size, share)


def starts(
    file: FileVersion, codec: Compression, options: ReaderOptions, cut_places: CutPlaces | None
) -> list[int]:
    """The bytes at which splits of `file` may begin, 0 among them.

    Raises:
        SplitReadError: the file cannot be read.
    """
    if not cuts_at_starts(codec, cut_places):
        return [0, *boundaries(file.size)]
    if codec is Compression.GZIP:
        assert cut_places is not None
        found = cut_places.find(file)
        if found is None:
            found = cut_places.keep(file, gzip.find_points(file, options.storage_options))
        # A byte that is a boundary stays one: a reader without rapidgzip may have decided it
        # already.
        return [0, *(point.start for point in found if point.start not in boundaries(file.size))]
    with SourceFile(file, options.storage_options).opened() as source:
        try:
            return zstd.frames(source, file.size)
        except ValueError:
            return [0]  # Its reader will say what is wrong with it.


@contextmanager
def entered(
    split: FileSplit, stored: StoredFile, cut_places: CutPlaces | None
) -> Iterator[Content]:
    """Enter a file where `split` begins.

    Raises:
        MalformedDataError: the bytes do not decompress.
    """
    if stored.codec is Compression.BZIP2:
        yield bzip2.content_of(split, stored)
    elif stored.codec is Compression.ZSTD:
        yield zstd.content_of(split, stored)
    else:
        with _in_order(split, stored, cut_places) as found:
            yield found


@contextmanager
def _in_order(
    split: FileSplit, stored: StoredFile, cut_places: CutPlaces | None
) -> Iterator[Content]:
    """From a point of gzip, or from where the file begins."""
    places = _Places(stored, cut_places)
    position = places.content_before(split.start)
    start, begun, before = 0, None, position
    # A boundary at the same byte goes first, and is only entered if both are the same place in the
    # content.
    here = places.access_points.get(split.start)
    if here is not None and here.content == position:
        first = stored.source.read_at(here.start, 1)[0]
        start, before = here.start + 1, 0
        begun = gzip.FromAccessPoint(here), gzip.head_of(here, first)
    with stored.stream(start, begun) as stream:
        # Decompressed and dropped: that is what it costs to reach a place that cannot be entered.
        for _ in _taken(stream, before):
            pass
        yield Content(places.up_to(split.end, stream, position), _taken(stream, None), position)


class _Places:
    """How much content of one file is before the bytes at which splits of it meet."""

    def __init__(self, stored: StoredFile, cut_places: CutPlaces | None) -> None:
        self._stored, self._file = stored, stored.file
        self._kept: CutPlaces = cut_places or MemoryCutPlaces()
        found = self._kept.find(stored.file) if stored.codec is Compression.GZIP else None
        self.access_points: dict[int, AccessPoint] = {point.start: point for point in found or ()}

    def content_before(self, byte: int) -> int:
        """Decompresses all of it where no reader has reached a boundary yet."""
        known = self._known(byte)
        if known is not None:
            return known
        with self._stored.stream() as stream:
            content = sum(map(len, _until(stream, byte)))
        return self._kept.keep_boundary(self._file, byte, content)

    def up_to(self, byte: int, stream: Stream, position: int) -> Iterator[bytes]:
        """The content from `position`, where the stream is, up to that byte."""
        # The end of the file is no boundary: all that the decoder still has belongs to this split.
        known = None if byte >= self._file.size else self._known(byte)
        if known is not None or byte >= self._file.size:
            yield from _taken(stream, None if known is None else known - position)
            return
        for data in _until(stream, byte):
            position += len(data)
            yield data
        kept = self._kept.keep_boundary(self._file, byte, position)
        # Rows up to `position` may be out, so this attempt cannot follow a boundary before that.
        if kept < position:
            raise SplitReadError(
                "another reader has split this compressed file in the meantime",
                f"{self._file.path}, byte {byte}",
                f"{position} bytes of content before it",
                f"{kept} bytes",
                "Retry the task, as Spark does automatically: the next attempt reads up to there.",
            )
        yield from _taken(stream, kept - position)

    def _known(self, byte: int) -> int | None:
        if byte == 0:
            return 0
        is_boundary = byte in boundaries(self._file.size)
        kept = self._kept.boundary(self._file, byte) if is_boundary else None
        if kept is None and byte in self.access_points:
            return self.access_points[byte].content
        if kept is None and not is_boundary:
            raise SplitReadError(
                "the points at which this compressed file was split are missing",
                self._file.path,
                f"none at byte {byte}",
                "the points that the driver found, in the state",
                "Restore the folder points of the state, then restart.",
            )
        return kept


def _until(stream: Stream, byte: int) -> Iterator[bytes]:
    """The content that is there when the decoder has taken in all before that byte."""
    while stream.position < byte and (data := stream.read(_STEP)):
        yield data


def _taken(stream: Readable, length: int | None) -> Iterator[bytes]:
    while length is None or length:
        data = stream.read(_STEP if length is None else min(_STEP, length))
        if not data:
            return
        yield data
        length = None if length is None else length - len(data)
