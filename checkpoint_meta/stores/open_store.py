"""The one door to durable state: which store a path or URL means.

On a local, or locally mounted, file system; in a bucket; or on an object store by fsspec, if its
create is atomic.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from ...errors import StateError
from ..storage import durable
from ..storage.bucket import Bucket, open_bucket
from ..storage.client_options import by_fsspec
from ..storage.providers import PROVIDERS
from ..storage.storage_errors import BeyondTheEnd
from ..storage.urls import local_path, scheme_of, storage_url
from .contract import RetryingStateStore, StateStore

__all__ = [
    "BucketStateStore",
    "LocalStateStore",
    "ObjectStateStore",
    "RetryingStateStore",
    "StateStore",
    "open_store",
]

_NO_HARD_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""What link(2) says on FAT, on SMB and on most FUSE mounts."""


class LocalStateStore(StateStore):
    """Temporary file, fsync, hard link, fsync of the directory.

    A crash leaves the object whole or leaves a temporary file that nobody reads. Where there are
    no hard links the file is renamed, which must not replace; where neither is to be had the
    first publication is refused.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self.location = str(self._root)

    @override
    def publish(self, name: str, data: bytes) -> None:
        target = self._root / name
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        # The directory comes first: a file in it is durable only if its own entry in its parent is.
        if durable.make_directory(target.parent, self._root):
            _delete_left_over(target.parent)
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _create(temporary, target)
        except FileExistsError:
            # It may be what we have published: the name is to be durable when that is found out.
            durable.sync(target.parent)
            raise
        finally:
            # After a rename it is gone already. A crash before leaves it, and listings skip its
            # name.
            temporary.unlink(missing_ok=True)
        # Last: without it a crash of the machine may lose the name of a file whose bytes are safe.
        durable.sync(target.parent)

    @override
    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        with open(self._root / name, "rb") as file:
            file.seek(start)
            return file.read(length)

    @override
    def list(self, directory: str) -> list[str]:
        try:
            names = os.listdir(self._root / directory)
        except FileNotFoundError:
            return []
        # Temporary files, of other processes as well, and what NFS keeps of files that are still
        # open.
        return sorted(name for name in names if not name.startswith("."))

    @override
    def delete(self, name: str) -> None:
        target = self._root / name
        with contextlib.suppress(FileNotFoundError):
            if target.is_dir():
                # A crash half-way leaves the directory with the rest, and the next deletion
                # finishes it.
                for child in target.iterdir():
                    child.unlink(missing_ok=True)
                target.rmdir()
            else:
                target.unlink()

    @override
    def refresh(self, directory: str) -> None:
        # A client of a network file system remembers for up to a minute that a name was not
        # there. It learns otherwise when it changes the directory itself.
        probe = self._root / directory / f".{uuid.uuid4().hex}.tmp"
        with contextlib.suppress(OSError):
            probe.touch(exist_ok=False)
            probe.unlink()


_LEFT_OVER_SECONDS: Final = 86_400.0
"""A temporary file that is older is of a writer that has crashed."""


def _delete_left_over(directory: Path) -> None:
    # By the clock of the file system, which is the one that gives files their times.
    with contextlib.suppress(OSError):
        probe = directory / f".{uuid.uuid4().hex}.tmp"
        probe.touch()
        old = probe.stat().st_mtime - _LEFT_OVER_SECONDS
        probe.unlink()
        for path in directory.glob(".*.tmp"):
            if path.stat().st_mtime < old:
                path.unlink(missing_ok=True)


def _create(temporary: Path, target: Path) -> None:
    # A link, unlike a plain rename, fails where the target exists.
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        durable.rename_exclusively(temporary, target)


ATOMIC_CREATE: Final = {
    known: provider.create for provider in PROVIDERS for known in provider.schemes.values()
}
"""File systems that state may be kept on, in addition to local ones -> why their create is atomic.

