"""Objects of which only the newest count: each incarnation of the coordinator numbers its own.

Not here: what is in them (`heartbeat.py`, `cleanup_marks.py`).
"""

from __future__ import annotations

from typing import Final

from ..stores.contract import StateStore


class NumberedObjects:
    """One folder of a state directory, written to by the incarnation of `epoch`."""

    def __init__(self, store: StateStore, folder: str, epoch: int, kept: int) -> None:
        """`kept` is how many of the newest stay, those of earlier incarnations included."""
        self._store: Final = store
        self._folder: Final = folder
        self._epoch: Final = epoch
        self._kept: Final = kept
        self._number = 0

    def publish(self, data: bytes) -> None:
        """Write the next one; those that are too old then go."""
        self._number += 1
        leaf = f"{self._epoch:010d}-{self._number:010d}.json"
        self._store.publish(f"{self._folder}/{leaf}", data)
        # What a newer incarnation has written is not ours to delete. Publishing first means that a
        # crash leaves one object too many, never none.
        until = [known for known in self._store.list(self._folder) if known <= leaf]
        for known in until[: -self._kept]:
            self._store.delete(f"{self._folder}/{known}")
