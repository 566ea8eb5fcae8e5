"""The members of zip, tar and 7z archives, each as a file of its own.

A member of a zip archive belongs to the split in which its local header begins, so a zip file is
cut at any byte without being opened. If the member is stored as it is, and its format may be cut,
it belongs to each split that it reaches into. Other archives are read by one reader, in order.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, TYPE_CHECKING, ClassVar, cast

from typing_extensions import override

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....checkpoint_meta.storage.written_values import glob_pattern
from ....errors import MalformedDataError
from ..options import Compression, FileFormatName, ReaderOptions
from ..options.values import is_built_in
from .codecs import StoredFile, Stream, codec_of
from .member_content import STEP, Window, content_in_order, in_memory, naming, unreadable
from .seven_zip import SevenZip
from .source_file import AsFile, MemberFile, RandomAccess, SourceFile

if TYPE_CHECKING:
    from py7zr.py7zr import ArchiveFile

MAX_MEMBERS = 100_000
"""Members of a zip or 7z archive at most: its directory, held in memory, names them all."""

MAX_ENTRIES = 4_000_000
"""Entries of a tar archive at most, which are numbered."""

MAX_RATIO = 1000
"""Content at most, as a multiple of the stored bytes: of a deflated file that is possible."""

_SMALL = 100 * 1024 * 1024
"""Content that is read at any ratio."""

_MAX_DIRECTORY = 16 * 1024 * 1024
_TAIL = 22 + 65_535
"""The record at the end of a zip archive, and the longest comment behind it."""

_TAR_SUFFIXES = {
    ".tar": Compression.NONE,
    ".tgz": Compression.GZIP,
    ".tbz": Compression.BZIP2,
    ".tbz2": Compression.BZIP2,
    ".txz": Compression.XZ,
    ".tzst": Compression.ZSTD,
}


def reads_members(path: str, options: ReaderOptions) -> bool:
    """Return whether the file at `path` is an archive whose members are read, by its suffix.

    A format of the user's own, and binaryFile, get the file as it is.
    """
    is_archive = is_zip(path) or _is_7z(path) or _tar_codec(path) is not None
    name = options.file_format
    return is_archive and is_built_in(name) and name != FileFormatName.BINARY_FILE


def is_zip(path: str) -> bool:
    """Return whether the name says that it is a zip archive, which may be cut at any byte."""
    return path[-4:].lower() == ".zip"


def _is_7z(path: str) -> bool:
    return path[-3:].lower() == ".7z"


def _tar_codec(path: str) -> Compression | None:
    """The codec around a tar archive; None if the name is not that of one."""
    name = path[-12:].lower()
    suffix = name[name.rfind(".") :]
    if suffix in _TAR_SUFFIXES:
        return _TAR_SUFFIXES[suffix]
    codec, (inner, _, _) = codec_of(name, Compression.AUTO), name.rpartition(".")
    return codec if codec is not Compression.NONE and inner.endswith(".tar") else None


@dataclass(frozen=True, slots=True)
class Member:
    """One member, which can be opened until the next one comes."""

    name: str
    ordinal: int
    """The number among all entries of the archive that belong to the split."""

    file: FileVersion
    part: tuple[int, int]
    """Bytes of its content that belong to the split if it is cut; else all belong to the first."""

    read_bytes: Callable[[int], int]
    """Stored bytes of the split that are read with so much of this content."""

    content: Callable[[ExitStack, bool], RandomAccess]
    """Opens the content; True if it is not read from its beginning to its end."""

    @contextmanager
    def opened(self, *, in_part: bool = False) -> Iterator[MemberFile]:
        """The member as a file. `in_part`: it is not read from its beginning to its end."""
        with ExitStack() as stack:
            with naming(self.file.path):
                file = MemberFile.of(self.file, self.content(stack, in_part))
            yield file
            del file.content  # Frees its first bytes, even if the file is still in use.

    def in_memory(self) -> tuple[Member, bytes]:
        """Read the content; return a member that has it, and needs the archive no more."""
        with self.opened() as file:
            data = file.content.read_at(0, file.size)
        stored = self.read_bytes(len(data))
        content = in_memory(data, self.file.path)
        return replace(self, content=lambda *_: content, read_bytes=lambda _: stored), data


def members(split: FileSplit, options: ReaderOptions, first: int = 0) -> Iterator[Member]:
    """Yield the members that belong to `split` in their order, from the one numbered `first` on.

    Directories, links, names that `archivePathFilter` does not match, and names of which a part
    begins with `_` or `.` are left out.

    Raises:
        SplitReadError: the archive is damaged, encrypted or a bomb, or it cannot be opened.
    """
    glob = options.archive_path_filter
    pattern = None if glob is None else glob_pattern(glob)
    path = split.file.path
    read = _of_zip if is_zip(path) else _of_7z if _is_7z(path) else _of_tar
    with SourceFile(split.file, options.storage_options).opened() as source:
        for member in read(split, source, options, first):
            if pattern is None or pattern.fullmatch(member.name):
                yield member


def _of_zip(
    split: FileSplit, source: RandomAccess, options: ReaderOptions, first: int
) -> Iterator[Member]:
    file = split.file
    with naming(file.path):
        # One request brings the directory of most archives.
        tail = source.read_at(max(0, file.size - _TAIL), _TAIL)
        stored = _Directory(source, file.size)
        archive = zipfile.ZipFile(stored)
        _check_directory(file, archive.infolist(), tail)

    def content(entry: zipfile.ZipInfo, stack: ExitStack, in_part: bool) -> RandomAccess:
        path = f"{file.path}!/{entry.filename}"
        if entry.flag_bits & 1:
            raise unreadable(path, "it is encrypted", "Unpack it with its password")
        if entry.CRC and not entry.file_size:
            raise zipfile.BadZipFile("a size of 0, and a checksum of some content")
        stream = stack.enter_context(archive.open(entry))
        if in_part and _is_stored(entry):
            # To open it was to read its header, behind which the content is.
            return Window(source, stored.tell(), path, entry.file_size)
        return content_in_order(stream, path, entry.file_size, options, stack)

    entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    parts = ((entry, _part(entry, split)) for entry in entries)
    own = [(entry, part) for entry, part in parts if part is not None]
    for ordinal, (entry, part) in enumerate(own):
        if ordinal < first:
            continue
        mode, name = stat.S_IFMT(entry.external_attr >> 16), entry.filename
        if name.endswith("/") or mode not in (0, stat.S_IFREG) or _is_hidden(name):
            # `zipfile` compares names: a changed byte in the directory must not hide a member.
            with naming(f"{file.path}!/{name}"), suppress(RuntimeError):
                archive.open(entry).close()
            continue
        share = entry.compress_size / max(1, entry.file_size)
        read = partial(_share, max(0, entry.header_offset - split.start), share)
        member = file._replace(path=f"{file.path}!/{name}", size=entry.file_size)
        yield Member(name, ordinal, member, part, read, partial(content, entry))


def _check_directory(file: FileVersion, entries: Sequence[zipfile.ZipInfo], tail: bytes) -> None:
    if any(not 0 <= entry.header_offset < file.size for entry in entries):
        raise zipfile.BadZipFile("a member begins outside of the file")
    # The record at the end says how many there are, in 16 bits; `zipfile` does not compare it.
    at = tail.rfind(b"PK\5\6") + 10
    if int.from_bytes(tail[at : at + 2], "little") not in (0xFFFF, len(entries) & 0xFFFF):
        raise zipfile.BadZipFile(f"{len(entries)} members, which is not how many it says")
    _refuse_bomb(file, [entry.file_size for entry in entries])


def _part(entry: zipfile.ZipInfo, split: FileSplit) -> tuple[int, int] | None:
    """Take the part of a member's content in the split: all, if not stored; None for nothing."""
    start, size = entry.header_offset, entry.file_size
    begins_here = split.start <= start < split.end
    if not _is_stored(entry):
        return (0, size) if begins_here else None
    # As if the content began with the header: splits only have to meet at one byte.
    begin, end = max(0, split.start - start), min(size, split.end - start)
    return (begin, end) if begins_here or begin < end else None


