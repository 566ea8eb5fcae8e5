"""Where the stripes of an ORC file lie: the part of its tail that Arrow does not hand out.

Follows the ORC v1 specification, "File Tail": a postscript that is never compressed, before it the
footer. Only what is needed of both is parsed. Data is decoded by Arrow, not here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

_MAGIC = b"ORC"
_MAX_FOOTER = 256 * 1024 * 1024
_UNKNOWN_HERE = (3, 6)
"""LZO and Brotli."""


@dataclass(frozen=True, slots=True)
class Stripe:
    """Where one stripe begins and how many rows it has."""

    offset: int
    rows: int


def stripes(source: pa.NativeFile) -> list[Stripe] | None:
    """The stripes of the file, as its footer lists them; None if LZO or Brotli hides it.

    Raises:
        ValueError: the tail is not that of an ORC file.
    """
    size = source.size()
    source.seek(max(0, size - 256))
    end = source.read()
    length = end[-1] if end else 0
    postscript = end[-1 - length : -1]
    if len(end) <= length or _MAGIC not in postscript:
        reason = "no ORC postscript at the end"
        raise ValueError(reason)
    fields = dict(_fields(postscript))
    footer_length = _number(fields.get(1))
    start = size - 1 - length - footer_length
    if not 0 <= start < size or footer_length > _MAX_FOOTER:
        reason = f"a footer of {footer_length} bytes in a file of {size}"
        raise ValueError(reason)
    codec = _number(fields.get(2))
    if codec in _UNKNOWN_HERE:
        return None
    source.seek(start)
    footer = _expand(source.read(footer_length), codec, _number(fields.get(3, 256 * 1024)))
    parsed = list(_fields(footer))
    found = [_stripe(value) for number, value in parsed if number == 3]
    totals = dict(parsed)
    if not found and _number(totals.get(2)) > _number(totals.get(1)):
        reason = "a footer without stripes, before which there is content"
        raise ValueError(reason)
    return found


def _stripe(value: int | bytes) -> Stripe:
    if isinstance(value, int):
        reason = "a stripe that is a number"
        raise ValueError(reason)
    fields = dict(_fields(value))
    return Stripe(_number(fields.get(1)), _number(fields.get(5)))


def _number(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a Protocol Buffers message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            reason = f"wire type {kind} in the ORC footer"
            raise ValueError(reason)
        if at + length > len(data):
            reason = "the ORC footer ends within a field"
            raise ValueError(reason)
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    reason = "a number in the ORC footer does not end"
    raise ValueError(reason)


def _expand(data: bytes, codec: int, block: int) -> bytes:
    """Undo ORC's chunked compression: three bytes of length and a mark for stored chunks."""
    if codec == 0:
        return data
    parts = []
    at = 0
    while at + 3 <= len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (header >> 1)]
        at += 3 + (header >> 1)
        parts.append(chunk if header & 1 else _decompress(chunk, codec, block))
    return b"".join(parts)


def _decompress(chunk: bytes, codec: int, block: int) -> bytes:
    if codec == 1:
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, block)
        except zlib.error as err:
            reason = f"the ORC footer does not decompress ({err})"
            raise ValueError(reason) from err
    if codec == 2:
        size, _ = _varint(chunk, 0)
        return _whole(pa.Codec("snappy").decompress(chunk, min(size, block)))
    if codec == 4:
        return _whole(pa.Codec("lz4_raw").decompress(chunk, block))
    if codec == 5:
        with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
            return _whole(stream.read(block))
    reason = f"ORC compression kind {codec}"
    raise ValueError(reason)


def _whole(data: pa.Buffer | bytes) -> bytes:
    return data if isinstance(data, bytes) else bytes(data.to_pybytes())
