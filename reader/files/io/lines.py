"""Cuts a split into blocks of whole records, for formats whose records end at a separator.

A split has the records behind the first separator that begins in its own content, up to the first
one that begins beyond it; so anyone who enters need not know what is before. The first split of a
file begins with a record. Each byte is looked at once.
"""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....errors import WITHOUT_THE_FILE, MalformedDataError, OptionError
from ..options import Compression, ReaderOptions
from .codecs import Content, StoredFile, codec_of
from .cut_places import CutPlaces
from .file_kinds import checked
from .memory_bounds import RecordLimit, place_of_byte, too_long
from .request_sizer import SLOW
from .source_file import SourceFile
from .split_content import entered, in_place

_AT_ONCE = 1024 * 1024

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

    def position_at(self, offset: int) -> int:
        """Return the `position` of a byte of the data."""
        return self.position + self.skip_at(offset) - self.skip

    def offset_of(self, position: int) -> int:
        """Return which byte of the data is at a `position`: its first or its end, if not in it."""
        stored = max(0, position - self.position)
        if self.encoding == "utf-8" or not stored:
            return min(stored, len(self.data))
        before = self.data.decode().encode(self.encoding)[:stored]
        return len(before.decode(self.encoding).encode())

    def stored_at(self, offset: int) -> int | None:
        """Return how many bytes of the file were read up to a byte of the data, if known."""
        if self.stored is None:
            return None
        first, last = self.stored
        return first + (last - first) * offset // len(self.data)

    def behind(self, offset: int) -> LineBlock:
        """Return the same without its first bytes; some are left."""
        return replace(
            self,
            data=self.data[offset:],
            position=self.position_at(offset),
            skip=self.skip_at(offset),
            stored=self.stored and (self.stored_at(offset) or 0, self.stored[1]),
        )


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


def separator_in_utf8(options: ReaderOptions) -> bytes:
    """The same bytes in the data of a `LineBlock`."""
    return options.line_sep.encode() or b"\n"


def without_mark(data: bytes) -> bytes:
    """The bytes of a file from its beginning, in UTF-8, without a byte order mark."""
    return data.removeprefix(codecs.BOM_UTF8)


def is_ascii_superset(encoding: str) -> bool:
    """True if a line feed byte is a line feed everywhere."""
    return codecs.lookup(encoding).name.startswith(_ASCII_SUPERSETS)


def overlaps_itself(separator: bytes) -> bool:
    """True if occurrences may overlap; then where records start depends on where one looks."""
    return any(separator.startswith(separator[i:]) for i in range(1, len(separator)))


def records(
    content: Content,
    separator: bytes,
    step: int,
    limit: RecordLimit,
    *,
    is_first: bool,
    skip: int = 0,
) -> Iterator[tuple[int, bytes]]:
    """Whole records of a split in pieces of about `step` bytes, each with where it begins.

    Without the first `skip` bytes of the split's content.

    Raises:
        MalformedDataError: a record is longer than `limit` says.
    """
    held = _RecordBuffer(separator, limit, content, skip, begun=is_first)
    began = time.monotonic()
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

    def __init__(
        self, separator: bytes, limit: RecordLimit, content: Content, skip: int, *, begun: bool
    ) -> None:
        self._separator, self._limit = separator, limit
        self._overlaps = overlaps_itself(separator)
        self.begun = begun
        """True once the first record of the split begins where the held content does."""
        self.data = bytearray()
        self.at = content.position + skip
        """Where it begins; see `Content`."""
        self._since = content.since
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
            raise self._limit.error(self.at + self.ends, self._since)


class SkippedRows:
    """Leaves out the first lines of one file, which is given from its beginning in whole lines."""

    def __init__(self, options: ReaderOptions) -> None:
        self._left = options.skip_rows
        separator = re.escape(options.line_sep.encode())
        self._ends = re.compile(separator or rb"\r\n|\r|\n")

    def without(self, data: bytes) -> bytes:
        """Return what has to be read of the next bytes of the file."""
        if not self._left:
            return data
        ends = [match.end() for match in islice(self._ends.finditer(data), self._left)]
        self._left -= len(ends)
        return b"" if self._left else data[ends[-1] :]


