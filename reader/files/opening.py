"""Opens one version of one file, and says so when it is no longer that version.

Local files are read with plain reads, never mapped: a mapped file that somebody truncates kills
the process instead of raising an error. Not here: decompression (`codecs.py`), formats.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import fsspec
import pyarrow as pa

from ...checkpoint_meta.splits import FileVersion
from ...checkpoint_meta.urls import local_path
from ...errors import FileChangedError, FileVanishedError, SplitReadError

__all__ = ["RandomAccess", "is_local", "open_file", "open_native", "present_version", "read_whole"]


class RandomAccess(Protocol):
    """An open file that can be read anywhere."""

    def read_at(self, position: int, count: int) -> bytes:
        """Bytes from `position`: `count` of them, fewer only at the end of the file version."""

    def close(self) -> None:
        """Let go of the file."""


def is_local(path: str) -> bool:
    """Absolute paths, and those quoted as `file:` URLs, are local; the rest is fsspec's."""
    return "://" not in path or path.startswith("file://")


def _place(file: FileVersion) -> str:
    """The path of a local file as the operating system knows it."""
    return file.path if file.path.startswith("/") else local_path(file.path) or file.path


@contextmanager
def open_file(file: FileVersion, storage: Mapping[str, Any]) -> Iterator[RandomAccess]:
    """Open `file` and check that it still is the version that was discovered.

    Raises:
        FileVanishedError: it is gone.
        FileChangedError: its size or, on local disks, its modification time differ.
    """
    opened = _Local(file) if is_local(file.path) else _Remote(file, storage)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def open_native(file: FileVersion, storage: Mapping[str, Any]) -> Iterator[pa.NativeFile]:
    """The same as an Arrow file, for decoders that seek by themselves."""
    if is_local(file.path):
        with naming(file), pa.OSFile(os.fsencode(_place(file)), "rb") as source:
            _check(file, source.size(), os.stat(_place(file)).st_mtime_ns // 1000)
            yield source
        return
    remote = _Remote(file, storage)
    try:
        yield pa.PythonFile(remote.handle, mode="r")
    finally:
        remote.close()


def present_version(file: FileVersion, storage: Mapping[str, Any]) -> FileVersion:
    """The version of `file` that is there now.

    Raises:
        FileVanishedError: it is gone.
        FileChangedError: it is empty, so somebody is about to write it anew.
    """
    with naming(file):
        if is_local(file.path):
            status = os.stat(_place(file))
            present = FileVersion(file.path, status.st_size, status.st_mtime_ns // 1000)
        else:
            fs, path = fsspec.core.url_to_fs(file.path, **{"use_listings_cache": False, **storage})
            present = FileVersion(file.path, int(fs.info(path)["size"]), -1)
    if present.size == 0:
        raise _changed(file, "an empty file")
    return present


def read_whole(file: FileVersion, storage: Mapping[str, Any]) -> bytes:
    """All bytes of a file that is small enough for that."""
    if is_local(file.path):
        # Three system calls: this is what a tiny file costs, thousands of times over.
        with naming(file):
            descriptor = os.open(_place(file), os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                status = os.fstat(descriptor)
                _check(file, status.st_size, status.st_mtime_ns // 1000)
                # One byte more than expected shows a file that grew meanwhile.
                data = os.read(descriptor, file.size + 1)
                if len(data) == file.size:
                    return data
            finally:
                os.close(descriptor)
    with open_file(file, storage) as opened:
        return opened.read_at(0, file.size)


class _Local:
    def __init__(self, file: FileVersion) -> None:
        self._file = file
        with naming(file):
            self._descriptor = os.open(_place(file), os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                status = os.fstat(self._descriptor)
                _check(file, status.st_size, status.st_mtime_ns // 1000)
            except BaseException:
                os.close(self._descriptor)
                raise

    def read_at(self, position: int, count: int) -> bytes:
        count = min(count, self._file.size - position)
        if count <= 0:
            return b""
        with naming(self._file):
            data = os.pread(self._descriptor, count, position)
            # Linux hands out at most 2 GiB at once, and signals may cut a read short.
            while len(data) < count:
                more = os.pread(self._descriptor, count - len(data), position + len(data))
                if not more:
                    raise _changed(self._file, f"an end after {position + len(data)} bytes")
                data += more
        return data

    def close(self) -> None:
        os.close(self._descriptor)


class _Remote:
    def __init__(self, file: FileVersion, storage: Mapping[str, Any]) -> None:
        self._file = file
        with naming(file):
            # A cached listing would vouch for a file that is gone.
            fs, path = fsspec.core.url_to_fs(file.path, **{"use_listings_cache": False, **storage})
            info = fs.info(path)
            if info.get("type") == "directory":
                raise _changed(file, "a directory")
            size = info.get("size")
            _check(file, file.size if size is None else int(size), -1)
            etag = str(info.get("ETag") or info.get("etag") or "").strip('"')
            if file.etag and etag and etag != file.etag.strip('"'):
                raise _changed(file, f"ETag {etag}", f"ETag {file.etag}")
            self.handle = fs.open(path, "rb", cache_type="readahead", block_size=8 * 1024 * 1024)

    def read_at(self, position: int, count: int) -> bytes:
        count = min(count, self._file.size - position)
        if count <= 0:
            return b""
        with naming(self._file):
            self.handle.seek(position)
            data = bytes(self.handle.read(count))
            while len(data) < count:
                more = self.handle.read(count - len(data))
                if not more:
                    raise _changed(self._file, f"an end after {position + len(data)} bytes")
                data += more
        return data

    def close(self) -> None:
        self.handle.close()


@contextmanager
def naming(file: FileVersion) -> Iterator[None]:
    """Turn what the operating system says into an error that names the file and the way out."""
    try:
        yield
    except FileNotFoundError as err:
        raise FileVanishedError(
            "file vanished between discovery and reading",
            file.path,
            "no such file",
            f"{file.size} bytes, as discovered",
            "Put it back and restart, or set ignoreMissingFiles to skip and count it.",
        ) from err
    except OSError as err:
        # Arrow reports torn data as an OSError without errno; that is for the format to name.
        if err.errno is None:
            raise
        raise SplitReadError(
            "file cannot be read",
            file.path,
            err.strerror or str(err),
            "a readable file",
            "Check permissions and the storage, then restart; nothing is lost meanwhile.",
        ) from err


def _check(file: FileVersion, size: int, modified: int) -> None:
    if size != file.size:
        raise _changed(file, f"{size} bytes", f"{file.size} bytes")
    if modified != file.modified and modified >= 0 and file.modified >= 0:
        raise _changed(file, f"modified at {modified} us", f"{file.modified} us, as discovered")


def _changed(file: FileVersion, found: str, expected: str = "") -> FileChangedError:
    return FileChangedError(
        "file changed since discovery",
        file.path,
        found,
        expected or f"{file.size} bytes",
        "A file that is read in parts, or while it is written, must not change: put the version "
        "that was discovered back, with its modification time, and restart.",
    )
