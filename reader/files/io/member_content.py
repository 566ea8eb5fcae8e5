"""The content of one member of an archive, and the errors that name it."""

from __future__ import annotations

import io
import lzma
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, cast

from typing_extensions import override

from ....errors import WITHOUT_THE_FILE, MalformedDataError, SluiceError, first_line
from ..options import Compression, ReaderOptions
from ..options.values import LINE_FORMATS
from .codecs import codec_of
from .source_file import AsFile, RandomAccess

STEP = 256 * 1024


def content_in_order(
    stream: IO[bytes], path: str, size: int, options: ReaderOptions, stack: ExitStack
) -> RandomAccess:
    """The content of a member that comes in order; on disk if its format reads it in another."""
    in_order = options.file_format in LINE_FORMATS and not (options.multi_line or options.wholetext)
    if in_order and codec_of(path, options.compression) is Compression.NONE:
        return _ForwardOnly(stream, path, size)
    copy = tempfile.SpooledTemporaryFile(STEP, prefix="sluice-member-")  # noqa: SIM115
    stack.enter_context(copy)
    shutil.copyfileobj(stream, copy, STEP)
    return _Seekable(cast("IO[bytes]", copy), path, size)


def in_memory(data: bytes, path: str) -> RandomAccess:
    """The content of a small member that was read."""
    return _Seekable(io.BytesIO(data), path, len(data))


class _Seekable:
    """A member that can be read anywhere."""

    def __init__(self, stream: IO[bytes], path: str, size: int) -> None:
        self._stream, self._path, self._size = stream, path, size
        self._head, self._position = b"", 0

    def read_at(self, position: int, count: int) -> bytes:
        with naming(self._path):
            return self._read(position, min(count, self._size - position))

    def _read(self, position: int, count: int) -> bytes:
        self._stream.seek(position)
        return _exactly(self._stream, count)

    def close(self) -> None:
        self._stream.close()


class Window(_Seekable):
    """A member whose content is in the archive as it is, from the byte `start` on."""

    def __init__(self, archive: RandomAccess, start: int, path: str, size: int) -> None:
        super().__init__(cast("IO[bytes]", AsFile(archive, start + size)), path, size)
        self._start = start

    @override
    def _read(self, position: int, count: int) -> bytes:
        return super()._read(self._start + position, count)


class _ForwardOnly(_Seekable):
    """A member that is read from its beginning on. Its first bytes can be read again."""

    @override
    def _read(self, position: int, count: int) -> bytes:
        if not self._position:
            self._head = self._next(min(STEP, self._size))
        data = self._head[position : position + count]
        if len(data) >= count:
            return data
        position += len(data)
        if position < self._position:
            raise EOFError(f"its first record begins behind its first {STEP:,} bytes")
        while position > self._position:
            self._next(min(STEP, position - self._position))
        return data + self._next(count - len(data))

    def _next(self, count: int) -> bytes:
        data = _exactly(self._stream, count)
        self._position += len(data)
        return data


def _exactly(stream: IO[bytes], count: int) -> bytes:
    parts, left = list[bytes](), max(0, count)
    while left:
        data = stream.read(left)
        if not data:
            raise EOFError(f"it ends {left} bytes early")
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def unreadable(path: str, found: str, remedy: str) -> MalformedDataError:
    """Return the error for a member, or an archive, that cannot be read."""
    return MalformedDataError(
        "the archive cannot be read",
        path,
        found,
        "a whole zip, tar or 7z archive, with members that are stored, deflated, bzip2 or LZMA",
        f"{remedy}. ignoreCorruptFiles skips what is left of it and counts it. {WITHOUT_THE_FILE}",
    )


_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError)
# `RuntimeError` comes for encryption without a flag and for methods that are not known.
_FAULTS = (*_DAMAGE, OSError, ValueError, OverflowError, MemoryError, RuntimeError)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Raise what goes wrong inside as the error of this archive or member."""
    try:
        yield
    except SluiceError:
        raise
    except _FAULTS as err:
        raise unreadable(path, first_line(err), "Replace it with a complete one") from err
