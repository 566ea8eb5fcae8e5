"""What a queue of notifications is: its five calls, its messages, and the objects they announce."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

# SQS permits no longer wait.
LONG_POLL = 20
"""Seconds that one call of `receive` waits for messages, at most."""


class Message(NamedTuple):
    """One delivery of a message; another one has another receipt."""

    identity: str
    receipt: str
    body: str


class AnnouncedObject(NamedTuple):
    """An object that a message announces."""

    bucket: str
    key: str


class MalformedMessage(ValueError):
    """A message that is not an event of the store, or names what cannot be read; says why."""


class EventQueue(ABC):
    """One queue of one service. Safe to use from several threads; nothing is asked before a call.

    Every call raises an OSError that names the queue: PermissionError and FileNotFoundError where
    another try does not help. A queue delivers at least once, in any order.
    """

    def __init__(self, url: str, visibility: int) -> None:
        """`visibility` is how long, in seconds, a received message is hidden from others."""
        self.url = url
        self.visibility = visibility

    @property
    def cursor(self) -> str:
        """Up to where every object is in a complete checkpoint; empty where deletions say so."""
        return ""

    def begin(self, cursor: str) -> None:  # noqa: ARG002 - most queues remember
        """Begin behind an earlier `cursor`, or now; called once, before the first listing."""
        return

    def missed(self) -> bool:
        """Return True, once, if objects after the cursor are not announced any more."""
        return False

    @abstractmethod
    def receive(self, wait: int) -> list[Message]:
        """Some messages, hidden from now on; none if none has come for `wait` seconds."""

    @abstractmethod
    def keep(self, messages: Sequence[Message]) -> None:
        """Hide these for another `visibility` seconds, except those that another receiver got."""

    @abstractmethod
    def release(self, messages: Sequence[Message]) -> None:
        """Show these to every receiver, from now on."""

    @abstractmethod
    def delete(self, messages: Sequence[Message]) -> int:
        """Delete these; returns how many of them were still hidden for us."""

    @abstractmethod
    def send(self, body: str) -> None:
        """Put a message into this queue: into a dead-letter queue, exactly as it was received."""

    @classmethod
    def objects_of(cls, body: str) -> list[AnnouncedObject]:
        """The objects that a message announces; none for a test event or a deletion.

        Whether they still exist, and as what, only the store knows: events come late, twice, in any
        order.

        Raises:
            MalformedMessage: it is not an event of the store, or the client cannot request a key.
        """
        try:
            return list(cls._announced_by(body))
        except MalformedMessage:
            raise
        # Anyone who may send can send anything, such as ten thousand brackets.
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise MalformedMessage(f"{type(error).__name__}: {error}") from error

    @staticmethod
    @abstractmethod
    def _announced_by(body: str) -> Iterator[AnnouncedObject]:
        """The same; what else goes wrong while it is parsed means that the message is malformed."""


def event_of(value: Any) -> Mapping[str, Any]:
    """A JSON value that has to be an event.

    Raises:
        MalformedMessage: it is not an object.
    """
    if not isinstance(value, Mapping):
        raise MalformedMessage(f"JSON of type {type(value).__name__}, not an object")
    return value


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def announced(bucket: str, key: str) -> AnnouncedObject:
    """An object whose name the ledger and the client can hold.

    Raises:
        ValueError: they cannot.
    """
    announced_object = AnnouncedObject(bucket, key)
    for text in announced_object:
        # What the ledger and the client take: text that UTF-8 has, in whole parts.
        text.encode()
    # The client's paths have no empty or dotted parts, and no control characters.
    if any(part in ("", ".", "..") for part in key.removesuffix("/").split("/")) or _CONTROL.search(
        key
    ):
        raise MalformedMessage(f"the client cannot request the key {key!r}")
    return announced_object
