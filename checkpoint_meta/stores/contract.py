"""The contract of durable state: create-only publish, read, list, delete; and retries around it."""

from __future__ import annotations

import errno
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, TypeVar

from typing_extensions import override

from ...errors import StateError, remedy_of
from ..storage.storage_errors import delays, is_final, patiently

T = TypeVar("T")
U = TypeVar("U")

LOG: Final = logging.getLogger("pyspark_sluice.state")


class StateStore(ABC):
    """Named immutable objects. Names are relative, with `/` between directory and leaf.

    An object appears whole or not at all, and never changes once it is there.
    """

    location: str
    """The root as the user would write it; for messages."""

    @abstractmethod
    def publish(self, name: str, data: bytes) -> None:
        """Create `name` with `data`; durable when this returns.

        Raises:
            FileExistsError: `name` is there already. A store that repeats requests by itself may
                raise it for what it has just created: the caller compares the content.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The whole content of `name`.

        Raises:
            FileNotFoundError: there is no such object.
        """

    @abstractmethod
    def read_part(self, name: str, start: int, length: int) -> bytes:
        """`length` bytes of `name` from `start` on, fewer where it ends; one look, however large.

        Raises:
            FileNotFoundError: there is no such object.
        """

    @abstractmethod
    def list(self, directory: str) -> list[str]:
        """Leaf names directly in `directory`, sorted; empty if it does not exist."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove `name`, an object or a directory of objects; nothing happens if it is gone."""

    def refresh(self, directory: str) -> None:  # noqa: ARG002 - most stores remember nothing
        """Forget what this machine may remember of `directory`: the next look is a real one."""
        return

    def neighbour(self, location: str) -> StateStore | None:  # noqa: ARG002 - a store in memory has no neighbours
        """The store of another location, opened with the same options; None without one."""
        return None

    def medium(self) -> int | None:
        """A number that stores share whose creates are alike; None if each has to be tried."""
        return None


class RetryingStateStore(StateStore):
    """Retries passing faults of another store, with back-off, and raises the last one by name.

    With the defaults a store may be away for some 20 seconds.

    A publish whose answer was lost may have succeeded, and clients repeat requests on their own
    without a word: an object that is there already is ours exactly if its content is, and it is
    there if it can be read. A caller that must not share an object puts something unique into it.
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
            times = "" if is_final(error) else " repeatedly"
            raise StateError(
                f"the state store failed to {verb}{times}",
                f"{self.location}/{name}",
                f"{type(error).__name__}: {error.strerror or error}",
                "a store that responds",
                remedy_of(error)
                or "Repair access to the state directory, then restart: nothing is lost.",
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
                stored = self._inner.read(name)
            except FileNotFoundError:
                # What exists can be read. S3 and Azure say 409 of a create that met another one,
                # which may have failed; a network file system may show an object late.
                self._inner.refresh(name.rpartition("/")[0])
                why = f"it exists, says the store, and does not return it ({error})"
                raise OSError(errno.EAGAIN, why, name) from error
            if stored == data:
                return
            if self._inner.read(name) != stored:
                # Else a bit that flipped on the way would make another query's of it.
                raise OSError(errno.EAGAIN, "two readings of it differ", name) from error
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

    @override
    def neighbour(self, location: str) -> StateStore | None:
        return self._inner.neighbour(location)

    @override
    def medium(self) -> int | None:
        return self._inner.medium()


def delete_permitted(store: StateStore, names: Iterable[str]) -> None:
    """Delete what is not needed, up to the first that the store does not let go."""
    try:
        for name in names:
            store.delete(name)
    except (OSError, StateError) as error:
        LOG.warning("an object that is no longer needed stays: %s", error)


_TRIES: Final = 32
_FIRST_PAUSE: Final = 0.01


def next_created(
    store: StateStore,
    folder: str,
    create: Callable[[], T],
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Call `create`, which takes the next number of `folder`, until no other process was faster.

    Raises:
        StateError: another one was each time.
    """
    for pause in islice(delays(_FIRST_PAUSE), _TRIES):
        try:
            return create()
        except FileExistsError:
            # A network file system may serve an old listing, and with it the same number again.
            store.refresh(folder)
            sleep(pause)
    raise StateError(
        "no number could be taken for a new object",
        f"{store.location}/{folder}",
        f"each of {_TRIES} was taken by somebody else",
        "a number that nobody else takes at the same moment",
        "Start fewer processes on this state at once, then start again: nothing is lost.",
    )


_FEW: Final = 5
"""For fewer requests no threads are started."""

_REQUESTS: Final = 32
"""Under way at once: enough for a store that takes a hundred milliseconds to answer."""


def in_parallel(ask: Callable[[U], T], items: Sequence[U]) -> list[T]:
    """`ask` of each item, in their order; many requests to a store are under way at once."""
    if len(items) < _FEW:
        return [ask(item) for item in items]

    def asked(item: U) -> tuple[list[T], BaseException | None]:
        try:
            return [ask(item)], None
        except BaseException as error:  # noqa: BLE001 - a pool loses what is no Exception
            return [], error

    from multiprocessing.pool import ThreadPool

    # What takes the time is the wait for the store, so threads are enough. Theirs are daemons: a
    # request that hangs keeps no process alive.
    with ThreadPool(min(_REQUESTS, len(items))) as pool:
        answers = pool.map(asked, items, chunksize=1)
    for _, error in answers:
        if error is not None:
            raise error
    return [answer for part, _ in answers for answer in part]
