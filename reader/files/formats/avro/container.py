"""The Avro object container: header, blocks between sync markers, and codecs.

Follows the Avro specification, "Object Container Files". What is in a block is decoded elsewhere.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from ...io.varints import read_varint, unzigzag, varint, zigzag

MAGIC = b"Obj\x01"
_SYNC = 16
_CHUNK = 1 << 16
_MAX_HEADER = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a container, before the first block."""

    schema: str
    codec: str
    sync: bytes
    notes: dict[bytes, bytes]
    """All key-value pairs, the writer's own included."""

    end: int
    """Position of the first block."""


@dataclass(frozen=True, slots=True)
class RawBlock:
    """One block as it is stored."""

    start: int
    end: int
    rows: int
    data: bytes


def read_header(source: pa.NativeFile) -> Header:
    """Return the header of the file.

    Raises:
        ValueError: it is no Avro container, or ends within its header.
    """
    size = source.size()
    length = _CHUNK
    while True:
        source.seek(0)
        data = source.read(length)
        if data[:4] != MAGIC:
            _fail(f"{data[:4]!r} where the file begins", 0)
        try:
            return _parse_header(data)
        except IndexError:
            # Longer than what was read, unless there is no more: schemas may take megabytes.
            if length >= min(size, _MAX_HEADER):
                _fail("the file ends within its header", size)
            length *= 4


def _parse_header(data: bytes) -> Header:
    metadata: dict[bytes, bytes] = {}
    at = 4
    while True:
        count, at = long(data, at)
        if count == 0:
            break
        if count < 0:
            # A negative count is followed by the size of the block of entries.
            _, at = long(data, at)
        for _ in range(abs(count)):
            key, at = _bytes(data, at)
            metadata[key], at = _bytes(data, at)
    sync = data[at : at + _SYNC]
    if len(sync) < _SYNC:
        raise IndexError
    schema = metadata.get(b"avro.schema", b"")
    codec = metadata.get(b"avro.codec", b"null")
    return Header(schema.decode(), codec.decode(), sync, metadata, at + _SYNC)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = long(data, at)
    if length < 0:
        _fail(f"a length of {length}", at)
    if at + length > len(data):
        raise IndexError
    return data[at : at + length], at + length


def long(data: bytes, at: int) -> tuple[int, int]:
    """Return a zig-zag number and the position after it.

    Raises:
        IndexError: `data` ends within it.
    """
    try:
        value, after = read_varint(data, at)
    except ValueError as err:
        _fail(str(err), at)
    return unzigzag(value), after


def encoded(number: int) -> bytes:
    """Return a number as zig-zag varint."""
    return varint(zigzag(number))


def _first_block(source: pa.NativeFile, header: Header, start: int) -> int:
    """Position of the first block that belongs to a split from `start`; the file's size if none."""
    if start == 0:
        return header.end
    # A block belongs to the split if its first byte does, so the marker before it may begin
    # earlier.
    at = max(start, header.end + 1) - _SYNC
    kept = b""
    source.seek(at)
    while chunk := source.read(1 << 20):
        window = kept + chunk
        marker = window.find(header.sync)
        if marker >= 0:
            return int(at - len(kept) + marker + _SYNC)
        at += len(chunk)
        kept = window[-(_SYNC - 1) :]
    return int(source.size())


def raw_blocks(
    source: pa.NativeFile, header: Header, start: int, end: int, *, with_data: bool = True
) -> Iterator[RawBlock]:
    """Yield the blocks that belong to the split from `start` to `end`: those that start in it.

    The first block counts as beginning at byte 0, so that splits cover the file.

    Raises:
        ValueError: a block does not end with the sync marker, or is cut short.
    """
    at, size = _first_block(source, header, start), source.size()
    # The first one belongs to its split even if that ends within the header.
    while at < size and (at < end or (start == 0 and at == header.end)):
        source.seek(at)
        # Two numbers of at most ten bytes each.
        head = source.read(20)
        try:
            rows, used = long(head, 0)
            length, used = long(head, used)
        except IndexError:
            _fail("the file ends within a block", at)
        stop = at + used + length + _SYNC
        if rows < 0 or length < 0 or stop > size:
            _fail(f"a block of {rows} rows in {length} bytes, {size - at} to the end", at)
        data = b""
        source.seek(at + used)
        if with_data:
            data = source.read(length)
        else:
            source.seek(stop - _SYNC)
        if source.read(_SYNC) != header.sync:
            _fail("a block without the sync marker at its end", at)
        yield RawBlock(at, stop, rows, data)
        at = stop


def decompressor(codec: str) -> Callable[[bytes, int], bytes]:
    """The inverse of an Avro codec, which makes no more than so many bytes, and one, of a block.

    Raises:
        ValueError: no such codec.
    """
    if codec not in _CODECS:
        raise ValueError(f"codec {codec!r}; known are {', '.join(sorted(_CODECS))}")
    expand = _CODECS[codec]

    def checked(data: bytes, most: int) -> bytes:
        try:
            return expand(data, most + 1)
        except (zlib.error, lzma.LZMAError, OSError, EOFError, pa.ArrowException) as err:
            raise ValueError(f"a {codec} block that does not decompress ({err})") from err

    return checked


def _streamed(start: Callable[[], Any]) -> Callable[[bytes, int], bytes]:
    """By a decoder of the standard library's kind."""

    def expand(data: bytes, most: int) -> bytes:
        decoder = start()
        plain: bytes = decoder.decompress(data, most)
        if len(plain) < most and not decoder.eof:
            raise EOFError("it does not end")
        return plain

    return expand


def _snappy(data: bytes, most: int) -> bytes:
    # Avro puts the CRC-32 of the plain bytes behind each block of snappy.
    stored, checksum = data[:-4], int.from_bytes(data[-4:], "big")
    try:
        size, _ = read_varint(stored[:5], 0)
    except IndexError:
        raise ValueError("a snappy block without a length") from None
    # Snappy never shrinks by more than a factor of 22 or so: a longer claim is a broken one.
    if size > 64 * len(stored) + 64:
        raise ValueError(f"a snappy block that claims {size} bytes in {len(stored)}")
    # Too large already, so it is not decompressed: the caller looks at the length only.
    if size >= most:
        return bytes(most)
    plain: bytes = pa.Codec("snappy").decompress(stored, size, asbytes=True)
    if zlib.crc32(plain) != checksum:
        raise ValueError("a snappy block with a wrong checksum")
    return plain


def _zstandard(data: bytes, most: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read(most))


_CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, most: data[:most],
    # Raw deflate, as RFC 1951 has it: no header and no checksum of zlib.
    "deflate": _streamed(lambda: zlib.decompressobj(-zlib.MAX_WBITS)),
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": _streamed(bz2.BZ2Decompressor),
    "xz": _streamed(lzma.LZMADecompressor),
}


def _fail(problem: str, at: int) -> NoReturn:
    raise ValueError(f"{problem}, at byte {at}") from None
