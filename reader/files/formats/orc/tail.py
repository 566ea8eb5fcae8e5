"""What the tail of an ORC file says: stripes, types, calendar, and the zone of each stripe.

Follows the ORC v1 specification, "File Tail": a postscript that is never compressed, before it the
footer. Arrow hands out too little of it. Data is decoded by Arrow, not here.

Arrow is handed another footer where its reading of the types would lose. It turns ORC's timestamps
into wall clocks by the writer's zone, after which the two hours of a clock set back are one. As a
timestamp of an instant, which differs by one number in the footer, the same bytes come out as they
are stored. And it selects columns by dotted names, which say too little where names have dots: then
columns are called by their number in the footer.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from ...io.source_file import AsFile, RandomAccess
from .protobuf import Field, Value, fields, message, number, numbers, text, varint

MAGIC = b"ORC"
_MAX_FOOTER = 256 * 1024 * 1024
_MOST_POSTSCRIPT = 256
_PROLEPTIC_GREGORIAN = 2
_WHOLE_BLOCK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Stripe:
    """Where one stripe begins and how many rows it has."""

    offset: int
    rows: int
    footer: int = 0
    """Where the stripe's own footer begins."""

    footer_length: int = 0


@dataclass(frozen=True, slots=True)
class Type:
    """One node of the tree of types; a file's columns are below the first."""

    kind: int
    children: tuple[int, ...]
    names: tuple[str, ...]
    notes: dict[str, str]
    """The writer's own key-value pairs."""

    precision: int
    """Digits of a decimal; 0 if Hive 0.11 wrote it, which did not say."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The parsed tail of one file."""

    stripes: list[Stripe]
    types: list[Type]
    is_proleptic: bool
    """Whether dates and timestamps are of the proleptic Gregorian calendar, not the hybrid one."""

    codec: int
    block: int
    footer: list[Field]
    postscript: list[Field]
    start: int
    """Where the footer begins."""


def read_tail(source: pa.NativeFile) -> Tail | None:
    """The tail of the file; None if LZO or Brotli hides it.

    Raises:
        ValueError: the tail is not that of an ORC file.
    """
    size = source.size()
    # The last byte is the length of the postscript, so both have at most 256 bytes.
    source.seek(max(0, size - _MOST_POSTSCRIPT))
    end = source.read()
    length = end[-1] if end else 0
    postscript = end[-1 - length : -1]
    # Files of the oldest version say what they are at their beginning only.
    if len(end) <= length or not (postscript.endswith(MAGIC) or _begins_with_magic(source)):
        raise ValueError("no ORC postscript at the end")
    found = list(fields(postscript))
    noted = dict(found)
    footer_length = number(noted.get(1))
    start = size - 1 - length - footer_length
    if not 0 <= start < size or footer_length > _MAX_FOOTER:
        raise ValueError(f"a footer of {footer_length} bytes in a file of {size}")
    codec = number(noted.get(2))
    if codec in UNKNOWN_HERE:
        return None
    source.seek(start)
    block = number(noted.get(3)) or _WHOLE_BLOCK
    footer = list(fields(expand(source.read(footer_length), codec, block)))
    totals = dict(footer)
    stripes = [_stripe(value) for field, value in footer if field == 3]
    # Fields 1 and 2 are the lengths of header and content.
    if not stripes and number(totals.get(2)) > number(totals.get(1)):
        raise ValueError("a footer without stripes, before which there is content")
    return Tail(
        stripes,
        [_type(value) for field, value in footer if field == 4],
        number(totals.get(10)) == _PROLEPTIC_GREGORIAN,
        codec,
        block,
        footer,
        found,
        start,
    )


def writer_zone(source: pa.NativeFile, tail: Tail, stripe: Stripe) -> str:
    """The zone that the writer of a stripe was in; nothing if the stripe does not say.

    Raises:
        ValueError: the stripe's footer does not parse.
    """
    source.seek(stripe.footer)
    data = source.read(stripe.footer_length)
    return text(dict(fields(expand(data, tail.codec, tail.block))).get(3))


def _begins_with_magic(source: pa.NativeFile) -> bool:
    source.seek(0)
    return bool(source.read(len(MAGIC)) == MAGIC)


def _stripe(value: int | bytes) -> Stripe:
    if isinstance(value, int):
        raise ValueError("a stripe that is a number")
    found = dict(fields(value))
    offset, index, data, footer, rows = (number(found.get(i)) for i in range(1, 6))
    return Stripe(offset, rows, offset + index + data, footer)


def _type(value: int | bytes) -> Type:
    if isinstance(value, int):
        raise ValueError("a type that is a number")
    found = list(fields(value))
    noted = dict(found)
    pairs = [dict(fields(pair)) for i, pair in found if i == 7 and isinstance(pair, bytes)]
    return Type(
        number(noted.get(1)),
        tuple(numbers(found, 2)),
        tuple(text(name) for i, name in found if i == 3),
        {text(pair.get(1)): text(pair.get(2)) for pair in pairs},
        number(noted.get(5)),
    )