The base class of fsspec looks first and writes then, so that two coordinators could both believe
that an epoch is theirs; what inherits that (HDFS, WebHDFS, FTP, SFTP, SMB, the Azure Data Lake
of the first generation, OSS, the in-memory one) is not in the list.
"""

_PRECONDITION_FAILED = 412


def check_atomic_create(url: str) -> None:
    """Raise unless the file system of `url` is one of `ATOMIC_CREATE`.

    Raises:
        StateError: names the file system and those that are accepted.
    """
    scheme = scheme_of(url)
    if scheme not in ATOMIC_CREATE:
        raise StateError(
            "state cannot be kept on this file system: its create is not known to be atomic",
            url,
            f"the file system {scheme!r}",
            "a local path or one of " + ", ".join(ATOMIC_CREATE),
            "Point stateLocation at one of those. The data can stay where it is.",
        )


class BucketStateStore(StateStore):
    """State in a bucket, one request for each operation; two for a deletion."""

    def __init__(self, url: str, bucket: Bucket, prefix: str) -> None:
        self.location = url
        self._bucket = bucket
        self._prefix = prefix

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    @override
    def publish(self, name: str, data: bytes) -> None:
        self._bucket.create(self._key(name), data)

    @override
    def read(self, name: str) -> bytes:
        return self._bucket.whole(self._key(name))

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        try:
            return self._bucket.part(self._key(name), start, length).data
        except BeyondTheEnd:
            return b""

    @override
    def list(self, directory: str) -> list[str]:
        try:
            return self._bucket.names(self._key(directory))
        except FileNotFoundError:
            return []

    @override
    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._bucket.delete(self._key(name))


class ObjectStateStore(StateStore):
    """State on an fsspec file system whose `pipe_file` creates conditionally."""

    def __init__(self, url: str, storage_options: Mapping[str, Any]) -> None:
        self._fs, self._root = by_fsspec(url, storage_options)
        self.location = url

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @override
    def publish(self, name: str, data: bytes) -> None:
        try:
            with _faults_as_os_errors():
                self._fs.pipe_file(self._path(name), data, mode="create")
        except (TypeError, NotImplementedError) as error:
            raise StateError(
                "the file system cannot create an object only if it does not exist",
                self.location,
                f"{type(self._fs).__name__}: {error}",
                "support for pipe_file(path, data, mode='create')",
                "Upgrade the package of the file system, or point stateLocation elsewhere.",
            ) from error

    @override
    def read(self, name: str) -> bytes:
        with _faults_as_os_errors():
            data: bytes = self._fs.cat_file(self._path(name))
        return data

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        try:
            with _faults_as_os_errors():
                data: bytes = self._fs.cat_file(self._path(name), start=start, end=start + length)
        except FileNotFoundError:
            raise
        except OSError:
            # To some stores a range beyond the end is an error.
            if self._fs.info(self._path(name))["size"] > start:
                raise
            return b""
        return data

    @override
    def list(self, directory: str) -> list[str]:
        # fsspec may remember a listing, and one from before a commit would hide it.
        self._fs.invalidate_cache()
        try:
            with _faults_as_os_errors():
                paths = self._fs.ls(self._path(directory), detail=False)
        except FileNotFoundError:
            return []
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)

    @override
    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError), _faults_as_os_errors():
            self._fs.rm(self._path(name), recursive=True)

    @override
    def refresh(self, directory: str) -> None:
        self._fs.invalidate_cache()


@contextlib.contextmanager
def _faults_as_os_errors() -> Iterator[None]:
    """Clients of object stores have errors of their own for what may pass or has a meaning."""
    try:
        yield
    except OSError as error:
        if not isinstance(error, FileExistsError) and _status(error) == _PRECONDITION_FAILED:
            raise FileExistsError(*error.args) from error
        raise
    # The file system has no conditional create: `publish` says so.
    except (TypeError, NotImplementedError):
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _status(error: BaseException) -> int | None:
    # s3fs knows a failed precondition by a field that only Amazon's own answer has.
    response = getattr(error.__cause__, "response", None)
    if not isinstance(response, dict):
        return None
    status: int | None = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status


def open_store(
    url: str, storage_options: Mapping[str, Any] | None = None, *, to_read: bool = False
) -> StateStore:
    """The store for a path or URL, with retries; nothing is created or looked at yet.

    With `to_read` any file system will do: what others have written is only looked at.

    Raises:
        StateError: a file system whose create is not atomic.
        OptionError: storage options that the client does not know.
    """
    path = local_path(url)
    if path is not None:
        return RetryingStateStore(LocalStateStore(path))
    known = storage_url(url)
    if not to_read:
        check_atomic_create(known)
    opened = open_bucket(known, storage_options or {})
    if opened is None:
        return RetryingStateStore(ObjectStateStore(known, storage_options or {}))
    return RetryingStateStore(BucketStateStore(known, *opened))
