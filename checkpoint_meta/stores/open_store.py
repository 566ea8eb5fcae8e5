"""The one door to durable state: names below a path or URL, in any storage.

On a local, or locally mounted, file system; in a bucket; on HDFS; or on an object store by fsspec,
if its create is atomic.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from ...errors import StateError
from ..storage.hdfs_storage import SCHEME
from ..storage.local_storage import LocalStorage
from ..storage.open_storage import open_storage
from ..storage.providers import PROVIDERS
from ..storage.storage_errors import BeyondTheEnd
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
