"""ORC's chunked compression, for the small messages that describe a file.

Data is decompressed by Arrow, not here.
"""

from __future__ import annotations

import zlib

import pyarrow as pa

from .protobuf import varint

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
            reason = f"the ORC footer does not decompress ({err})"
            raise ValueError(reason) from err
    if codec == SNAPPY:
        size, _ = varint(chunk, 0)
        return bytes(pa.Codec("snappy").decompress(chunk, min(size, block), asbytes=True))
    if codec == LZ4:
        return _lz4(chunk, block)
    if codec == ZSTD:
        with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
            return bytes(stream.read(block))
    reason = f"ORC compression kind {codec}"
    raise ValueError(reason)


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
            _repeat(out, offset, length + 4)
            if len(out) > block:
                raise IndexError
    except IndexError:
        reason = "the ORC footer does not decompress (LZ4)"
        raise ValueError(reason) from None
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