def line_blocks(
    split: FileSplit, options: ReaderOptions, step: int, cut_places: CutPlaces | None = None
) -> Iterator[LineBlock]:
    """Yield the records of `split` in order, in blocks of about `step` bytes, in UTF-8.

    A byte order mark is left out, but for `wholetext`, and so are the rows to skip. `cut_places`
    finds a part of a gzip file. Raises what opening, reading and decompressing raise, and
    `MalformedDataError` for a file of another kind and for a record longer than `maxRecordBytes`.
    """
    limit = RecordLimit(split.file, options)
    codec = codec_of(split.file.path, options.compression)
    is_stored = codec is Compression.NONE
    # Where a line feed may be several bytes, text has to be UTF-8 before it is cut. All else is cut
    # first, so that a split can be entered in the middle, at positions of what is stored.
    decodes_first = not is_ascii_superset(options.encoding)
    in_order = decodes_first or (split.start, split.end) == (0, split.file.size)
    separator = separator_in_utf8(options) if decodes_first else separator_of(options)
    with ExitStack() as stack:
        source = stack.enter_context(SourceFile(split.file, options.storage_options).opened())
        if is_stored and not decodes_first:
            content = in_place(split, source, len(separator), step)
        else:
            stored = StoredFile(split.file, source, codec)
            opening = entered(split, stored, cut_places, in_order=in_order)
            content = stack.enter_context(opening)
        own = content.own
        if not (split.start or (content.is_stored and split.skip)):
            own = checked(own, split.file, options, codec)
        if decodes_first:
            own = _in_utf8(own, split.file, options)
        encoding = "utf-8" if decodes_first else options.encoding
        content = replace(content, own=own)
        # Other content begins behind what is skipped.
        skip = 0 if content.is_stored else split.skip
        is_first = split.start == 0 or split.skip > 0
        pieces = records(content, separator, step, limit, is_first=is_first, skip=skip)
        yield from _blocks(split, content, pieces, options, encoding)


def _blocks(
    split: FileSplit,
    content: Content,
    pieces: Iterator[tuple[int, bytes]],
    options: ReaderOptions,
    encoding: str,
) -> Iterator[LineBlock]:
    before = split.start + split.read_bytes
    # A whole file as one text is all of it, as in Spark.
    keeps_mark = options.wholetext or content.since
    rows, skips = SkippedRows(options), not (split.start or split.skip)
    for position, stored in pieces:
        whole = _transcoded(stored, encoding, split.file, position, content.since)
        data = whole if position or keeps_mark else without_mark(whole)
        if data:
            mark = len(whole) - len(data)
            offset = position - content.position + mark + content.before
            end = position + len(stored) if content.is_stored else None
            end = end if content.stream is None else content.stream.position
            read = None if end is None else (before, max(before, end))
            at = position + mark
            block = LineBlock(split.file, data, at, content.since, offset, encoding, read)
            before = end or before
            begin = len(data) - len(rows.without(data)) if skips else 0
            if begin < len(data):
                yield block.behind(begin) if begin else block


def _transcoded(data: bytes, encoding: str, file: FileVersion, position: int, since: int) -> bytes:
    if encoding == "utf-8":
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeDecodeError as err:
        raise _not_in(encoding, file, position + err.start, since) from err


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
    codec = codec_of(file.path, options.compression)
    with (
        SourceFile(file, options.storage_options).opened() as source,
        StoredFile(file, source, codec).stream() as stream,
    ):
        pieces = checked(iter(partial(stream.read, step), b""), file, options, codec)
        for number, data in enumerate(_in_utf8(pieces, file, options)):
            yield data if number or keeps_mark else without_mark(data)


def whole_content(file: FileVersion, options: ReaderOptions) -> bytes:
    """All of a file, its byte order mark too, decompressed and in UTF-8: for one long record.

    Raises:
        MalformedDataError: it is longer than `maxRecordBytes`.
    """
    parts, left = list[bytes](), options.max_record_bytes
    for data in content(file, options, _AT_ONCE, keeps_mark=True):
        parts.append(data)
        # Counted while it is read: compressed content may swell without an end.
        left -= len(data)
        if left < 0:
            raise too_long(file.path, "byte 0", options, what="document")
    return b"".join(parts)


def _not_in(encoding: str, file: FileVersion, position: int, since: int = 0) -> MalformedDataError:
    return MalformedDataError(
        "text cannot be decoded",
        f"{file.path}, {place_of_byte(position, since)}",
        "bytes that do not decode",
        f"text in {encoding}",
        "Set the encoding option to that of the file, or set ignoreCorruptFiles. "
        f"{WITHOUT_THE_FILE}",
    )
