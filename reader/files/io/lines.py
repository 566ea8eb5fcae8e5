"""Cuts a split into blocks of whole records, for formats whose records end at a separator.

A record belongs to the split in which its first byte lies, so a split skips the record it starts
in the middle of and reads its last record to the end, beyond its own.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....errors import WITHOUT_THE_FILE, MalformedDataError, OptionError
from ..options import Compression, ReaderOptions
from .codecs import opened
from .compressed.cut_places import CutPlaces
from .compressed.splittable_codecs import entered
from .file_kinds import checked
from .memory_bounds import place_of_byte, too_long
from .request_sizer import RequestSizer
from .source_file import RandomAccess, SourceFile
from .whole_records import Content, Limit, records

_MOST_AT_ONCE = 1024 * 1024
"""Bytes read at a time; no record may be limited to less."""

_AT_FIRST = 64 * 1024

_ASCII_SUPERSETS = ("utf-8", "ascii", "iso8859", "cp125", "latin", "koi8", "cp437", "cp85", "cp86")
_MARKS = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole records of one file, in UTF-8."""

    file: FileVersion
    data: bytes
    position: int
    """Where the block starts in the file, or in its decompressed content."""

    since: int = 0
    """Byte of a compressed file from which on `position` counts its content."""

    skip: int = 0
    """Where it starts in the content of its split, in bytes as they are stored; see `FileSplit`."""

    encoding: str = "utf-8"
    """The encoding of the bytes that `skip` counts."""

    stored: tuple[int, int] | None = None
    """Bytes of the file that were read before it, and up to its end; None if unknown."""

    def skip_at(self, offset: int) -> int:
        """Return where a byte of the data is in the content of the split."""
        if self.encoding == "utf-8":
            return self.skip + offset
        return self.skip + len(self.data[:offset].decode().encode(self.encoding))


def separator_of(options: ReaderOptions) -> bytes:
    """The bytes at which a file may be cut: every default separator but a lone CR ends in LF.

    Raises:
        OptionError: the separator that was given is no text of the encoding.
    """
    try:
        return options.line_sep.encode(options.encoding) if options.line_sep else b"\n"
    except UnicodeEncodeError as error:
        raise OptionError(
            "lineSep: it contains characters that the encoding cannot represent",
            "",
            f"{options.line_sep!r} with encoding {options.encoding}",
            "a separator that can be written in that encoding",
        ) from error


def without_mark(data: bytes) -> bytes:
    """The bytes of a file from its beginning, in UTF-8, without a byte order mark."""
    return data.removeprefix(codecs.BOM_UTF8)


def is_ascii_superset(encoding: str) -> bool:
    """True if a line feed byte is a line feed everywhere."""
    return codecs.lookup(encoding).name.startswith(_ASCII_SUPERSETS)


def line_blocks(
    split: FileSplit, options: ReaderOptions, step: int, cut_places: CutPlaces | None = None
) -> Iterator[LineBlock]:
    """Yield the records of `split` in order, in blocks of about `step` bytes, in UTF-8.

    A byte order mark is left out, but for `wholetext`. `cut_places` finds a part of a gzip file.
    Raises what opening, reading and decompressing raise, and `MalformedDataError` for a file of
    another kind and for a record longer than `maxRecordBytes`.
    """
    with ExitStack() as stack:
        opening = opened(split.file, options.compression, options.storage_options)
        stored = stack.enter_context(opening)
        is_compressed = stored.codec is not Compression.NONE
        # Where a line feed may be several bytes, text has to be UTF-8 before it is cut. A whole
        # compressed file comes in order anyway. All else is cut first, so that a split can be
        # entered in the middle.
        is_whole = (split.start, split.end) == (0, split.file.size)
        decodes_first = is_whole if is_compressed else not is_ascii_superset(options.encoding)
        as_utf8 = options.line_sep.encode() or b"\n"
        separator = as_utf8 if decodes_first else separator_of(options)
        if not split.start and not (is_compressed and is_whole):
            # The first bytes of an object are part of what its first request fetches.
            with stored.stream() as beginning:
                next(checked(beginning, split.file, options))
        if is_compressed and not is_whole:
            content = stack.enter_context(entered(split, stored, cut_places))
        elif decodes_first:
            raw = stack.enter_context(stored.stream())
            pieces = checked(raw, split.file, options, min(step, _MOST_AT_ONCE))
            content = Content(_in_utf8(pieces, split.file, options), iter(()), 0, raw)
        else:
            content = _in_place(split, stored.source, len(separator), step)
        yield from _blocks(split, content, separator, options, step, is_utf8=decodes_first)


