"""Reads the members of a 7z archive in the order in which they are stored.

py7zr reads the directory. Members share blocks, each of which is decompressed from its beginning:
a decoder gets 16 KiB at a time, and no more while it has content left, so that memory is bounded.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import IO, TYPE_CHECKING, cast

from typing_extensions import override

from ....errors import not_installed
from .member_content import STEP, unreadable
from .source_file import AsFile, RandomAccess

if TYPE_CHECKING:
    from py7zr.archiveinfo import Folder
    from py7zr.py7zr import ArchiveFile

_MAX_DIRECTORY = 4 * 1024 * 1024
"""Bytes of the directory at most: py7zr needs up to 200 times as much memory for it."""

_MAX_DICTIONARY = 256 * 1024 * 1024
"""Bytes that LZMA looks back at most; 7-Zip takes 64 MiB for its best compression."""

_PIECE = 16 * 1024
_BEGIN = 32
"""Bytes of the header before the first block."""

_AES, _LZMA, _LZMA2 = b"\x06\xf1\x07\x01", b"\x03\x01\x01", b"\x21"
_METHODS = {b"\x00", b"\x03", b"\x03\x03\x01\x03", b"\x04\x01\x08", b"\x04\x02\x02", _LZMA, _LZMA2}
"""Stored, the filters Delta and BCJ, deflate, bzip2 and LZMA: what decodes in bounded steps."""


class SevenZip:
    """An open archive, of which one member is read at a time."""

    def __init__(self, source: RandomAccess, size: int, path: str) -> None:
        """Read the directory.

        Raises:
            OptionError: py7zr is not installed.
            MalformedDataError: the names of the members are encrypted.
            ValueError: the directory is damaged or too large.
        """
        try:
            from py7zr import SevenZipFile
            from py7zr.exceptions import ArchiveError, PasswordRequired
        except ImportError as err:
            raise not_installed("a 7z archive cannot be read", path, "py7zr", "7z") from err
        file = AsFile(source, size)
        try:
            _check_directory(file)
            file.seek(0)
            archive = SevenZipFile(cast("IO[bytes]", file))
        except PasswordRequired as err:
            raise unreadable(path, "it is encrypted", "Unpack it with its password") from err
        # What py7zr raises for a directory that it did not expect, next to its own errors.
        except (ArchiveError, AssertionError, AttributeError, LookupError, TypeError) as err:
            raise ValueError(f"a damaged directory: {err}") from err
        self._source, self._path = source, path
        self._block: _Block | None = None
        self._stored = dict[int, tuple[int, int]]()
        if streams := archive.header.main_streams:
            packed, at = streams.packinfo, 0
            for folder in streams.unpackinfo.folders:
                start = _BEGIN + packed.packpos + packed.packpositions[at]
                self._stored[id(folder)] = start, packed.packsizes[at]
                at += len(folder.packed_indices)
        self.entries = list(archive.files)
        self._begins, lengths = list[int](), dict[int, int]()
        for entry in self.entries:
            begin = lengths.get(id(entry.folder), 0)
            self._begins.append(begin)
            lengths[id(entry.folder)] = begin + entry.uncompressed
            if entry.uncompressed < 0:
                raise ValueError("a damaged directory: a member with a negative size")

    @property
    def position(self) -> int:
        """Stored bytes up to the end of what was read."""
        return 0 if self._block is None else self._block.position

    def open(self, entry: ArchiveFile) -> io.IOBase:
        """Return the content of a member, to be read in order before the next one is opened."""
        if not entry.uncompressed:
            return io.BytesIO()
        begin, block = self._begins[entry.id], self._block
        if block is None or block.folder is not entry.folder or block.content > begin:
            _check_methods(entry.folder, f"{self._path}!/{entry.filename}")
            start, size = self._stored[id(entry.folder)]
            block = self._block = _Block(entry.folder, self._source, start, size)
        while block.content < begin:
            block.read_content(begin - block.content)
        return _Content(block, entry)


class _Block:
    """The content of a block, in order."""

    def __init__(self, folder: Folder, source: RandomAccess, start: int, size: int) -> None:
        self.folder, self.position, self.content = folder, start, 0
        """The position in the file, and how much content was read."""
        self._source, self._is_full = source, False
        self._decoder = folder.get_decompressor(size, reset=True)

    def read(self, count: int) -> bytes:
        """Return stored bytes for the decoder; none while it has content left, as it keeps them."""
        count = 0 if self._is_full else min(count, _PIECE)
        data = self._source.read_at(self.position, count)
        self.position += len(data)
        return data

    def read_content(self, count: int) -> bytes:
        """Return at least one byte, and at most `count`.

        Raises:
            EOFError: the stored bytes end before.
        """
        count, data = min(count, STEP), b""
        while not data:
            before, was_full = self.position, self._is_full
            data = bytes(self._decoder.decompress(self, count))
            self._is_full = len(data) == count
            if not (data or was_full) and self.position == before:
                raise EOFError("the block ends early")
        self.content += len(data)
        return data


class _Content(io.RawIOBase):
    """The content of one member, with its checksum."""

    def __init__(self, block: _Block, entry: ArchiveFile) -> None:
        self._block, self._left = block, entry.uncompressed
        self._checksum, self._expected = 0, entry.crc32

    @override
    def read(self, size: int | None = -1) -> bytes:
        count = self._left if size is None or size < 0 else min(size, self._left)
        data = self._block.read_content(count) if count else b""
        self._left -= len(data)
        self._checksum = zlib.crc32(data, self._checksum)
        if not self._left and self._expected not in (None, self._checksum):
            raise ValueError("a wrong checksum")
        return data


def _check_directory(file: AsFile) -> None:
    """Refuse a large directory before py7zr decompresses it."""
    from py7zr.archiveinfo import HeaderStreamsInfo

    begin, size = struct.unpack("<QQ", file.read(_BEGIN)[12:28])
    sizes = [size]
    if size <= _MAX_DIRECTORY:
        file.seek(_BEGIN + begin)
        directory = io.BytesIO(file.read(size))
        if directory.read(1) == b"\x17":
            blocks = HeaderStreamsInfo.retrieve(directory).unpackinfo.folders
            sizes = [length for block in blocks for length in block.unpacksizes]
    if sum(sizes) > _MAX_DIRECTORY:
        raise ValueError(
            f"a directory of {sum(sizes):,} bytes; at most {_MAX_DIRECTORY:,} are read"
        )


def _check_methods(folder: Folder, path: str) -> None:
    coders = {coder["method"]: coder["properties"] or bytes(5) for coder in folder.coders}
    if _AES in coders:
        raise unreadable(path, "it is encrypted", "Unpack it with its password")
    power = coders.get(_LZMA2, b"\0")[0]
    dictionary = (2 | power & 1) << (power // 2 + 11)
    if _LZMA in coders:
        dictionary = int.from_bytes(coders[_LZMA][1:5], "little")
    if dictionary > _MAX_DICTIONARY:
        reason = f"a dictionary of {dictionary:,} bytes; at most {_MAX_DICTIONARY:,} are read"
    elif coders.keys() - _METHODS:
        reason = "another method of compression"
    else:
        return
    raise unreadable(path, reason, "Unpack it and pack it again as .zip or .tar.gz")
