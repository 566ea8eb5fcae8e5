"""Where a split of text may begin, and its content from there: stored, or decompressed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....errors import SplitReadError, is_installed
from ..options import Compression, ReaderOptions
from .codecs import Content, StoredFile, Stream
from .compressed import bzip2, gzip, zstd
from .cut_places import NEAR_START_BYTES, CutPlaces
from .request_sizer import RequestSizer
from .source_file import RandomAccess, SourceFile

_STEP = 1024 * 1024
"""Content read at a time; no record may be limited to less."""

_AT_FIRST = 64 * 1024


def cuts_at_starts(codec: Compression, cut_places: CutPlaces | None) -> bool:
    """True if a split may begin where `starts` says; gzip needs `cut_places` for that."""
    if codec is Compression.GZIP:
        return cut_places is not None and is_installed("rapidgzip")
    return codec is Compression.ZSTD


def starts(
    file: FileVersion, codec: Compression, options: ReaderOptions, cut_places: CutPlaces | None
) -> list[int]:
    """The bytes at which splits of `file` may begin, 0 among them.

    Raises:
        SplitReadError: the file cannot be read.
    """
    if codec is Compression.GZIP:
        assert cut_places is not None
        points = cut_places.find(file)
        if points is None:
            points = cut_places.keep(file, gzip.find_points(file, options.storage_options))
        return [0, *(point.start for point in points)]
    with SourceFile(file, options.storage_options).opened() as source:
        try:
            return zstd.frames(source, file.size)
        except ValueError:
            return [0]  # Its reader will say what is wrong with it.


@contextmanager
def entered(
    split: FileSplit, stored: StoredFile, cut_places: CutPlaces | None, *, in_order: bool
) -> Iterator[Content]:
    """Enter a file where `split` begins, or give all of it `in_order`.

    Raises:
        MalformedDataError: the bytes do not decompress.
    """
    if in_order:
        with stored.stream() as stream:
            yield Content(_taken(stream, None), iter(()), 0, stream=stream)
    elif stored.codec not in (Compression.ZSTD, Compression.BZIP2):
        with _from_point(split, stored, cut_places) as content:
            yield content
    elif stored.codec is Compression.ZSTD:
        is_near = split.start <= NEAR_START_BYTES
        position = sum(map(len, stored.pieces(0, split.start))) if is_near else 0
        own, beyond = stored.pieces(split.start, split.end), stored.pieces(split.end)
        yield Content(own, beyond, position, 0 if is_near else split.start)
    else:
        yield bzip2.content_of(split, stored)


@contextmanager
def _from_point(
    split: FileSplit, stored: StoredFile, cut_places: CutPlaces | None
) -> Iterator[Content]:
    """From a point of gzip, or from where the file begins, to the next split."""
    known_points = cut_places.find(stored.file) if cut_places is not None else None
    points = {point.start: point for point in known_points or ()}
    # The end of the file is no point: all that the decoder still has belongs to this split.
    missing = {split.start, split.end} - {0, stored.file.size, *points}
    if missing:
        raise SplitReadError(
            "the points at which this compressed file was split are missing",
            stored.file.path,
            f"none at byte {min(missing)}",
            "the points that the driver found, in the state",
            "Restore the folder points of the state, then restart.",
        )
    point = points.get(split.start)
    position = point.content if point else 0
    length = None if split.end >= stored.file.size else points[split.end].content - position
    with stored.stream(point=point) as stream:
        yield Content(_taken(stream, length), _taken(stream, None), position, stream=stream)


def _taken(stream: Stream, length: int | None) -> Iterator[bytes]:
    while length is None or length:
        data = stream.read(_STEP if length is None else min(_STEP, length))
        if not data:
            return
        yield data
        length = None if length is None else length - len(data)


def in_place(split: FileSplit, source: RandomAccess, width: int, step: int) -> Content:
    """The content of a split that is not compressed.

    Its records are those whose first byte it has, so the separators before them begin earlier.
    """
    size = split.file.size
    # What was read of it already ends with a record.
    start = split.start + split.skip if split.skip else max(0, split.start - width)
    boundary = size if split.end >= size else max(start, split.end - width)
    largest = min(step, _STEP)
    own = _between(source, start, boundary, largest)
    beyond = _between(source, boundary, size, largest)
    return Content(own, beyond, start, before=start - split.start, is_stored=True)


def _between(source: RandomAccess, position: int, end: int, largest: int) -> Iterator[bytes]:
    # What follows a split is read for the end of one record, which is mostly near; and a slow store
    # gives little at a time, so that a limit on seconds holds.
    pace = RequestSizer(_AT_FIRST, largest)
    while position < end:
        length = min(pace.bytes, end - position)
        with pace.request(length):
            data = source.read_at(position, length)
        yield data
        position += len(data)


def stored_content(split: FileSplit, options: ReaderOptions, step: int) -> Iterator[bytes]:
    """The stored bytes of a split in pieces of at most `step` bytes, small ones first."""
    with SourceFile(split.file, options.storage_options).opened() as source:
        yield from _between(source, split.start, split.end, step)
