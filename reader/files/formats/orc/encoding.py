"""How ORC writes its metadata: Protocol Buffers messages, in chunks that may be compressed.

Messages are pairs of field number and value here. What the fields mean is in `tail.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...io.varints import read_varint
from ...io.varints import varint as written

Value = int | bytes
Field = tuple[int, Value]


def fields(data: Value) -> Iterator[Field]:
    """Field numbers and values of a message; fixed-width numbers are left as bytes.

    Raises:
        ValueError: `data` is no message.
    """
    if isinstance(data, int):
        raise ValueError("a number in the ORC footer where a message belongs")
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            # 3 and 4 are groups, which ORC's messages do not have.
            raise ValueError(f"wire type {kind} in the ORC footer")
        if at + length > len(data):
            raise ValueError("the ORC footer ends within a field")
        yield key >> 3, data[at : at + length]
        at += length


def message(pairs: Iterable[Field]) -> bytes:
    """Return the inverse of `fields`, for messages without numbers of fixed width."""
    parts = []
    for number, value in pairs:
        if isinstance(value, int):
            parts += [written(number << 3), written(value)]
        else:
            parts += [written(number << 3 | 2), written(len(value)), value]
    return b"".join(parts)


def number(value: Value | None) -> int:
    """Return a field as a number; 0, protobuf's default, if it is not there."""
    return value if isinstance(value, int) else 0


def text(value: Value | None) -> str:
    """Return a field as text."""
    return value.decode() if isinstance(value, bytes) else ""


def numbers(fields_of_message: Iterable[Field], wanted: int) -> list[int]:
    """Return a repeated number, packed or not."""
    values: list[int] = []
    for field, value in fields_of_message:
        if field != wanted:
            continue
        if isinstance(value, int):
            values.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            values.append(one)
    return values


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length and the position after it."""
    try:
        return read_varint(data, at)
    except (IndexError, ValueError):
        raise ValueError("a number in the ORC footer does not end") from None


NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD, BROTLI = range(7)
UNDECODED = (LZO, BROTLI)
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
        # Chunks that would not become smaller are stored as they are.
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
            # ORC's zlib is raw deflate, without the header and the checksum.
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
    try:
        size = _lz4_size(chunk)
        if size > block:
            raise IndexError
        return bytes(pa.Codec("lz4_raw").decompress(chunk, size, asbytes=True))
    except (IndexError, OSError):
        raise ValueError("the ORC footer does not decompress (LZ4)") from None


def _lz4_size(chunk: bytes) -> int:
    """Return how long an LZ4 block becomes: it does not say, and Arrow's codec has to know."""
    size = at = 0
    while at < len(chunk):
        token = chunk[at]
        length, at = _lz4_length(chunk, at + 1, token >> 4)
        size, at = size + length, at + length
        # The last sequence has literals only.
        if at >= len(chunk):
            break
        # Two bytes say how far back the match is.
        length, at = _lz4_length(chunk, at + 2, token & 15)
        # LZ4 stores lengths of matches less four, the shortest that it has.
        size += length + 4
    return size


def _lz4_length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    more = 255 if length == 15 else 0
    while more == 255:
        more, at = chunk[at], at + 1
        length += more
    return length, at
