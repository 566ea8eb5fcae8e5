"""Immutable objects of a source's state that are too large to be written again each time.

A base refers to them by name, size and checksum. They are deleted when nothing that is retained
refers to them any more (`retention.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict
from typing_extensions import override
from xxhash import xxh3_128_hexdigest

from ...errors import StateCorruptError, StateMissingError
from ..stores.contract import StateStore
from .layout import INDEX


class Attachment(BaseModel):
    """An object that a base needs, as the base describes it."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    """Below `index/`: epoch, number, and a suffix of the source's own."""

    bytes: int
    checksum: str
    """XXH3, 128 bits, in hexadecimal."""


class Attachments:
    """Publishes and reads attachments, for one incarnation of the coordinator."""

    def __init__(self, store: StateStore, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._lock = threading.Lock()
        self._number = 0
        self.sound: set[str] = set()
        """Names that this process has published or read whole."""

    def publish(self, *objects: tuple[str, bytes]) -> tuple[Attachment, ...]:
        """Create objects that belong together: a suffix and the content of each.

        Durable when this returns, and deleted some time later unless a base refers to them or
        the enumerator says that it uses them.
        """
        with self._lock:
            self._number += 1
            # No other process can take this name: an epoch is claimed by one coordinator only.
            stem = f"{self._epoch:010d}-{self._number:010d}"
        return tuple(self._publish(f"{stem}.{suffix}", data) for suffix, data in objects)

    def _publish(self, name: str, data: bytes) -> Attachment:
        # After a crash here nothing refers to the object, and retention deletes it.
        self._store.publish(f"{INDEX}/{name}", data)
        self.sound.add(name)
        return Attachment(name=name, bytes=len(data), checksum=xxh3_128_hexdigest(data))

    def read(self, attachment: Attachment) -> bytes:
        """The whole content, verified.

        Raises:
            StateMissingError: it is gone.
            StateCorruptError: it is not what it was.
        """
        where = f"{self._store.location}/{INDEX}/{attachment.name}"
        try:
            data = self._store.read(f"{INDEX}/{attachment.name}")
        except FileNotFoundError as error:
            raise StateMissingError(
                "an object that the state refers to is missing",
                where,
                "no such object",
                f"{attachment.bytes} bytes",
                "Restore the object from a copy, or start at an older checkpoint.",
            ) from error
        checksum = xxh3_128_hexdigest(data)
        if checksum != attachment.checksum:
            raise StateCorruptError(
                "an object that the state refers to is damaged",
                where,
                f"{len(data)} bytes with checksum {checksum}",
                f"{attachment.bytes} bytes with checksum {attachment.checksum}",
                "Restore the object from a copy, or start at an older checkpoint.",
            )
        self.sound.add(attachment.name)
        return data

    def check(self, attachments: Sequence[Attachment]) -> None:
        """Raise, as `read` does, unless all of them are there and are what they were."""
        if not attachments:
            return
        # What is sound is only listed, but not known from memory alone: a directory that was
        # restored from a backup while this query runs lacks what was written since.
        self._store.refresh(INDEX)
        sound = self.sound.intersection(self._store.list(INDEX))
        for attachment in attachments:
            if attachment.name not in sound:
                self.read(attachment)

    def own(self, *attachments: Attachment) -> tuple[Attachment, ...]:
        """The same objects where this state may refer to them."""
        return attachments


class AdoptedAttachments(Attachments):
    """The attachments of a savepoint, which is in another directory: `own` copies them."""

    def __init__(self, savepoint: StateStore, own: Attachments) -> None:
        # No coordinator has epoch 0: nothing is ever published in the savepoint's directory.
        super().__init__(savepoint, 0)
        self._own = own

    @override
    def own(self, *attachments: Attachment) -> tuple[Attachment, ...]:
        # Epoch and number are those of the other directory, and may be taken in this one.
        suffixes = [attachment.name.partition(".")[2] for attachment in attachments]
        contents = map(self.read, attachments)
        return self._own.publish(*zip(suffixes, contents, strict=True))
