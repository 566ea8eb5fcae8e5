"""Cuts a split into blocks of whole records, for formats whose records end at a separator.

A record belongs to the split in which its first byte lies, so a split skips the record it starts
in the middle of and reads its last record to the end, beyond its own. Not here: what a record
means (`formats/`).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ...checkpoint_meta.splits import FileSplit, FileVersion
from ...errors import MalformedDataError
from .codecs import Readable, codec_of, decompressed
from .entering.entry import entered, records
from .opening import RandomAccess, open_file
from .options import Compression, ReaderOptions

__all__ = [
    "LineBlock",
    "content",
    "is_ascii_superset",
    "line_blocks",
    "overlaps_itself",
    "separator_of",
    "without_mark",
]

MAX_RECORD = 1 << 30
"""A record longer than this is an error: Arrow's 32-bit offsets end at twice this size."""

_ASCII_SUPERSETS = ("utf-8", "ascii", "iso8859", "cp125", "latin", "koi8", "cp437", "cp85", "cp86")


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole records of one file, in UTF-8."""

    file: FileVersion
    data: bytes
    position: int
    """Where the block starts in the file, or in its decompressed content."""

    since: int = 0
    """Byte of a compressed file from which on `position` counts its content."""


def separator_of(options: ReaderOptions) -> bytes:
    """The bytes at which a file may be cut: every default separator but a lone CR ends in LF."""
    return options.line_sep.encode(options.encoding) if options.line_sep else b"\n"


def overlaps_itself(separator: bytes) -> bool:
    """True if occurrences may overlap; then where records start depends on where one looks."""
    return any(separator.startswith(separator[i:]) for i in range(1, len(separator)))


def _end_of_last(data: bytes, separator: bytes) -> int:
    """Where what follows the last separator begins; 0 without one. A record begins at `data`."""
    if overlaps_itself(separator):
        _, *records = data.split(separator)
        return len(data) - len(records[-1]) if records else 0
    return data.rfind(separator) + len(separator) if separator in data else 0


def without_mark(data: bytes) -> bytes:
    """The bytes of a file from its beginning, in UTF-8, without a byte order mark."""
    return data.removeprefix(codecs.BOM_UTF8)


def is_ascii_superset(encoding: str) -> bool:
    """True if a line feed byte is a line feed wherever it stands."""
    return codecs.lookup(encoding).name.startswith(_ASCII_SUPERSETS)


def line_blocks(split: FileSplit, options: ReaderOptions, step: int) -> Iterator[LineBlock]:
    """Yield the records of `split` in order, in blocks of about `step` bytes, in UTF-8.

    A byte order mark is left out, but for `wholetext`. Raises what opening, reading and
    decompressing raise.
    """
    with open_file(split.file, options.storage_options) as source:
        codec = codec_of(split.file.path, options.compression)
        if codec is not Compression.NONE:
            if not split.is_whole_file:
                yield from _entered(split, source, codec, options, step)
                return
            with decompressed(split.file, source, codec) as stream:
                pieces = _from_stream(_decoded(stream, split, options), step, options)
                yield from _numbered(split.file, pieces, options)
        elif not is_ascii_superset(options.encoding):
            stream = _decoded(_Sequential(source), split, options)
            yield from _numbered(split.file, _from_stream(stream, step, options), options)
        else:
            pieces = _in_place(split, source, separator_of(options), step)
            pieces = _transcoded(pieces, split, options.encoding)
            yield from _numbered(split.file, pieces, options)


def _entered(
    split: FileSplit, source: RandomAccess, codec: Compression, options: ReaderOptions, step: int
) -> Iterator[LineBlock]:
    with entered(split, source, codec, options) as found:
        pieces = records(found, separator_of(options), split.start == 0, step, _bounded)
        pieces = _transcoded(pieces, split, options.encoding)
        since = split.start if found.position is None else 0
        for block in _numbered(split.file, pieces, options, found.position or 0, since):
            yield replace(block, since=since)


def _bounded(position: int, length: int) -> None:
    if length > MAX_RECORD:
        raise ValueError(f"a record of more than {MAX_RECORD} bytes at byte {position}")


def _numbered(
    file: FileVersion,
    pieces: Iterator[tuple[int, bytes]],
    options: ReaderOptions,
    first: int = 0,
    since: int = 0,
) -> Iterator[LineBlock]:
    # A whole file as one text is all of it, as in Spark.
    keeps_mark = options.wholetext
    for within, data in pieces:
        position = first + within
        content = data if position or since or keeps_mark else without_mark(data)
        if content:
            yield LineBlock(file, content, position + len(data) - len(content))


def _in_place(
    split: FileSplit, source: RandomAccess, separator: bytes, step: int
) -> Iterator[tuple[int, bytes]]:
    size, width = split.file.size, len(separator)
    position = split.start
    if position:
        # A record starts here exactly if a separator ends here.
        position = _after(source, separator, max(0, position - width), size, position)
    while position < split.end:
        target = min(position + step, split.end)
        data = source.read_at(position, target - position)
        if target < split.end:
            cut = _end_of_last(data, separator)
            if cut:
                yield position, data[:cut]
                position += cut
                continue
        if target < size and not data.endswith(separator):
            # The last record of the split, or one longer than a block, goes on beyond.
            beyond = max(position, target - width + 1)
            end = _after(source, separator, beyond, size, target, position)
            data += source.read_at(target, end - target)
        yield position, data
        position += len(data)


def _after(
    source: RandomAccess,
    separator: bytes,
    position: int,
    size: int,
    least: int,
    record: int | None = None,
) -> int:
    """The first position from `least` on that follows a separator, or the end of the file."""
    step, width = 64 * 1024, len(separator)
    while position < size:
        data = source.read_at(position, step)
        found = data.find(separator)
        while found >= 0 and position + found + width < least:
            found = data.find(separator, found + width)
        if found >= 0:
            return position + found + width
        if position + len(data) >= size:
            break
        position += len(data) - width + 1
        step = min(step * 2, 8 * 1024 * 1024)
        if record is not None and position - record > MAX_RECORD:
            raise ValueError(f"a record of more than {MAX_RECORD} bytes at byte {record}")
    return size


def _transcoded(
    pieces: Iterator[tuple[int, bytes]], split: FileSplit, encoding: str
) -> Iterator[tuple[int, bytes]]:
    if encoding in ("utf-8", "ascii"):
        yield from pieces
        return
    for position, data in pieces:
        try:
            yield position, data.decode(encoding).encode()
        except UnicodeDecodeError as err:
            raise _not_in(encoding, split.file, position + err.start) from err


class _Sequential:
    def __init__(self, source: RandomAccess) -> None:
        self._source, self._position = source, 0

    def read(self, count: int) -> bytes:
        data = self._source.read_at(self._position, count)
        self._position += len(data)
        return data


def _decoded(stream: Readable, split: FileSplit, options: ReaderOptions) -> Readable:
    if options.encoding in ("utf-8", "ascii"):
        return stream
    return _Decoder(stream, split.file, options.encoding)


class _Decoder:
    """A stream in another encoding, as UTF-8."""

    def __init__(self, stream: Readable, file: FileVersion, encoding: str) -> None:
        self._stream, self._file, self._encoding = stream, file, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._position = 0

    def read(self, count: int) -> bytes:
        while True:
            data = self._stream.read(count)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError as err:
                position = self._position + err.start
                raise _not_in(self._encoding, self._file, position) from err
            self._position += len(data)
            if text or not data:
                return text.encode()


def _from_stream(
    stream: Readable, step: int, options: ReaderOptions
) -> Iterator[tuple[int, bytes]]:
    separator = options.line_sep.encode() or b"\n"
    position, parts, length = 0, list[bytes](), 0
    while data := stream.read(min(step, 1024 * 1024)):
        parts.append(data)
        length += len(data)
        if length < step:
            continue
        whole = b"".join(parts)
        cut = _end_of_last(whole, separator)
        if not cut:
            _bounded(position, length)
            parts = [whole]
            continue
        yield position, whole[:cut]
        position += cut
        parts, length = [whole[cut:]], length - cut
    if length:
        yield position, b"".join(parts)


def content(file: FileVersion, options: ReaderOptions, step: int) -> Iterator[bytes]:
    """All of a file in pieces of about `step` bytes, cut anywhere, decompressed and in UTF-8.

    A byte order mark is left out. Raises what opening, reading and decompressing raise.
    """
    whole = FileSplit(file, 0, file.size)
    with open_file(file, options.storage_options) as source, ExitStack() as stack:
        codec = codec_of(file.path, options.compression)
        stream: Readable = _Sequential(source)
        if codec is not Compression.NONE:
            stream = stack.enter_context(decompressed(file, source, codec))
        stream = _decoded(stream, whole, options)
        data = stream.read(step)
        yield without_mark(data)
        while data := stream.read(step):
            yield data


def whole_content(file: FileVersion, options: ReaderOptions) -> bytes:
    """All of a file, decompressed and in UTF-8, for records that may span lines."""
    whole = FileSplit(file, 0, file.size)
    data = b"".join(block.data for block in line_blocks(whole, options, 64 * 1024 * 1024))
    if len(data) > 2 * MAX_RECORD - 1:
        raise ValueError(f"a document of {len(data)} bytes; at most {2 * MAX_RECORD - 1} are read")
    return data


def _not_in(encoding: str, file: FileVersion, position: int) -> MalformedDataError:
    return MalformedDataError(
        "text cannot be decoded",
        f"{file.path}, byte {position}",
        "bytes that are no characters",
        f"text in {encoding}",
        "Set the encoding option to that of the file, or set ignoreCorruptFiles.",
    )
