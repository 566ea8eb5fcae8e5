"""The proof that two processes see the same state directory.

A published checkpoint holds its own checksum. A visibility check is that checksum and where it is
in the object: small enough to travel with every task, and one short read to compare, however large
the object is.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from ...errors import ProtocolError, StateNotSharedError
from ..stores.contract import StateStore

T = TypeVar("T")

_PAUSES: Final = (0.2, 1.0)
"""Seconds before the second and the third look; a network file system may be a little behind."""


def look_again(
    look: Callable[[], T],
    is_late: Callable[[T], bool],
    refresh: Callable[[], None],
    sleep: Callable[[float], None],
) -> T:
    """Look up to three times, while it `is_late`, for an object that is known to exist."""
    answer = look()
    for pause in _PAUSES:
        if not is_late(answer):
            break
        sleep(pause)
        refresh()
        answer = look()
    return answer


@dataclass(frozen=True, slots=True)
class VisibilityCheck:
    """A checksum, and where in which object it is."""

    name: str
    position: int
    checksum: str

    @classmethod
    def of(cls, name: str, data: bytes, checksum: str) -> VisibilityCheck:
        """The check of an object that holds `checksum`."""
        # The first of two: an Arrow file has its metadata at its head and in its footer.
        return cls(name, data.index(checksum.encode()), checksum)

    def check(self, store: StateStore, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raise unless `store` holds this very object; one look where it does.

        Raises:
            StateNotSharedError: names the host, the place and what is there instead.
        """
        folder = self.name.rpartition("/")[0]
        problem = look_again(lambda: self._found(store), bool, lambda: store.refresh(folder), sleep)
        if problem:
            raise StateNotSharedError(
                "this executor does not see the state that the driver writes",
                f"{store.location}/{self.name} on host {socket.gethostname()}",
                problem,
                f"the checkpoint with checksum {self.checksum} that the driver has published",
                "Put checkpointLocation (or stateLocation) where the driver and every executor "
                "reach the same directory by the same path: a shared mount or an object store.",
            )

    def check_retained(self, store: StateStore) -> None:
        """Raise if the object is gone, which was there when the task began.

        Raises:
            ProtocolError: the batch ended long ago, and with the checkpoint its commits are gone.
        """
        problem = self._found(store)
        if problem:
            raise ProtocolError(
                "an attempt has ended after the checkpoint that it read was deleted",
                f"{store.location}/{self.name}",
                problem,
                "the checkpoint that the attempt began with",
                "Spark completed this batch long ago, by another attempt: nothing is lost.",
            )

    def _found(self, store: StateStore) -> str:
        """Return what is there instead; empty if it is the very object."""
        try:
            # A part, since each task looks, and a checkpoint with many splits is large.
            there = store.read_part(self.name, self.position, len(self.checksum))
        except FileNotFoundError:
            return "no such object"
        return "" if there == self.checksum.encode() else "another object with that name"
