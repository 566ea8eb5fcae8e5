"""Files that are not local: objects of buckets, and whatever fsspec can open.

An object is read by its version mark: the store itself answers whether it still is the version
that was discovered, so nothing is looked up before it is read. Not here: local files
(`source_file.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....checkpoint_meta.documents.file_split import FileVersion
from ....checkpoint_meta.storage.bucket import PART, Bucket, Part, open_bucket
from ....checkpoint_meta.storage.client_options import by_fsspec
from ....checkpoint_meta.storage.errors import AnotherVersion, BeyondTheEnd
from ....checkpoint_meta.storage.retries import patiently
from ....errors import FileChangedError
from .file_version import changed, check, directory_mark, naming
from .random_access import RandomAccess


def open_remote(file: FileVersion, storage: Mapping[str, Any]) -> RandomAccess:
    """`file` for reading; what is wrong with it shows here, or when it is first read."""
    bucket = open_bucket(file.path, storage)
    return _Object(file, *bucket) if bucket is not None else _Opened(file, storage)


def remote_version(file: FileVersion, storage: Mapping[str, Any]) -> FileVersion:
    """The version that is there now.

    Raises:
        OSError: it is not there, or nobody says so.
    """
    bucket = open_bucket(file.path, storage)
    if bucket is not None:
        found = patiently(lambda: bucket[0].head(bucket[1]))
        return FileVersion(file.path, found.size, found.modified, found.etag)
    fs, path = by_fsspec(file.path, storage)
    return FileVersion(file.path, int(fs.info(path)["size"]), -1)


class _Object:
    """An object of a bucket, with one stretch of it in memory."""

    def __init__(self, file: FileVersion, bucket: Bucket, key: str) -> None:
        self._file = file
        self._bucket = bucket
        self._key = key
        self._start = 0
        self._data = b""

    def read_at(self, position: int, count: int) -> bytes:
        count = min(count, self._file.size - position)
        if count <= 0:
            return b""
        with naming(self._file):
            return self._read(position, count)

    def _read(self, position: int, count: int) -> bytes:
        pieces = []
        while count > 0:
            if not self._start <= position < self._start + len(self._data):
                self._fetch(position)
            piece = self._data[position - self._start :][:count]
            pieces.append(piece)
            position += len(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _fetch(self, position: int) -> None:
        length = min(PART, self._file.size - position)
        try:
            part = patiently(
                lambda: self._bucket.part(self._key, position, length, self._file.etag)
            )
        except (AnotherVersion, BeyondTheEnd) as error:
            raise self._changed() from error
        except FileNotFoundError as error:
            if not patiently(lambda: self._bucket.is_directory_mark(self._key)):
                raise
            raise directory_mark(self._file) from error
        check(self._file, part.size, -1)
        if len(part.data) != length:
            raise changed(self._file, f"an end after {position + len(part.data)} bytes")
        self._start, self._data = position, part.data

    def _changed(self) -> FileChangedError:
        found: Part = patiently(lambda: self._bucket.head(self._key))
        if found.size != self._file.size:
            return changed(self._file, f"{found.size} bytes")
        return changed(self._file, f"ETag {found.etag}", f"ETag {self._file.etag}")

    def close(self) -> None:
        self._data = b""


class _Opened:
    """A file of any file system that fsspec knows."""

    def __init__(self, file: FileVersion, storage: Mapping[str, Any]) -> None:
        self._file = file
        with naming(file):
            fs, path = by_fsspec(file.path, storage)
            info = fs.info(path)
            if info.get("type") == "directory":
                raise changed(file, "a directory")
            size = info.get("size")
            check(file, file.size if size is None else int(size), -1)
            etag = str(info.get("ETag") or info.get("etag") or "").strip('"')
            if file.etag and etag and etag != file.etag.strip('"'):
                raise changed(file, f"ETag {etag}", f"ETag {file.etag}")
            self._handle = fs.open(path, "rb", cache_type="readahead", block_size=PART)

    def read_at(self, position: int, count: int) -> bytes:
        count = min(count, self._file.size - position)
        if count <= 0:
            return b""
        with naming(self._file):
            self._handle.seek(position)
            data = bytes(self._handle.read(count))
            while len(data) < count:
                more = self._handle.read(count - len(data))
                if not more:
                    raise changed(self._file, f"an end after {position + len(data)} bytes")
                data += more
        return data

    def close(self) -> None:
        self._handle.close()
