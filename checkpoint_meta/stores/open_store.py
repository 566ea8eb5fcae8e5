"""The one door to durable state: names below a path or URL, in any storage.

On a local, or locally mounted, file system; in a bucket; on HDFS; or on an object store by fsspec,
if its create is atomic.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from typing_extensions import override

from ...errors import StateError
from ..storage.contract import PROBE, Storage
from ..storage.hdfs_storage import SCHEME
from ..storage.local_storage import LocalStorage
from ..storage.open_storage import open_storage
from ..storage.providers import PROVIDERS
from ..storage.storage_errors import BeyondTheEnd, may_pass
from ..storage.urls import Location
from .contract import RetryingStateStore, StateStore

__all__ = ["RetryingStateStore", "StateStore", "StorageStateStore", "open_store"]


class StorageStateStore(StateStore):
    """State below a path or URL; each operation is one try."""

    def __init__(
        self, place: str | Location, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        place = Location.of(place)
        self._options = storage_options
        self._storage, self._root = open_storage(place, storage_options or {})
        self.location = place.url

    def _name(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @override
    def publish(self, name: str, data: bytes) -> None:
        self._storage.create(self._name(name), data)

    @override
    def read(self, name: str) -> bytes:
        return self._storage.whole(self._name(name))

    @override
    def read_part(self, name: str, start: int, length: int) -> bytes:
        try:
            return self._storage.read(self._name(name), start, length).data
        except BeyondTheEnd:
            return b""

    @override
    def list(self, directory: str) -> list[str]:
        try:
            return self._storage.names(self._name(directory).rstrip("/"))
        except FileNotFoundError:
            return []

    @override
    def delete(self, name: str) -> None:
        self._storage.delete_tree(self._name(name))

    @override
    def refresh(self, directory: str) -> None:
        self._storage.refresh(self._name(directory))

    @override
    def neighbour(self, location: str) -> StateStore:
        return open_store(location, self._options)

    @override
    def medium(self) -> int | None:
        # Of a file system all directories are alike; of buckets the next request may be another's.
        return os.stat(self._root).st_dev if isinstance(self._storage, LocalStorage) else None


ATOMIC_CREATE: Final = {
    known: provider.create for provider in PROVIDERS for known in provider.schemes.values()
} | {SCHEME: "a rename of the NameNode that replaces nothing"}
"""File systems that state may be kept on, in addition to local ones -> why their create is atomic.

The base class of fsspec looks first and writes then, so that two coordinators could both believe
that an epoch is theirs; what inherits that (WebHDFS, FTP, SFTP, SMB, the Azure Data Lake
of the first generation, OSS, the in-memory one) is not in the list.
"""


def open_store(
    place: str | Location,
    storage_options: Mapping[str, Any] | None = None,
    *,
    to_read: bool = False,
) -> StateStore:
    """The store for a path or URL, with retries; nothing is created or looked at yet.

    With `to_read` any file system will do: what others have written is only looked at.

    Raises:
        StateError: a file system whose create is not known to be atomic.
        OptionError: storage options that the client does not know.
    """
    place = Location.of(place)
    if not (to_read or place.is_local or place.scheme in ATOMIC_CREATE):
        raise StateError(
            "state cannot be kept on this file system: its create is not known to be atomic",
            place.url,
            f"the file system {place.scheme!r}",
            "a local path or one of " + ", ".join(ATOMIC_CREATE),
            "Point stateLocation at one of those. The data can stay where it is.",
        )
    return RetryingStateStore(StorageStateStore(place, storage_options))


# Exclusive creates ---------------------------------------------------------------------------
# A store has to let exactly one of several writers create an object. Some servers that speak a
# known protocol ignore its conditions, others look first and write then: these pass with one
# writer, and fail with several.

_AT_ONCE: Final = 8

_AT_A_START: Final = 4

_passed: Final = set[tuple[int, Storage]]()
"""Process and storage; the storage of a bucket is one object for all places in it."""


def check_exclusive_creates(url: str, storage_options: Mapping[str, Any], kept: str) -> None:
    """Try it, once for each bucket in this process; local files and HDFS are known to do it.

    Args:
        url: where an object may be created; it is deleted again.
        storage_options: of the call.
        kept: what is kept there, for the error.

    Raises:
        StateError: several writers have created one object.
    """
    storage = open_storage(url, storage_options)[0]
    if storage.has_directories or (os.getpid(), storage) in _passed:
        return
    store = RetryingStateStore(StorageStateStore(url, storage_options))
    try:
        race(store, _AT_A_START)
    except AssertionError as error:
        raise StateError(
            "the store allowed an object to be created twice",
            store.location,
            str(error),
            "a create that fails if the object exists (If-None-Match: * on S3)",
            f"Keep {kept} on a store that honors conditional writes.",
        ) from error
    _passed.add((os.getpid(), storage))


def race(store: StateStore, writers: int = _AT_ONCE) -> str:
    """Create one object several times at once.

    Raises:
        AssertionError: not exactly one writer has created it.
    """
    name, is_away = probe_name(), False
    try:
        with ThreadPoolExecutor(writers) as pool:
            outcomes = list(pool.map(lambda at: created(store, name, b"%d" % at), range(writers)))
        content = store.read(name)
    except StateError as error:
        is_away = may_pass(error)
        raise
    finally:
        # Where nothing may be deleted, it stays, and listings leave out its name. A store that is
        # away is not waited for again.
        if not is_away:
            with contextlib.suppress(StateError):
                store.delete(name)
    winners = [at for at, won in enumerate(outcomes) if won]
    assert len(winners) == 1, f"{len(winners)} of {writers} learned that they had created it"
    assert content == b"%d" % winners[0], "the object has the content of a writer that did not win"
    return f"1 of {writers} at a time created it"


def created(store: StateStore, name: str, data: bytes) -> bool:
    """True if this call has created the object."""
    try:
        store.publish(name, data)
    except FileExistsError:
        return False
    return True


def probe_name() -> str:
    """Return a name that no object has."""
    return f"{PROBE}{uuid.uuid4().hex}"