def _blocks(
    split: FileSplit,
    found: Content,
    separator: bytes,
    options: ReaderOptions,
    step: int,
    *,
    is_utf8: bool,
) -> Iterator[LineBlock]:
    # Other content begins behind what is skipped.
    skip = 0 if found.is_stored else split.skip
    # How much content is before a compressed split is mostly unknown: then it counts from there.
    since, begin = (split.start, 0) if found.position is None else (0, found.position)
    begin += skip

    def error(within: int) -> Exception:
        return too_long(split.file.path, place_of_byte(begin + within, since), options)

    limit = Limit(options.max_record_bytes, error)
    is_first = split.start == 0 or split.skip > 0
    pieces = records(found, separator, step, limit, is_first=is_first, skip=skip)
    before = split.start + split.read_bytes
    # A whole file as one text is all of it, as in Spark.
    keeps_mark = options.wholetext or since
    for within, data in pieces if is_utf8 else _transcoded(pieces, split, options):
        position = begin + within
        content = data if position or keeps_mark else without_mark(data)
        if content:
            mark = len(data) - len(content)
            offset = within + mark + (split.skip or found.before)
            encoding = "utf-8" if is_utf8 else options.encoding
            end = position + len(data) if found.is_stored else None
            end = end if found.stream is None else found.stream.position
            stored = None if end is None else (before, max(before, end))
            yield LineBlock(split.file, content, position + mark, since, offset, encoding, stored)
            before = end or before


def _in_place(split: FileSplit, source: RandomAccess, width: int, step: int) -> Content:
    """The content of a split that is not compressed.

    Its records are those whose first byte it has, so the separators before them begin earlier.
    """
    size = split.file.size
    # What was read of it already ends with a record.
    start = split.start + split.skip if split.skip else max(0, split.start - width)
    boundary = size if split.end >= size else max(start, split.end - width)
    largest = min(step, _MOST_AT_ONCE)
    beyond = _between(source, boundary, size, largest)
    before = 0 if split.skip else start - split.start
    own = _between(source, start, boundary, largest)
    return Content(own, beyond, start, before=before, is_stored=True)


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


def _transcoded(
    pieces: Iterator[tuple[int, bytes]], split: FileSplit, options: ReaderOptions
) -> Iterator[tuple[int, bytes]]:
    encoding = options.encoding
    if encoding == "utf-8":
        yield from pieces
        return
    for position, data in pieces:
        try:
            yield position, data.decode(encoding).encode()
        except UnicodeDecodeError as err:
            raise _not_in(encoding, split.file, position + err.start) from err


def _in_utf8(pieces: Iterable[bytes], file: FileVersion, options: ReaderOptions) -> Iterator[bytes]:
    encoding, position = options.encoding, 0
    if encoding == "utf-8":
        yield from pieces
        return
    decoder: codecs.IncrementalDecoder | None = None
    for data in chain(pieces, [b""]):
        # The first piece has all of a byte order mark.
        decoder = decoder or _decoder(encoding, data)
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as err:
            raise _not_in(encoding, file, position + err.start) from err
        position += len(data)
        if text:
            yield text.encode()


def _decoder(encoding: str, beginning: bytes) -> codecs.IncrementalDecoder:
    """As in Java UTF-16 and UTF-32 are big endian where no byte order mark says otherwise."""
    if encoding in _MARKS and not beginning.startswith(_MARKS[encoding]):
        encoding += "-be"
    return codecs.getincrementaldecoder(encoding)()


def content(
    file: FileVersion, options: ReaderOptions, step: int, *, keeps_mark: bool = False
) -> Iterator[bytes]:
    """All of a file in pieces of about `step` bytes, cut anywhere, decompressed and in UTF-8.

    A byte order mark is left out unless it is to be kept. Raises what opening, reading and
    decompressing raise.
    """
    with (
        opened(file, options.compression, options.storage_options) as stored,
        stored.stream() as content,
    ):
        pieces = _in_utf8(checked(content, file, options, step), file, options)
        for number, data in enumerate(pieces):
            yield data if number or keeps_mark else without_mark(data)


def whole_content(file: FileVersion, options: ReaderOptions) -> bytes:
    """All of a file, its byte order mark too, decompressed and in UTF-8: for one long record.

    Raises:
        MalformedDataError: it is longer than `maxRecordBytes`.
    """
    parts, left = list[bytes](), options.max_record_bytes
    for data in content(file, options, _MOST_AT_ONCE, keeps_mark=True):
        parts.append(data)
        # Counted while it is read: compressed content may swell without an end.
        left -= len(data)
        if left < 0:
            raise too_long(file.path, "byte 0", options, what="document")
    return b"".join(parts)


def _not_in(encoding: str, file: FileVersion, position: int) -> MalformedDataError:
    return MalformedDataError(
        "text cannot be decoded",
        f"{file.path}, byte {position}",
        "bytes that do not decode",
        f"text in {encoding}",
        "Set the encoding option to that of the file, or set ignoreCorruptFiles. "
        f"{WITHOUT_THE_FILE}",
    )
