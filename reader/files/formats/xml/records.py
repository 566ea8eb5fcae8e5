"""The bytes of each record of a split, in UTF-8, with where it begins.

Not here: which bytes are a record (`record_finder.py`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain

from .....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from .....errors import MalformedDataError
from ...io.codecs import codec_of
from ...io.lines import content
from ...io.memory_bounds import HELD, too_long
from ...io.source_file import SourceFile
from ...io.whole_records import Limit
from ...options import Compression, ReaderOptions
from .elements import size_of_tree
from .record_finder import RecordFinder

__all__ = ["beginning", "is_read_in_place", "records", "starts"]

_STEP = 1024 * 1024
_AT_FIRST = 64 * 1024
_DECLARED = re.compile(rb"\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_read_in_place(file: FileVersion, options: ReaderOptions) -> bool:
    """True if the stored bytes are the content, unless the file itself names another encoding."""
    codec = codec_of(file.path, options.compression)
    return codec is Compression.NONE and options.encoding == "utf-8"


def records(split: FileSplit, options: ReaderOptions) -> Generator[tuple[int, bytes], None, None]:
    """Each record that begins in `split`, which begins outside of any record.

    Raises:
        SplitReadError: what opening, reading and decompressing raise.
        MalformedDataError: a record is longer than `maxRecordBytes`, or has too many tags.
    """
    file, most = split.file, options.max_record_bytes

    def too_far(at: int) -> Exception:
        return too_long(file.path, f"byte {split.start + at}", options)

    finder = RecordFinder(
        options.row_tag, Limit(most, too_far), ignore_namespace=options.ignore_namespace
    )
    with closing(_pieces(split, options)) as pieces:
        for at, record in finder.records(pieces):
            size = size_of_tree(record)
            if size > HELD * most:
                found = f"tags and attributes that take {size} bytes as a tree"
                raise too_long(file.path, f"byte {split.start + at}", options, found=found)
            yield split.start + at, record


def beginning(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    """The records in the first `limit` bytes of a file, at least one."""
    with closing(records(FileSplit(file, 0, file.size), options)) as found:
        for at, record in found:
            yield record
            if at + len(record) >= limit:
                return


def starts(file: FileVersion, options: ReaderOptions, apart: int) -> list[int]:
    """Bytes at which a record begins, at least so far from each other; 0 is the first.

    Raises:
        SplitReadError: as for `records`.
    """
    with SourceFile(file, options.storage_options).opened() as source:
        if _declared(source.read_at(0, 1024), file, options) != options.encoding:
            return [0]
    found = [0]
    for at, _ in records(FileSplit(file, 0, file.size), options):
        if at >= found[-1] + apart:
            found.append(at)
    return found


def _pieces(split: FileSplit, options: ReaderOptions) -> Generator[bytes, None, None]:
    """The content of a split, cut anywhere, in UTF-8; a byte order mark stays where it is."""
    file, step = split.file, min(_STEP, options.batch_bytes)
    if is_read_in_place(file, options):
        pieces = _stored(split, options, step)
    else:
        pieces = content(file, options, step, keeps_mark=True)
    first = next(pieces, b"")
    declared = options.encoding if split.start else _declared(first, file, options)
    if declared == options.encoding:
        yield from chain([first], pieces)
        return
    other = options.model_copy(update={"encoding": declared})
    yield from content(file, other, step, keeps_mark=True)


def _stored(split: FileSplit, options: ReaderOptions, most: int) -> Iterator[bytes]:
    with SourceFile(split.file, options.storage_options).opened() as source:
        at, step = split.start, _AT_FIRST
        while at < split.end:
            data = source.read_at(at, min(step, split.end - at))
            yield data
            at += len(data)
            step = min(2 * step, most)


def _declared(head: bytes, file: FileVersion, options: ReaderOptions) -> str:
    """The encoding that a file names, unless the option names another than UTF-8."""
    if options.encoding != "utf-8":
        return options.encoding
    if head.startswith(_MARKS):
        return "utf-16"
    match = _DECLARED.match(head.removeprefix(codecs.BOM_UTF8))
    if match is None:
        return options.encoding
    name = match[1].decode()
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise MalformedDataError(
            "a file declares an encoding that is not known",
            f"{file.path}, byte 0",
            name,
            "a known character encoding",
            "Set the encoding option to that of the file.",
        ) from None
