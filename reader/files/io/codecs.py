"""Decompression: which codec a file has, and its content as a stream.

Every decoder is asked for no more than the caller wants, and is given no more than that takes: what
is held is a window and a chunk, however much a file swells. Several members or frames in a row are
one content. Zeros behind a member of gzip, deflate, bzip2 and xz are padding; anything else behind
the last is an error, as is an end in the middle. Snappy and LZ4 are read in the standard framing
and in Hadoop's, which Spark writes.
"""

from __future__ import annotations

import bz2
import io
import lzma
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from isal import igzip_lib

from ....checkpoint_meta.files.file_split import FileVersion
from ....errors import MalformedDataError, first_line
from ..options import Compression
from ..options.values import CODEC_SUFFIXES
from .cut_places import AccessPoint
from .source_file import RandomAccess
from .varints import read_varint

_BGZIP_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_EMPTY_BLOCK, _EMPTY_BITS = 0b010, 10
_CHUNK = 256 * 1024
_PIECE = 1024 * 1024
_SNAPPY = pa.Codec("snappy")
_LZ4_FRAME = b"\x04\x22\x4d\x18"
_SNAPPY_FRAME = b"\xff\x06\x00\x00sNaPpY"
_MAX_BLOCK = 128 * 1024 * 1024
"""Largest block of snappy: the format decodes a block at once. Writers keep them at 256 KiB."""

_MAX_LZ4 = 4 * 1024 * 1024
"""Largest part of a block of Hadoop's LZ4, which is the largest that LZ4's own frames may have."""

_MAX_WINDOW = 128 * 1024 * 1024
"""Most memory that xz may take for its dictionary; `xz -9` takes 64 MiB."""


def codec_of(path: str, option: Compression) -> Compression:
    """The codec of the file at `path`: by option, else by suffix."""
    if option is not Compression.AUTO:
        return option
    return CODEC_SUFFIXES.get(path[path.rfind(".") :].lower(), Compression.NONE)


class Stream(Protocol):
    """The content of compressed bytes."""

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none only at the end."""

    @property
    def position(self) -> int:
        """Compressed bytes that the decoder has taken in; what it gave out may be behind."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One version of a file as it is stored: open, and with the codec of its content."""

    file: FileVersion
    source: RandomAccess
    codec: Compression

    @contextmanager
    def stream(self, start: int = 0, point: AccessPoint | None = None) -> Iterator[Stream]:
        """The content as a stream; broken data raises `MalformedDataError`.

        It begins with the stream or frame at byte `start`, or at a point of gzip.
        """
        begun = None
        if point is not None:
            # isal begins at whole bytes only, where blocks begin at any bit: empty blocks of ten
            # bits each are put before, so points are those at even bits.
            head = _head_of(point, self.source.read_at(point.start, 1)[0])
            start, begun = point.start + 1, (_FromAccessPoint(point), head)
        raw = _FileStream(self.source, start)
        if self.codec is Compression.NONE:
            yield raw
            return
        try:
            self._refuse_cut_bgzip()
            # The longest mark that is looked for, that of snappy's frames, has ten bytes.
            blocks = _blocks(self.codec, raw, self.source.read_at(start, 10), begun)
            yield _Content(blocks, raw, self.broken)
        except FAULTS as err:
            raise self.broken(raw.position, err) from err

    def _refuse_cut_bgzip(self) -> None:
        """Raise `EOFError` for a bgzip file without its last block, cut at a member's border."""
        head, size = self.source.read_at(0, 16), self.file.size
        if head[:4] == b"\x1f\x8b\x08\x04" and head[12:] == b"BC\2\0":
            # One that ends earlier for its reader is shorter here.
            end = self.source.read_at(size - len(_BGZIP_END), len(_BGZIP_END))
            if len(end) == len(_BGZIP_END) and end != _BGZIP_END:
                raise EOFError("the empty block that ends a bgzip file is missing")

    def pieces(self, start: int, end: int | None = None) -> Iterator[bytes]:
        """The content of the streams or frames between two bytes of the file."""
        source = self.source if end is None else _TruncatedFile(self.source, end)
        with replace(self, source=source).stream(start) as stream:
            while data := stream.read(_PIECE):
                yield data

    def broken(self, position: int, err: Exception) -> MalformedDataError:
        """The error for compressed bytes that do not decompress."""
        return MalformedDataError(
            f"compressed file cannot be decompressed as {self.codec}",
            f"{self.file.path}, before byte {position} of {self.file.size}",
            first_line(err),
            f"whole {self.codec} data",
            "Replace the file, or name its codec with the compression option. If it may still be "
            "written, set onSplitError to return, which reads it again later; ignoreCorruptFiles "
            "gives its rest up and counts it.",
        )


