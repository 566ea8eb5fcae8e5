"""The contract of durable state: create-only publish, read, list, delete.

Not here: what keeps it and retries (`local.py`, `open_store.py`), and what the
objects mean (`documents/layout.py`, `documents/checkpoint.py`, `documents/reader_commit.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod


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
