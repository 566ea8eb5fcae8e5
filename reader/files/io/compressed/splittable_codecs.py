"""The content of a split of compressed text, which is a range of the stored bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import SplitReadError, is_installed
from ...options import Compression, ReaderOptions
from ..codecs import Readable, StoredFile
from ..source_file import SourceFile
from ..whole_records import Content
from . import bzip2, gzip, zstd
from .cut_places import CutPlaces

_STEP = 1024 * 1024


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
        with _in_order(split, stored, cut_places) as content:
            yield content


@contextmanager
def _in_order(
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
    start, begun, position = 0, None, 0
    if split.start:
        point = points[split.start]
        first = stored.source.read_at(point.start, 1)[0]
        start, position = point.start + 1, point.content
        begun = gzip.FromAccessPoint(point), gzip.head_of(point, first)
    length = None if split.end >= stored.file.size else points[split.end].content - position
    with stored.stream(start, begun) as stream:
        yield Content(_taken(stream, length), _taken(stream, None), position, stream)


def _taken(stream: Readable, length: int | None) -> Iterator[bytes]:
    while length is None or length:
        data = stream.read(_STEP if length is None else min(_STEP, length))
        if not data:
            return
        yield data
        length = None if length is None else length - len(data)
