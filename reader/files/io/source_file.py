"""Opens one version of one file, and says so when it is no longer that version.

Local files are read with plain reads, never mapped: a mapped file that is truncated kills
the process instead of raising an error. All others are read through `Storage`: a store that knows
version marks answers itself whether it still is the version that was discovered.
"""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.files.file_split import FileVersion, growing_mark
from ....checkpoint_meta.storage.contract import PART, FileStatus, at_once
from ....checkpoint_meta.storage.open_storage import open_storage
from ....checkpoint_meta.storage.storage_errors import AnotherVersion, BeyondTheEnd, patiently
from ....checkpoint_meta.storage.urls import is_local, local_name
from ....errors import FileChangedError
from .file_version import DirectoryMark, changed, check, check_local, naming
from .request_sizer import RequestSizer, SizedRequestOptions


class RandomAccess(Protocol):
    """An open file that can be read anywhere."""

    def read_at(self, position: int, count: int) -> bytes:
        """Bytes from `position`: `count` of them, fewer only at the end of the file version."""

    def close(self) -> None:
        """Release the open file or connection."""


class AsFile(io.RawIOBase):
    """A file of Python's, which Arrow can take, of anything that can be read anywhere."""

    def __init__(self, source: RandomAccess, size: int) -> None:
        self._source = source
        self._size = size
        self._position = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError("a position before the beginning of the file")
        self._position = base + offset
        return self._position

    @override
    def tell(self) -> int:
        return self._position

    @override
    def read(self, size: int | None = -1) -> bytes:
        left = self._size - self._position
        data = self._source.read_at(self._position, left if size is None or size < 0 else size)
        self._position += len(data)
        return data


class MemberFile(FileVersion):
    """A member of an archive as a file. Its path names both; it is open already."""

    content: RandomAccess

    @classmethod
    def of(cls, file: FileVersion, content: RandomAccess) -> MemberFile:
        """The member with this path, of a version of an archive."""
        member = cls(*file)
        member.content = content
        return member


_LEAST_PART: Final = 256 * 1024


class SourceFile:
    """One version of one file, of any file system; each way to open it checks the version.

    Raises:
        FileVanishedError: it is gone.
        FileChangedError: it is another version: size, ETag or, on local disks, modification time.
    """

    def __init__(self, file: FileVersion, storage: Mapping[str, Any]) -> None:
        self.file = file
        self._storage = storage
        self.is_local = is_local(file.path) and not isinstance(file, MemberFile)

    @contextmanager
    def opened(self) -> Iterator[RandomAccess]:
        """The file, to be read anywhere."""
        if isinstance(self.file, MemberFile):
            yield self.file.content
            return
        opened = _Local(self.file) if self.is_local else _Remote(self.file, self._storage)
        try:
            yield opened
        finally:
            opened.close()

    @contextmanager
    def native(self) -> Iterator[pa.NativeFile]:
        """The same as an Arrow file, for decoders that seek by themselves."""
        file = self.file
        if self.is_local:
            # Arrow reads it without Python, and without Python's lock.
            with naming(file), pa.OSFile(os.fsencode(local_name(file.path)), "rb") as source:
                check_local(file, source.fileno())
                status = os.fstat(source.fileno())
                yield source
                # Another inode is another file, or none: the open one is still the same.
                with suppress(FileNotFoundError):
                    after = os.stat(local_name(file.path))
                    if after.st_ino == status.st_ino and after.st_ctime_ns != status.st_ctime_ns:
                        raise changed(file, "it was written to while it was read", "no change")
            return
        with self.opened() as remote:
            yield pa.PythonFile(AsFile(remote, file.size), mode="r")

    def content(self) -> bytes:
        """All bytes of a file that is small enough for that."""
        file = self.file
        if self.is_local:
            # Three system calls: this is what a tiny file costs, thousands of times over.
            with naming(file):
                descriptor = _descriptor(file)
                try:
                    check_local(file, descriptor)
                    # One byte more than expected shows a file that grew meanwhile.
                    data = os.read(descriptor, file.size + 1)
                    if len(data) == file.size:
                        return data
                finally:
                    os.close(descriptor)
        with self.opened() as opened:
            return opened.read_at(0, file.size)

    def present_version(self) -> FileVersion:
        """The version that is there now, whichever was discovered.

        Raises:
            FileVanishedError: it is gone.
            FileChangedError: it is empty, so it is about to be written again.
        """
        file = self.file
        with naming(file):
            storage, name = open_storage(file.path, self._storage)
            present = FileVersion(file.path, *patiently(lambda: storage.stat(name)))
        if present.size == 0:
            raise changed(file, "an empty file")
        return present


def newer_generation(file: FileVersion, storage_options: Mapping[str, Any]) -> str:
    """Return a data file of the directory of a deleted file, if all of them are newer than it.

    So it is where a job has written a directory again. Any other file that is as old as the deleted
    one says that this one alone is lost; then the result is empty, as for an empty directory.
    """
    storage, name = open_storage(file.path, storage_options)
    newer = ""
    with naming(file), suppress(FileNotFoundError):
        for page in storage.pages(f"{name.rpartition('/')[0]}/", folders=True):
            for other, modified in zip(page.names, page.modified, strict=True):
                if other.rpartition("/")[2].startswith(("_", ".")):
                    continue
                if not 0 <= file.modified < modified:
                    return ""
                newer = storage.url(other)
    return newer