def _is_stored(entry: zipfile.ZipInfo) -> bool:
    is_plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
    return is_plain and entry.compress_size == entry.file_size


def _share(begin: int, share: float, content: int) -> int:
    return begin + int(share * content)


def _of_7z(
    split: FileSplit, source: RandomAccess, options: ReaderOptions, first: int
) -> Iterator[Member]:
    file = split.file
    with naming(file.path):
        archive = SevenZip(source, file.size, file.path)
        _refuse_bomb(file, [entry.uncompressed for entry in archive.entries])

    def content(entry: ArchiveFile, stack: ExitStack, _: bool) -> RandomAccess:
        stream = cast("IO[bytes]", stack.enter_context(archive.open(entry)))
        path = f"{file.path}!/{entry.filename}"
        return content_in_order(stream, path, entry.uncompressed, options, stack)

    for ordinal, entry in enumerate(archive.entries):
        if ordinal >= first and entry.is_file and not _is_hidden(entry.filename):
            name, size = entry.filename, entry.uncompressed
            member = file._replace(path=f"{file.path}!/{name}", size=size)
            read = _position(archive)
            yield Member(name, ordinal, member, (0, size), read, partial(content, entry))


def _of_tar(
    split: FileSplit, source: RandomAccess, options: ReaderOptions, first: int
) -> Iterator[Member]:
    file = split.file
    codec = _tar_codec(file.path) or Compression.NONE
    is_plain = codec is Compression.NONE
    with StoredFile(file, source, codec).stream() as stream:
        with naming(file.path):
            archive = _open_tar(file, source, stream, codec)

        def content(entry: tarfile.TarInfo, stack: ExitStack, _: bool) -> RandomAccess:
            path = f"{file.path}!/{entry.name}"
            if entry.issparse():
                raise unreadable(path, "it is a sparse file", "Pack it without --sparse")
            if is_plain:
                return Window(source, entry.offset_data, path, entry.size)
            data = archive.extractfile(entry)
            assert data is not None
            return content_in_order(stack.enter_context(data), path, entry.size, options, stack)

        ordinal = -1
        while True:
            with naming(file.path):
                entry = _next(archive)
                # It would keep all entries otherwise; `members` is not in its stub.
                vars(archive)["members"].clear()
            if entry is None:
                if not is_plain:
                    _read_checksum(stream)
                return
            ordinal += 1
            if ordinal >= MAX_ENTRIES:
                raise _bomb(file.path, "more members", f"at most {MAX_ENTRIES:,}")
            _refuse_ratio(file, entry.offset_data + entry.size)
            if ordinal >= first and entry.isreg() and not _is_hidden(entry.name):
                read = partial(_share, entry.offset_data, 1) if is_plain else _position(stream)
                member = file._replace(path=f"{file.path}!/{entry.name}", size=entry.size)
                part = 0, entry.size
                yield Member(entry.name, ordinal, member, part, read, partial(content, entry))


