"""The members of zip and tar archives, each as a file of its own.

A member of a zip archive belongs to the split in which its local header begins, so a zip file is
cut at any byte without being opened. A tar archive is read from its beginning.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, cast

from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ....checkpoint_meta.storage.name_globs import glob_pattern
from ....errors import MalformedDataError, SluiceError
from ..options import Compression, FileFormatName, ReaderOptions
from ..options.values import is_built_in
from .codecs import StoredFile, Stream, codec_of
from .source_file import AsFile, MemberFile, RandomAccess, SourceFile

MAX_MEMBERS = 100_000
"""Members of a zip archive at most: its directory, which is held in memory, names them all."""

MAX_ENTRIES = 4_000_000
"""Entries of a tar archive at most, which are numbered."""

MAX_RATIO = 1000
"""Content at most, as a multiple of the stored bytes: of a deflated file that is possible."""

_SMALL = 100 * 1024 * 1024
"""Content that is read at any ratio."""

_MAX_DIRECTORY = 16 * 1024 * 1024
_TAIL = 22 + 65_535
"""The record at the end of a zip archive, and the longest comment behind it."""

_STEP = 256 * 1024
_TAR_SUFFIXES = (".tar", ".tgz")
_LINES = tuple(map(FileFormatName, ("json", "csv", "text")))


def reads_members(path: str, options: ReaderOptions) -> bool:
    """Return whether the file at `path` is an archive whose members are read, by its suffix.

    A format of the user's own, and binaryFile, get the file as it is.
    """
    is_archive = is_zip(path) or _tar_codec(path) is not None
    name = options.file_format
    return is_archive and is_built_in(name) and name != FileFormatName.BINARY_FILE


def is_zip(path: str) -> bool:
    """Return whether the name says that it is a zip archive, which may be cut at any byte."""
    return path[-4:].lower() == ".zip"


def _tar_codec(path: str) -> Compression | None:
    """The codec around a tar archive; None if the name is not that of one."""
    name = path[-12:].lower()
    if name.endswith(_TAR_SUFFIXES):
        return Compression.GZIP if name.endswith(".tgz") else Compression.NONE
    codec, (inner, _, _) = codec_of(name, Compression.AUTO), name.rpartition(".")
    return codec if codec is not Compression.NONE and inner.endswith(".tar") else None


@dataclass(frozen=True, slots=True)
class Member:
    """One member that is open, until the next one is."""

    name: str
    ordinal: int
    """The number among all entries of the archive that belong to the split."""

    file: MemberFile
    read_bytes: Callable[[int], int]
    """Stored bytes of the split that are read with so much of the member's content."""


def members(split: FileSplit, options: ReaderOptions, first: int = 0) -> Iterator[Member]:
    """Open the members that belong to `split` in their order, from the one numbered `first` on.

    Directories, links, names that `archivePathFilter` does not match, and names of which a part
    begins with `_` or `.` are left out.

    Raises:
        SplitReadError: the archive is damaged, encrypted or a bomb, or it cannot be opened.
    """
    with SourceFile(split.file, options.storage_options).opened() as source:
        if is_zip(split.file.path):
            yield from _of_zip(split, source, options, first)
        else:
            yield from _of_tar(split, source, options, first)