def paced(storage: Mapping[str, Any], seconds: float) -> SizedRequestOptions:
    """Storage options that request so little at once that an answer takes about this long."""
    return SizedRequestOptions(storage, RequestSizer(_LEAST_PART, PART, _LEAST_PART, seconds))


def contents(files: Sequence[FileVersion], storage: Mapping[str, Any]) -> list[bytes]:
    """All bytes of each of many small files, in order."""
    sources = [SourceFile(file, storage) for file in files]
    # Local files gain nothing from threads; remote ones spend their time waiting.
    if len(sources) == 1 or sources[0].is_local:
        return [source.content() for source in sources]
    return at_once(SourceFile.content, sources)


def _descriptor(file: FileVersion) -> int:
    # On systems that distinguish text files, this is a binary file.
    return os.open(local_name(file.path), os.O_RDONLY | getattr(os, "O_BINARY", 0))


class _CheckedFile(ABC):
    """An open file; what it says and what goes wrong is held against its version."""

    def __init__(self, file: FileVersion) -> None:
        self._file = file

    def read_at(self, position: int, count: int) -> bytes:
        count = min(count, self._file.size - position)
        if count <= 0:
            return b""
        with naming(self._file):
            data = self._some(position, count)
            if len(data) == count:
                return data
            # Linux hands out at most 2 GiB at once, signals may cut a read short, and of an object
            # a stretch may end here. Joined once, since large reads have many pieces.
            pieces, end = [data], position + len(data)
            while end < position + count:
                more = self._some(end, position + count - end)
                if not more:
                    raise changed(self._file, f"an end after {end} bytes")
                pieces.append(more)
                end += len(more)
        return b"".join(pieces)

    @abstractmethod
    def _some(self, position: int, count: int) -> bytes:
        """At most `count` bytes, some at least unless the file ends here."""


class _Local(_CheckedFile):
    def __init__(self, file: FileVersion) -> None:
        super().__init__(file)
        with naming(file):
            self._descriptor = _descriptor(file)
            try:
                check_local(file, self._descriptor)
                self._changed_at = os.fstat(self._descriptor).st_ctime_ns
            # The object is not returned, so no caller closes it.
            except BaseException:
                os.close(self._descriptor)
                raise

    @override
    def _some(self, position: int, count: int) -> bytes:
        data = os.pread(self._descriptor, count, position)
        # Copying with a file's own times leaves size and modification time as they were.
        is_same = os.fstat(self._descriptor).st_ctime_ns == self._changed_at
        if not (is_same or growing_mark(self._file.etag)):
            raise changed(self._file, "it was written to while it was read", "no change")
        return data

    def close(self) -> None:
        os.close(self._descriptor)


class _Remote(_CheckedFile):
    """A file of any other storage, with one stretch of it in memory."""

    def __init__(self, file: FileVersion, options: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._storage, self._name = open_storage(file.path, options)
        self._pace = (
            options.pace if isinstance(options, SizedRequestOptions) else RequestSizer(PART, PART)
        )
        self._start = 0
        self._data = b""
        self._checked: FileStatus | None = None
        with naming(file):
            try:
                self._opened = self._storage.open(self._name, file.etag)
            except IsADirectoryError as error:
                raise changed(file, "a directory") from error

    @override
    def _some(self, position: int, count: int) -> bytes:
        if self._opened.is_buffered:
            return self._read(position, count)
        if not self._start <= position < self._start + len(self._data):
            # Many small reads are one request: each request waits for a round trip to the store.
            length = min(self._pace.bytes, self._file.size - position)
            with self._pace.request(length):
                self._data = self._read(position, length)
            self._start = position
        # One slice: another one would copy the rest of the stretch for each small read.
        begin = position - self._start
        return self._data[begin : begin + count]

    def _read(self, position: int, length: int) -> bytes:
        try:
            part = self._opened.read(position, length)
        except (AnotherVersion, BeyondTheEnd) as error:
            raise self._changed(position) from error
        except FileNotFoundError as error:
            if not patiently(lambda: self._storage.is_directory_mark(self._name)):
                raise
            found = "a key that ends in a slash: a directory, regardless of its content"
            expected = "an object that is a file"
            raise DirectoryMark("not a file", self._file.path, found, expected) from error
        if part.status != self._checked:
            check(self._file, part.status)
            self._checked = part.status
        if len(part.data) != length:
            raise changed(self._file, f"an end after {position + len(part.data)} bytes")
        return part.data

    def _changed(self, position: int) -> FileChangedError:
        status = patiently(lambda: self._storage.stat(self._name))
        difference = self._file.difference(status)
        return changed(self._file, *(difference or (f"an end after {position} bytes",)))

    def close(self) -> None:
        self._opened.close()
        self._data = b""
