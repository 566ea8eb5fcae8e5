"""Decompression: which codec a file has, and its content as a stream.

Hadoop's own framing of snappy and LZ4, which Spark writes, is understood besides the standard
ones. Not here: codecs inside block formats such as Parquet.
"""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
from isal import isal_zlib

from ...checkpoint_meta.splits import FileVersion
from ...errors import MalformedDataError
from .opening import RandomAccess
from .options import Compression

__all__ = ["codec_of", "decompressed"]

_SUFFIXES = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".bz2": Compression.BZIP2,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
    ".xz": Compression.XZ,
    ".lz4": Compression.LZ4,
    ".snappy": Compression.SNAPPY,
    ".deflate": Compression.DEFLATE,
}
_CHUNK = 256 * 1024
_LZ4_FRAME = b"\x04\x22\x4d\x18"
_SNAPPY_FRAME = b"\xff\x06\x00\x00sNaPpY"
_MAX_BLOCK = 1 << 30


def codec_of(path: str, option: Compression) -> Compression:
    """The codec of the file at `path`: by option, else by suffix."""
    if option is not Compression.AUTO:
        return option
    return _SUFFIXES.get(path[path.rfind(".") :].lower(), Compression.NONE)


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none only at the end."""


@contextmanager
def decompressed(file: FileVersion, source: RandomAccess, codec: Compression) -> Iterator[Readable]:
    """The content of `source` as a stream; broken data raises `MalformedDataError`."""
    raw = _Raw(source)
    try:
        head = raw.peek(10)
        yield _Checked(_open(codec, raw, head), file, raw, codec)
    except _FAULTS as err:
        raise _broken(file, raw.position, codec, err) from err


def _open(codec: Compression, raw: _Raw, head: bytes) -> Any:
    if not head:
        # Hadoop's empty compressed files have no bytes at all; so have ours.
        return io.BytesIO()
    if codec is Compression.GZIP:
        return _Members(raw, lambda: isal_zlib.decompressobj(31))
    if codec is Compression.DEFLATE:
        return _Members(raw, zlib.decompressobj)
    if codec is Compression.BZIP2:
        return _Members(raw, bz2.BZ2Decompressor)
    if codec is Compression.XZ:
        return _Members(raw, lzma.LZMADecompressor)
    if codec is Compression.ZSTD:
        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    if codec is Compression.LZ4 and head.startswith(_LZ4_FRAME):
        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "lz4")
    if codec is Compression.LZ4:
        return _Chunked(_hadoop_blocks(raw, "lz4_raw"))
    if head.startswith(_SNAPPY_FRAME):
        return _Chunked(_snappy_frames(raw))
    return _Chunked(_hadoop_blocks(raw, "snappy"))


class _Raw(io.RawIOBase):
    """The stored bytes in order."""

    def __init__(self, source: RandomAccess) -> None:
        super().__init__()
        self._source = source
        self.position = 0

    def readable(self) -> bool:
        return True

    def peek(self, count: int) -> bytes:
        return self._source.read_at(0, count)

    def read(self, count: int = -1) -> bytes:
        data = self._source.read_at(self.position, _CHUNK if count < 0 else count)
        self.position += len(data)
        return data

    def exactly(self, count: int) -> bytes:
        data = self.read(count)
        if len(data) < count:
            raise EOFError("the data ends in the middle of a block")
        return data


class _Members:
    """One or several compressed streams in a row, as gzip, bzip2 and xz allow."""

    def __init__(self, raw: _Raw, start: Any) -> None:
        self._raw = raw
        self._start = start
        self._decoder: Any = None
        self._rest = b""

    def read(self, count: int) -> bytes:
        while True:
            if self._decoder is not None and self._decoder.eof:
                # Zero padding after the last member is allowed by gzip and xz.
                self._rest = self._decoder.unused_data.lstrip(b"\0")
                self._decoder = None
            data = self._rest or self._raw.read(_CHUNK)
            if not data:
                return self._at_end(count)
            if self._decoder is None:
                data = data.lstrip(b"\0")
                if not data:
                    self._rest = b""
                    continue
                self._decoder = self._start()
            out = self._decode(data, count)
            if out:
                return out

    def _decode(self, data: bytes, count: int) -> bytes:
        decoder = self._decoder
        out: bytes = decoder.decompress(data, count)
        # zlib hands back what it did not take; the others keep it and ask for nothing meanwhile.
        self._rest = getattr(decoder, "unconsumed_tail", b"")
        while not out and not decoder.eof and not getattr(decoder, "needs_input", True):
            out = decoder.decompress(b"", count)
        return out

    def _at_end(self, count: int) -> bytes:
        if self._decoder is None:
            return b""
        if not getattr(self._decoder, "needs_input", True):
            out: bytes = self._decoder.decompress(b"", count)
            return out
        raise EOFError("the compressed data ends before its end mark")


class _Chunked:
    """Decoded blocks handed out in the sizes asked for."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def read(self, count: int) -> bytes:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._rest = block
        out, self._rest = self._rest[:count], self._rest[count:]
        return out


