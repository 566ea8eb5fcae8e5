"""The one door to durable state: which store a path or URL means, and retries around it.

State in an object store is here as well, with the list of those whose create is atomic.

Not here: the contract (`contract.py`), local files (`local.py`), and requests (`storage/`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from typing_extensions import override

from ...errors import StateError
from ..storage.bucket import Bucket, open_bucket
from ..storage.client_options import by_fsspec
from ..storage.providers import PROVIDERS
from ..storage.storage_errors import BeyondTheEnd, is_final, patiently
from ..storage.urls import local_path, scheme_of, storage_url
from .contract import StateStore
from .local import LocalStateStore

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


__all__ = [
    "BucketStateStore",
    "LocalStateStore",
    "ObjectStateStore",
    "RetryingStateStore",
    "StateStore",
    "open_store",
]

T = TypeVar("T")


class RetryingStateStore(StateStore):
    """Retries passing faults of another store, with back-off, and raises the last one by name.

    With the defaults a store may be away for some 20 seconds.

    A publish whose answer was lost may have succeeded, and clients repeat requests on their own
    without a word: an object that is there already is ours exactly if its content is. The caller
    must not share an object with anybody therefore puts something unique into it.
    """

    def __init__(
        self,
        inner: StateStore,
        attempts: int = 8,
        first_delay: float = 0.1,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self.location = inner.location
        self._attempts = attempts
        self._first_delay = first_delay
        self._sleep = sleep

    def _retry(self, verb: str, name: str, action: Callable[[], T]) -> T:
        try:
            return patiently(action, self._attempts, self._sleep, self._first_delay)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError as error:
            # A final error was not retried.
            times = "" if is_final(error) else f" {self._attempts} times in a row"
            raise StateError(
                f"the state store failed to {verb}{times}",
                f"{self.location}/{name}",
                _told(error),
                "a store that responds",
                "Repair access to the state directory, then restart: nothing is lost.",
            ) from error

    @override
    def publish(self, name: str, data: bytes) -> None:
        self._retry("publish", name, lambda: self._publish_or_compare(name, data))

    def _publish_or_compare(self, name: str, data: bytes) -> None:
        try:
            self._inner.publish(name, data)
        except FileExistsError as error:
            try:
                # Equal content means that our earlier request succeeded and only its answer was
                # lost.
                found = self._inner.read(name)
            except FileNotFoundError:
                # It was deleted meanwhile, or this machine does not see it yet: the caller decides.
                raise error from None
            if found != data:
                raise

    @override
    def read(self, name: str) -> bytes:
        return self._retry("read", name, lambda: self._inner.read(name))

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        return self._retry("read", name, lambda: self._inner.read_part(name, start, length))

    @override
    def list(self, directory: str) -> list[str]:
        return self._retry("list", directory, lambda: self._inner.list(directory))

    @override
    def delete(self, name: str) -> None:
        self._retry("delete", name, lambda: self._inner.delete(name))

    @override
    def refresh(self, directory: str) -> None:
        self._inner.refresh(directory)


def _told(error: OSError) -> str:
    return f"{type(error).__name__}: {error.strerror or error}"


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