def _next(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
    """Return the next header: of this archive, or of one behind it (`cat a.tar b.tar`)."""
    try:
        return archive.next()
    except (MalformedDataError, EOFError) as err:
        # Where a codec ends early behind an end mark, all members are whole.
        ends_early = isinstance(err, EOFError) or isinstance(err.__cause__, EOFError)
        if ends_early and cast("type[_Header]", archive.tarinfo).has_ended:
            return None
        raise


def _read_checksum(stream: Stream) -> None:
    """Read to the end of a codec, where its checksum is."""
    try:
        while stream.read(STEP):
            pass
    except MalformedDataError as err:
        # The end mark of the archive says that all members are whole, which is what tar checks.
        if not isinstance(err.__cause__, EOFError):
            raise


def _position(stream: Stream | SevenZip) -> Callable[[int], int]:
    return lambda _: stream.position


def _open_tar(
    file: FileVersion, source: RandomAccess, stream: Stream, codec: Compression
) -> tarfile.TarFile:
    # What is noted about one archive is in a class of its own.
    header = type("_HeaderOfOne", (_Header,), {})
    if codec is Compression.NONE:
        return tarfile.open(
            fileobj=AsFile(source, file.size), mode="r:", tarinfo=header, ignore_zeros=True
        )
    in_order = cast("IO[bytes]", stream)
    return tarfile.open(
        fileobj=in_order, mode="r|", bufsize=STEP // 4, tarinfo=header, ignore_zeros=True
    )


class _Header(tarfile.TarInfo):
    """A header of which none is damaged: `tarfile` takes one behind the first for the end.

    Behind the end mark of an archive another one may follow, or nothing.
    """

    has_ended: ClassVar[bool] = False
    """True behind an end mark."""

    @classmethod
    @override
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as err:
            if not any(buf) and (cls.has_ended or len(buf) == tarfile.BLOCKSIZE):
                cls.has_ended = True
                raise
            problem = str(err) if buf else "it ends without its end mark"
            if cls.has_ended:
                problem = f"behind the end of an archive: {problem}"
            raise tarfile.ReadError(problem) from err
        cls.has_ended = False
        return header


class _Directory(AsFile):
    """The file of a zip archive, of which no more is read at once than a directory may have."""

    @override
    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > _MAX_DIRECTORY:
            raise zipfile.BadZipFile(
                f"a directory of {size:,} bytes; at most {_MAX_DIRECTORY:,} are read"
            )
        return super().read(size)


def _is_hidden(name: str) -> bool:
    parts = (part for part in name.split("/") if part not in ("", ".", ".."))
    return any(part.startswith(("_", ".")) for part in parts)


def _refuse_bomb(file: FileVersion, sizes: Sequence[int]) -> None:
    if len(sizes) > MAX_MEMBERS:
        raise _bomb(file.path, f"{len(sizes):,} members", f"at most {MAX_MEMBERS:,}")
    _refuse_ratio(file, sum(sizes))


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