@dataclass(frozen=True)
class Content:
    """The content of a split, and what follows it; each is taken once, in this order."""

    own: Iterator[bytes]
    beyond: Iterator[bytes]
    position: int
    """Where it begins in the content of the whole file, or in that from `since` on."""

    since: int = 0
    """The byte of a compressed file before which there is content of unknown length."""

    stream: Stream | None = None
    """The stream that decompresses it, and says how far it is; None if nothing does."""

    is_stored: bool = False
    """True if it comes as it is stored."""

    before: int = 0
    """Where it begins, counted from the first byte of the split."""


class _TruncatedFile:
    """A file that ends earlier."""

    def __init__(self, source: RandomAccess, end: int) -> None:
        self._source, self._end = source, end

    def read_at(self, position: int, count: int) -> bytes:
        return self._source.read_at(position, max(0, min(count, self._end - position)))

    def close(self) -> None:
        self._source.close()


def _blocks(
    codec: Compression, raw: _FileStream, head: bytes, begun: tuple[_FromAccessPoint, bytes] | None
) -> Iterator[bytes]:
    if begun is not None:
        return _members(raw, _MEMBERS[codec], *begun)
    if not head:
        # Hadoop's empty compressed files have no bytes at all; so have ours.
        return iter(())
    if codec in _MEMBERS:
        return _members(raw, _MEMBERS[codec])
    is_frame = codec is Compression.LZ4 and head.startswith(_LZ4_FRAME)
    if is_frame or codec is Compression.ZSTD:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec.value)
        return iter(partial(stream.read, _CHUNK), b"")
    if codec is Compression.LZ4:
        return _hadoop_blocks(raw, _lz4_part)
    if head.startswith(_SNAPPY_FRAME):
        return _snappy_frames(raw)
    return _hadoop_blocks(raw, _snappy_part)


class _FileStream(io.RawIOBase):
    """The stored bytes in order."""

    def __init__(self, source: RandomAccess, start: int) -> None:
        super().__init__()
        self._source = source
        self.position = start

    def readable(self) -> bool:
        return True

    def read(self, count: int = -1) -> bytes:
        # Python's -1 asks for all that is left, which may be the whole file.
        data = self._source.read_at(self.position, _CHUNK if count < 0 else count)
        self.position += len(data)
        return data

    def exactly(self, count: int) -> bytes:
        data = self.read(count)
        if len(data) < count:
            raise EOFError("the data ends in the middle of a block")
        return data


_MEMBERS: dict[Compression, Callable[[], Any]] = {
    # Both check the sums of their formats; isal is three times as fast as zlib.
    Compression.GZIP: lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
    Compression.DEFLATE: lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_ZLIB),
    Compression.BZIP2: bz2.BZ2Decompressor,
    Compression.XZ: lambda: lzma.LZMADecompressor(memlimit=_MAX_WINDOW),
}


def _members(
    raw: _FileStream, start: Callable[[], Any], decoder: Any = None, rest: bytes = b""
) -> Iterator[bytes]:
    """One or several compressed streams in a row, through decoders of the standard library's kind.

    Such a decoder keeps what it was given and has not used. So it is given more only when it asks.
    """
    while True:
        if decoder is None:
            # Behind a member there may be padding.
            while not (rest := rest.lstrip(b"\0")):
                if not (rest := raw.read(_CHUNK)):
                    return
            decoder = start()
        data = b""
        if decoder.needs_input:
            data, rest = rest or raw.read(_CHUNK), b""
            if not data:
                raise EOFError("the compressed data ends before its end mark")
        content = decoder.decompress(data, _CHUNK)
        if decoder.eof:
            # The chunk that ended a member may hold the beginning of the next one, or padding.
            rest, decoder = decoder.unused_data, None
        if content:
            yield content


