"""Opens one version of one file, and says so when it is no longer that version.

Local files are read with plain reads, never mapped: a mapped file that somebody truncates kills
the process instead of raising an error. Of others, objects of buckets are read by their version
mark: the store itself answers whether it still is the version that was discovered, so nothing is
looked up before. What else there is, fsspec opens.
"""

from __future__ import annotations

import io
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.documents.file_split import FileVersion, growing_mark
from ....checkpoint_meta.storage.bucket import PART, Bucket, Part, open_bucket
from ....checkpoint_meta.storage.client_options import by_fsspec
from ....checkpoint_meta.storage.storage_errors import AnotherVersion, BeyondTheEnd, patiently
from ....checkpoint_meta.storage.urls import local_path
from ....errors import FileChangedError
from .file_version import DirectoryMark, changed, check, check_local, naming


class RandomAccess(Protocol):
    """An open file that can be read anywhere."""

    def read_at(self, position: int, count: int) -> bytes:
        """Bytes from `position`: `count` of them, fewer only at the end of the file version."""

    def close(self) -> None:
        """Release the open file or connection."""


class AsFile(io.RawIOBase):
    """What can be read anywhere as a file of Python's, which Arrow can take."""

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


_LEAST_PART: Final = 256 * 1024

_AT_ONCE: Final = 16
"""Small remote files that are fetched at the same time: each is waiting, not work."""


def is_local(path: str) -> bool:
    """Absolute paths, and those quoted as `file:` URLs, are local; the rest is fsspec's."""
    return "://" not in path or path.startswith("file://")


def place_of(path: str) -> str:
    """The path of a local file as the operating system knows it."""
    return path if path.startswith("/") else local_path(path) or path