TIMESTAMP = 9
INSTANT = 18
_TYPES = 4
_NAMES = 3


def with_rewritten_footer(
    source: pa.NativeFile, tail: Tail, *, numbered: bool, instants: bool
) -> pa.NativeFile:
    """The file with its columns called "0", "1" and so on, and with its timestamps as instants."""
    found: list[Field] = []
    root = True
    for field, value in tail.footer:
        if field == _TYPES and isinstance(value, bytes):
            pairs = list(fields(value))
            # The first type is the row itself, so its fields are the columns.
            if root and numbered:
                count = sum(number == _NAMES for number, _ in pairs)
                pairs = [pair for pair in pairs if pair[0] != _NAMES]
                pairs += [(_NAMES, str(index).encode()) for index in range(count)]
            root = False
            found.append((field, message(_as_instant(pairs) if instants else pairs)))
        else:
            found.append((field, value))
    footer = stored(message(found), tail.codec, tail.block)
    lengths: dict[int, Value] = {1: len(footer)}
    postscript = message([(field, lengths.get(field, value)) for field, value in tail.postscript])
    end = footer + postscript + bytes([len(postscript)])
    # The file is small, and in memory as a whole already.
    if isinstance(source, pa.BufferReader):
        source.seek(0)
        return pa.BufferReader(source.read(tail.start) + end)
    return pa.PythonFile(AsFile(_Spliced(source, tail.start, end), tail.start + len(end)), "r")


def _as_instant(pairs: list[Field]) -> list[Field]:
    is_timestamp = number(dict(pairs).get(1)) == TIMESTAMP
    return [(1, INSTANT) if is_timestamp and pair[0] == 1 else pair for pair in pairs]


class _Spliced(RandomAccess):
    """The beginning of a file, and another end."""

    def __init__(self, source: pa.NativeFile, start: int, end: bytes) -> None:
        self._source = source
        self._start = start
        self._end = end

    @override
    def read_at(self, position: int, count: int) -> bytes:
        stop = position + count
        data = b""
        if position < self._start:
            self._source.seek(position)
            data = self._source.read(min(stop, self._start) - position)
        if stop > self._start:
            data += self._end[max(0, position - self._start) : stop - self._start]
        return data

    @override
    def close(self) -> None:
        """Who has opened the file closes it."""


NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD, BROTLI = range(7)
UNKNOWN_HERE = (LZO, BROTLI)
"""Arrow's ORC decoder does not know them either."""


def expand(data: bytes, codec: int, block: int) -> bytes:
    """Undo the compression: three bytes of length and a mark for stored chunks before each chunk.

    Raises:
        ValueError: it does not decompress, or to more than `block` bytes a chunk.
    """
    if codec == NONE:
        return data
    parts = []
    at = 0
    while at + 3 <= len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (header >> 1)]
        at += 3 + (header >> 1)
        parts.append(chunk if header & 1 else _decompress(chunk, codec, block))
    return b"".join(parts)


def stored(data: bytes, codec: int, block: int) -> bytes:
    """`data` in the same framing, without being compressed."""
    if codec == NONE:
        return data
    chunks = (data[at : at + block] for at in range(0, len(data), block))
    return b"".join((len(part) << 1 | 1).to_bytes(3, "little") + part for part in chunks)


def _decompress(chunk: bytes, codec: int, block: int) -> bytes:
    if codec == ZLIB:
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, block)
        except zlib.error as err:
            raise ValueError(f"the ORC footer does not decompress ({err})") from err
    if codec == SNAPPY:
        size, _ = varint(chunk, 0)
        return bytes(pa.Codec("snappy").decompress(chunk, min(size, block), asbytes=True))
    if codec == LZ4:
        return _lz4(chunk, block)
    if codec == ZSTD:
        with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
            return bytes(stream.read(block))
    raise ValueError(f"ORC compression kind {codec}")


def _lz4(chunk: bytes, block: int) -> bytes:
    """An LZ4 block, which does not say how long it becomes: Arrow's codec has to know."""
    out = bytearray()
    at = 0
    try:
        while at < len(chunk):
            token = chunk[at]
            length, at = _lz4_length(chunk, at + 1, token >> 4)
            if at + length > len(chunk):
                raise IndexError
            out += chunk[at : at + length]
            at += length
            if at == len(chunk):
                break
            offset = chunk[at] | chunk[at + 1] << 8
            length, at = _lz4_length(chunk, at + 2, token & 15)
            if not 0 < offset <= len(out):
                raise IndexError
            # LZ4 stores lengths of matches less four, the shortest that it has.
            _repeat(out, offset, length + 4)
            if len(out) > block:
                raise IndexError
    except IndexError:
        raise ValueError("the ORC footer does not decompress (LZ4)") from None
    return bytes(out)


def _lz4_length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            length += chunk[at]
            at += 1
            if chunk[at - 1] != 255:
                break
    return length, at


def _repeat(out: bytearray, offset: int, length: int) -> None:
    """Append what is `offset` back, which may run into what is being appended."""
    start = len(out) - offset
    while length > 0:
        piece = out[start : start + length]
        out += piece
        length -= len(piece)