def _hadoop_blocks(raw: _FileStream, decode: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Big-endian length of a block, then its parts, each with its compressed length."""
    while head := raw.read(4):
        if len(head) < 4:
            raise EOFError("the data ends in the middle of a block")
        left = struct.unpack(">I", head)[0]
        while left:
            size = struct.unpack(">I", raw.exactly(4))[0]
            # What does not compress grows by a sixth in snappy; a larger claim is damage, and is
            # not read.
            if size > 2 * _MAX_BLOCK:
                raise ValueError(f"a block claims {size} compressed bytes")
            data = decode(raw.exactly(size))
            # A part without content would never bring the block to its end.
            if not 0 < len(data) <= left:
                raise ValueError(f"a part of {len(data)} bytes where {left} are left of its block")
            yield data
            left -= len(data)


def _snappy_part(compressed: bytes) -> bytes:
    data: bytes = _SNAPPY.decompress(compressed, _snappy_length(compressed), asbytes=True)
    return data


def _lz4_part(compressed: bytes) -> bytes:
    # Hadoop does not say how long a part is that shares its block with others, and Arrow's codec
    # for bare LZ4 has to know; within a frame of its own the part ends by itself.
    if len(compressed) > _MAX_LZ4:
        raise ValueError(f"a part of {len(compressed)} bytes; at most {_MAX_LZ4} are read")
    # Version 1 with independent blocks of up to 4 MiB, the checksum of that header, one block, the
    # end.
    frame = b"".join(
        (_LZ4_FRAME, b"\x60\x70\x73", struct.pack("<I", len(compressed)), compressed, bytes(4))
    )
    with pa.CompressedInputStream(pa.BufferReader(frame), "lz4") as stream:
        data: bytes = stream.read()
    return data


def _snappy_frames(raw: _FileStream) -> Iterator[bytes]:
    while head := raw.read(4):
        if len(head) < 4:
            raise EOFError("the data ends in the middle of a frame")
        kind, body = head[0], raw.exactly(int.from_bytes(head[1:], "little"))
        # The first four bytes are a checksum of the content (CRC-32C), which is not verified.
        if kind == 0:
            yield _snappy_part(body[4:])
        elif kind == 1:
            yield body[4:]
        # The format permits to skip all kinds from 0x80 on.
        elif kind < 0x80:
            raise ValueError(f"frame of the unknown kind {kind}")


def _snappy_length(data: bytes) -> int:
    """The length that is a varint before every snappy block."""
    try:
        size, _ = read_varint(data[:5], 0)
    except IndexError:
        raise ValueError("a block without a length") from None
    if size > _MAX_BLOCK:
        raise ValueError(f"a block claims {size} bytes")
    return size


class _FromAccessPoint:
    """A decoder that begins at a point, and takes the trailer behind the stream as its own."""

    def __init__(self, point: AccessPoint) -> None:
        self._inner: Any = igzip_lib.IgzipDecompressor(
            flag=igzip_lib.DECOMP_DEFLATE, zdict=point.window
        )
        self._trailer = b""
        self.eof = False
        self.unused_data = b""

    @property
    def needs_input(self) -> bool:
        """True if nothing can come without more bytes."""
        # At the end of the deflate data, the trailer still has to come.
        return bool(self._inner.eof or self._inner.needs_input)

    def decompress(self, data: bytes, count: int) -> bytes:
        """At most `count` bytes of content."""
        out: bytes = b""
        if not self._inner.eof:
            out = self._inner.decompress(data, count)
            if not self._inner.eof:
                return out
            data = self._inner.unused_data
        self._trailer += data
        # Checksum and length of the whole member, which one who enters in the middle cannot
        # compare.
        if len(self._trailer) >= 8:
            self.eof, self.unused_data = True, self._trailer[8:]
        return out


def _head_of(point: AccessPoint, first: int) -> bytes:
    """Return what a decoder is given instead of `first`, the byte in which the point lies."""
    blocks = point.bit // 2
    bits = sum(_EMPTY_BLOCK << (_EMPTY_BITS * i) for i in range(blocks))
    length = _EMPTY_BITS * blocks
    return (bits | (first >> point.bit) << length).to_bytes((length - point.bit) // 8 + 1, "little")


_GZIP_FAULT: type[Exception] = igzip_lib.error  # type: ignore[assignment]  # its stub names no class
# Damage comes as any of these: bz2 and Arrow raise plain OSErrors for it.
FAULTS = (_GZIP_FAULT, lzma.LZMAError, EOFError, ValueError, pa.ArrowException, OSError)


class _Content:
    """Decoded blocks in the sizes asked for; a decoder's faults become errors with the file."""

    def __init__(
        self,
        blocks: Iterator[bytes],
        raw: _FileStream,
        broken: Callable[[int, Exception], MalformedDataError],
    ) -> None:
        self._blocks, self._raw, self._broken = blocks, raw, broken
        self._block = memoryview(b"")

    @property
    def position(self) -> int:
        return self._raw.position

    def read(self, count: int) -> bytes:
        try:
            while not self._block:
                block = next(self._blocks, None)
                if block is None:
                    return b""
                self._block = memoryview(block)
        except FAULTS as err:
            raise self._broken(self._raw.position, err) from err
        out, self._block = bytes(self._block[:count]), self._block[count:]
        return out