def _hadoop_blocks(raw: _Raw, codec: str) -> Iterator[bytes]:
    """Big-endian length of a block, then parts of it, each with its compressed length."""
    decoder = pa.Codec(codec)
    while head := raw.read(4):
        if len(head) < 4:
            raise EOFError("the data ends in the middle of a block")
        left = struct.unpack(">I", head)[0]
        while left:
            compressed = raw.exactly(struct.unpack(">I", raw.exactly(4))[0])
            size = _snappy_length(compressed) if codec == "snappy" else left
            if not 0 < size <= min(left, _MAX_BLOCK):
                raise ValueError(f"a block claims {size} bytes where {left} are left")
            yield decoder.decompress(compressed, size, asbytes=True)
            left -= size


def _snappy_frames(raw: _Raw) -> Iterator[bytes]:
    decoder = pa.Codec("snappy")
    while head := raw.read(4):
        if len(head) < 4:
            raise EOFError("the data ends in the middle of a frame")
        kind, body = head[0], raw.exactly(int.from_bytes(head[1:], "little"))
        if kind == 0:
            yield decoder.decompress(body[4:], _snappy_length(body[4:]), asbytes=True)
        elif kind == 1:
            yield body[4:]
        elif kind < 0x80:
            raise ValueError(f"frame of the unknown kind {kind}")


def _snappy_length(data: bytes) -> int:
    """The length that stands as a varint before every snappy block."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            if size > _MAX_BLOCK:
                raise ValueError(f"a block claims {size} bytes")
            return size
        shift += 7
    raise ValueError("a block without a length")


_GZIP_FAULT: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # its stub names no class
_FAULTS = (
    _GZIP_FAULT, zlib.error, lzma.LZMAError, EOFError, ValueError, pa.ArrowException, OSError,
)  # fmt: skip


class _Checked:
    def __init__(self, inner: Any, file: FileVersion, raw: _Raw, codec: Compression) -> None:
        self._inner, self._file, self._raw, self._codec = inner, file, raw, codec

    def read(self, count: int) -> bytes:
        try:
            data: bytes = self._inner.read(count)
        except _FAULTS as err:
            raise _broken(self._file, self._raw.position, self._codec, err) from err
        return data


def _broken(file: FileVersion, position: int, codec: str, err: Exception) -> MalformedDataError:
    return MalformedDataError(
        f"compressed file cannot be decompressed as {codec}",
        f"{file.path}, before byte {position} of {file.size}",
        str(err).splitlines()[0] if str(err) else type(err).__name__,
        f"whole {codec} data",
        "Replace the file, name its codec with the compression option, "
        "or set ignoreCorruptFiles to skip and count it.",
    )