def _of_zip(
    split: FileSplit, source: RandomAccess, options: ReaderOptions, first: int
) -> Iterator[Member]:
    file, is_selected = split.file, _selection(options)
    with _naming(file.path):
        # One request brings the directory of most archives.
        tail = source.read_at(max(0, file.size - _TAIL), _TAIL)
        archive = zipfile.ZipFile(_Directory(source, file.size))
        entries = archive.infolist()
        if any(not 0 <= entry.header_offset < file.size for entry in entries):
            raise zipfile.BadZipFile("a member begins outside of the file")
        # The record at the end says how many there are, in 16 bits; `zipfile` does not compare it.
        at = tail.rfind(b"PK\5\6") + 10
        if int.from_bytes(tail[at : at + 2], "little") not in (0xFFFF, len(entries) & 0xFFFF):
            raise zipfile.BadZipFile(f"{len(entries)} members, which is not how many it says")
    if len(entries) > MAX_MEMBERS:
        raise _bomb(file.path, f"{len(entries):,} members", f"at most {MAX_MEMBERS:,}")
    _refuse_ratio(file, sum(entry.file_size for entry in entries))
    own = [entry for entry in entries if split.start <= entry.header_offset < split.end]
    for ordinal, entry in enumerate(sorted(own, key=lambda entry: entry.header_offset)):
        mode = stat.S_IFMT(entry.external_attr >> 16)
        is_file = not entry.filename.endswith("/") and mode in (0, stat.S_IFREG)
        if ordinal < first or not is_file or not is_selected(entry.filename):
            continue
        with ExitStack() as stack:
            path = f"{file.path}!/{entry.filename}"
            if entry.flag_bits & 1:
                raise _unreadable(path, "it is encrypted", "Unpack it with its password")
            with _naming(path):
                if entry.CRC and not entry.file_size:
                    raise zipfile.BadZipFile("a size of 0, and a checksum of some content")
                stream = stack.enter_context(archive.open(entry))
                content = _content(stream, path, entry.file_size, options, stack)
            member = MemberFile.of(file, path, entry.file_size, content)
            begin = entry.header_offset - split.start
            share = entry.compress_size / max(1, entry.file_size)
            yield Member(entry.filename, ordinal, member, partial(_share, begin, share))


def _share(begin: int, share: float, content: int) -> int:
    return begin + int(share * content)


def _of_tar(
    split: FileSplit, source: RandomAccess, options: ReaderOptions, first: int
) -> Iterator[Member]:
    file, is_selected = split.file, _selection(options)
    codec = _tar_codec(file.path) or Compression.NONE
    with StoredFile(file, source, codec).stream() as stream:
        with _naming(file.path):
            archive = _open_tar(file, source, stream, codec)
        ordinal = -1
        while True:
            with _naming(file.path):
                entry = archive.next()
                # It would keep all entries otherwise; `members` is not in its stub.
                vars(archive)["members"].clear()
            if entry is None:
                if codec is not Compression.NONE:
                    _read_checksum(stream)
                return
            ordinal += 1
            if ordinal >= MAX_ENTRIES:
                raise _bomb(file.path, "more members", f"at most {MAX_ENTRIES:,}")
            _refuse_ratio(file, entry.offset_data + entry.size)
            if ordinal < first or not entry.isreg() or not is_selected(entry.name):
                continue
            path = f"{file.path}!/{entry.name}"
            if entry.issparse():
                raise _unreadable(path, "it is a sparse file", "Pack it without --sparse")
            with ExitStack() as stack:
                with _naming(path):
                    data = archive.extractfile(entry)
                    assert data is not None
                    stack.enter_context(data)
                    if codec is Compression.NONE:
                        content: RandomAccess = _Seekable(data, path, entry.size)
                    else:
                        content = _content(data, path, entry.size, options, stack)
                member = MemberFile.of(file, path, entry.size, content)
                begin = entry.offset_data
                read = partial(_share, begin, 1) if codec is Compression.NONE else _position(stream)
                yield Member(entry.name, ordinal, member, read)


def _read_checksum(stream: Stream) -> None:
    """Read to the end of a codec, where its checksum is."""
    try:
        while stream.read(_STEP):
            pass
    except MalformedDataError as err:
        # The end mark of the archive says that all members are whole, which is what tar checks.
        if not isinstance(err.__cause__, EOFError):
            raise


def _position(stream: Stream) -> Callable[[int], int]:
    return lambda _: stream.position


