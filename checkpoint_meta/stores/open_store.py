"""The one door to durable state: which store a path or URL means, and retries around it.

Not here: the contract (`contract.py`) and the stores (`local.py`, `object.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from typing_extensions import override

from ...errors import StateError
from ..storage.bucket import open_bucket
from ..storage.retries import is_final, patiently
from ..storage.urls import local_path, storage_url
from .contract import StateStore
from .local import LocalStateStore
from .object import BucketStateStore, ObjectStateStore, check_atomic_create

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
        self._attempts = attempts
        self._first_delay = first_delay
        self._sleep = sleep

    @property
    @override
    def location(self) -> str:
        return self._inner.location

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