class SourceFile:
    """One version of one file, of any file system; each way to open it checks the version.

    Raises:
        FileVanishedError: it is gone.
        FileChangedError: it is another version: size, ETag or, on local disks, modification time.
    """

    def __init__(self, file: FileVersion, storage: Mapping[str, Any]) -> None:
        self.file = file
        self._storage = storage
        self.is_local = is_local(file.path)

    @contextmanager
    def opened(self) -> Iterator[RandomAccess]:
        """The file, to be read anywhere."""
        opened = _Local(self.file) if self.is_local else _open_remote(self.file, self._storage)
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
            with naming(file), pa.OSFile(os.fsencode(place_of(file.path)), "rb") as source:
                # Arrow's file has no descriptor that could be asked, as `check_local` does.
                status = os.stat(place_of(file.path))
                check(file, source.size(), status.st_mtime_ns // 1000)
                yield source
                # Another inode is another file, or none: the open one is still the same.
                with suppress(FileNotFoundError):
                    after = os.stat(place_of(file.path))
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
            FileChangedError: it is empty, so somebody is about to write it again.
        """
        file = self.file
        with naming(file):
            if self.is_local:
                status = os.stat(place_of(file.path))
                present = FileVersion(file.path, status.st_size, status.st_mtime_ns // 1000)
            else:
                present = _remote_version(file, self._storage)
        if present.size == 0:
            raise changed(file, "an empty file")
        return present


def limit_requests(file: FileVersion, storage: Mapping[str, Any], seconds: float) -> None:
    """Request so little of a bucket at once that the answer takes about this long at most."""
    bucket = None if is_local(file.path) else open_bucket(file.path, storage)
    if bucket is not None and not bucket[0].part_seconds:
        bucket[0].part_bytes, bucket[0].part_seconds = _LEAST_PART, seconds


def contents(files: Sequence[FileVersion], storage: Mapping[str, Any]) -> list[bytes]:
    """All bytes of each of many small files, in order."""
    sources = [SourceFile(file, storage) for file in files]
    # Local files gain nothing from threads; remote ones spend their time waiting.
    if len(sources) == 1 or sources[0].is_local:
        return [source.content() for source in sources]
    with ThreadPoolExecutor(min(_AT_ONCE, len(sources))) as pool:
        return list(pool.map(SourceFile.content, sources))


def _descriptor(file: FileVersion) -> int:
    # On systems that distinguish text files, this is a binary file.
    return os.open(place_of(file.path), os.O_RDONLY | getattr(os, "O_BINARY", 0))


class _Opened(ABC):
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

    @abstractmethod
    def close(self) -> None:
        """See `RandomAccess`."""


class _Local(_Opened):
    def __init__(self, file: FileVersion) -> None:
        super().__init__(file)
        with naming(file):
            self._descriptor = _descriptor(file)
            try:
                check_local(file, self._descriptor)
                self._changed_at = os.fstat(self._descriptor).st_ctime_ns
            # Nobody has this object yet, so nobody else closes it.
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

    @override
    def close(self) -> None:
        os.close(self._descriptor)


def _open_remote(file: FileVersion, storage: Mapping[str, Any]) -> _Opened:
    bucket = open_bucket(file.path, storage)
    return _Object(file, *bucket) if bucket is not None else _OfFsspec(file, storage)


def _remote_version(file: FileVersion, storage: Mapping[str, Any]) -> FileVersion:
    bucket = open_bucket(file.path, storage)
    if bucket is not None:
        found = patiently(lambda: bucket[0].head(bucket[1]))
        return FileVersion(file.path, found.size, found.modified, found.etag)
    fs, path = by_fsspec(file.path, storage)
    return FileVersion(file.path, int(fs.info(path)["size"]), -1)


class _Object(_Opened):
    """An object of a bucket, with one stretch of it in memory."""

    def __init__(self, file: FileVersion, bucket: Bucket, key: str) -> None:
        super().__init__(file)
        self._bucket = bucket
        self._key = key
        self._start = 0
        self._data = b""

    @override
    def _some(self, position: int, count: int) -> bytes:
        if not self._start <= position < self._start + len(self._data):
            self._fetch(position)
        return self._data[position - self._start :][:count]

    def _fetch(self, position: int) -> None:
        # Many small reads are one request: each request waits for a round trip to the store.
        usual, most = self._bucket.part_bytes, self._bucket.part_seconds
        length = min(usual, self._file.size - position)
        began = time.monotonic()
        try:
            part = patiently(
                lambda: self._bucket.part(self._key, position, length, self._file.etag)
            )
        except (AnotherVersion, BeyondTheEnd) as error:
            raise self._changed() from error
        except FileNotFoundError as error:
            if not patiently(lambda: self._bucket.is_directory_mark(self._key)):
                raise
            found = "a key that ends in a slash: a directory, regardless of its content"
            expected = "an object that is a file"
            raise DirectoryMark("not a file", self._file.path, found, expected) from error
        seconds = max(1e-9, time.monotonic() - began)
        # A short request that was quick says nothing of how many bytes fit.
        if most and (length == usual or seconds > most):
            self._bucket.part_bytes = min(PART, max(_LEAST_PART, int(length * most / seconds)))
        # Without an ETag the store compares nothing, so only the size can tell.
        check(self._file, part.size, -1)
        if len(part.data) != length:
            raise changed(self._file, f"an end after {position + len(part.data)} bytes")
        self._start, self._data = position, part.data

    def _changed(self) -> FileChangedError:
        found: Part = patiently(lambda: self._bucket.head(self._key))
        if found.size != self._file.size:
            return changed(self._file, f"{found.size} bytes")
        return changed(self._file, f"ETag {found.etag}", f"ETag {self._file.etag}")

    @override
    def close(self) -> None:
        self._data = b""


class _OfFsspec(_Opened):
    """A file of any file system that fsspec knows."""

    def __init__(self, file: FileVersion, storage: Mapping[str, Any]) -> None:
        super().__init__(file)
        with naming(file):
            fs, path = by_fsspec(file.path, storage)
            info = fs.info(path)
            if info.get("type") == "directory":
                raise changed(file, "a directory")
            # Servers of HTTP do not always say it.
            size = info.get("size")
            check(file, file.size if size is None else int(size), -1)
            # Each implementation of fsspec has its own name for it, with quotes or without.
            etag = str(info.get("ETag") or info.get("etag") or "").strip('"')
            if file.etag and etag and etag != file.etag.strip('"'):
                raise changed(file, f"ETag {etag}", f"ETag {file.etag}")
            # Splits are read in order, so a request takes what the next reads want as well.
            self._handle = fs.open(path, "rb", cache_type="readahead", block_size=PART)

    @override
    def _some(self, position: int, count: int) -> bytes:
        self._handle.seek(position)
        return bytes(self._handle.read(count))

    @override
    def close(self) -> None:
        self._handle.close()