def _open_tar(
    file: FileVersion, source: RandomAccess, stream: Stream, codec: Compression
) -> tarfile.TarFile:
    if codec is Compression.NONE:
        return tarfile.open(fileobj=AsFile(source, file.size), mode="r:", tarinfo=_Header)
    in_order = cast("IO[bytes]", stream)
    return tarfile.open(fileobj=in_order, mode="r|", bufsize=_STEP // 4, tarinfo=_Header)


class _Header(tarfile.TarInfo):
    """A header of which none is damaged: `tarfile` takes one behind the first for the end."""

    @classmethod
    @override
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as err:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            problem = str(err) if buf else "it ends without its end mark"
            raise tarfile.ReadError(problem) from err


class _Directory(AsFile):
    """The file of a zip archive, of which no more is read at once than a directory may have."""

    @override
    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > _MAX_DIRECTORY:
            raise zipfile.BadZipFile(
                f"a directory of {size:,} bytes; at most {_MAX_DIRECTORY:,} are read"
            )
        return super().read(size)


def _content(
    stream: IO[bytes], path: str, size: int, options: ReaderOptions, stack: ExitStack
) -> RandomAccess:
    """The content of a member that comes in order; on disk if its format reads it in another."""
    in_order = options.file_format in _LINES and not (options.multi_line or options.wholetext)
    if in_order and codec_of(path, options.compression) is Compression.NONE:
        return _InOrder(stream, path, size)
    copy = tempfile.SpooledTemporaryFile(_STEP, prefix="sluice-member-")  # noqa: SIM115
    stack.enter_context(copy)
    shutil.copyfileobj(stream, copy, _STEP)
    return _Seekable(copy, path, size)


class _Seekable:
    """A member that can be read anywhere."""

    def __init__(self, stream: IO[bytes], path: str, size: int) -> None:
        self._stream, self._path, self._size = stream, path, size
        self._head, self._position = b"", 0

    def read_at(self, position: int, count: int) -> bytes:
        with _naming(self._path):
            return self._read(position, min(count, self._size - position))

    def _read(self, position: int, count: int) -> bytes:
        self._stream.seek(position)
        return _exactly(self._stream, count)

    def close(self) -> None:
        self._stream.close()


class _InOrder(_Seekable):
    """A member that is read from its beginning on. Its first bytes can be read again."""

    @override
    def _read(self, position: int, count: int) -> bytes:
        if not self._position:
            self._head = self._next(min(_STEP, self._size))
        data = self._head[position : position + count]
        if len(data) >= count:
            return data
        position += len(data)
        if position < self._position:
            raise EOFError(f"its first record begins behind its first {_STEP:,} bytes")
        while position > self._position:
            self._next(min(_STEP, position - self._position))
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


def _selection(options: ReaderOptions) -> Callable[[str], bool]:
    glob = options.archive_path_filter
    pattern = None if glob is None else glob_pattern(glob)

    def is_selected(name: str) -> bool:
        parts = (part for part in name.split("/") if part not in ("", ".", ".."))
        is_hidden = any(part.startswith(("_", ".")) for part in parts)
        return not is_hidden and (pattern is None or bool(pattern.fullmatch(name)))

    return is_selected


def _refuse_ratio(file: FileVersion, content: int) -> None:
    if content > max(_SMALL, MAX_RATIO * file.size):
        sizes = f"{content:,} bytes of content in {file.size:,} stored bytes"
        raise _bomb(file.path, sizes, f"at most {MAX_RATIO:,} times as many")


def _bomb(path: str, found: str, expected: str) -> MalformedDataError:
    return MalformedDataError(
        "the archive holds more than is read",
        path,
        found,
        expected,
        "If it is no bomb, unpack it or divide it. ignoreCorruptFiles skips and counts it.",
    )


def _unreadable(path: str, found: str, remedy: str) -> MalformedDataError:
    return MalformedDataError(
        "the archive cannot be read",
        path,
        found,
        "a whole zip or tar archive, with members that are stored, deflated, bzip2 or LZMA",
        f"{remedy}, or leave it out with pathGlobFilter. ignoreCorruptFiles skips what is left of "
        "it and counts it.",
    )


_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError)
# `RuntimeError` comes for encryption without a flag and for methods that are not known.
_FAULTS = (*_DAMAGE, OSError, ValueError, OverflowError, MemoryError, RuntimeError)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except SluiceError:
        raise
    except _FAULTS as err:
        text = str(err).splitlines()[0] if str(err) else type(err).__name__
        raise _unreadable(path, text, "Replace it with a complete one") from err
