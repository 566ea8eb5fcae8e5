"""Which messages may be deleted: those whose files are all in a checkpoint that is complete.

Asked from the listing's thread and told of checkpoints by the coordinator's.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from ..api import KnownFiles
from .api import Message
from .message_receiver import MessageReceiver


@dataclass
class HeldMessage:
    """A message and the files it tells of that are to be taken."""

    message: Message
    paths: dict[str, str]
    """Names in the store -> paths as the ledger has them."""

    was_handed_over: bool = False
    """True once all of them are in the ledger."""

    checkpoints: set[int] = field(default_factory=set)
    """Those that hold all of its files."""


class MessageAcks:
    """All messages that are held for their files."""

    def __init__(self, receiver: MessageReceiver, *, wants_versions: bool) -> None:
        """`wants_versions`: that a path is known does not say that its version is."""
        self._receiver = receiver
        self._wants_versions = wants_versions
        self._lock = threading.Lock()
        self._held: dict[str, HeldMessage] = {}
        self._telling_of: dict[str, list[HeldMessage]] = {}
        self._known_at: dict[int, int] = {}
        """Checkpoint -> files that were known at its cut."""
        self._known: KnownFiles | None = None
        self._waiting: frozenset[str] = frozenset()
        self._durable: int | None = None
        """Files known at the cut of the newest complete checkpoint; all of them are in it."""

    def begin_pass(self, ledger: KnownFiles) -> None:
        """Begin a pass over what the queue announces."""
        with self._lock:
            if self._durable is None:
                # All that is known before the first pass came out of a checkpoint.
                self._durable = len(ledger)
            self._known = ledger

    def entered(self, waiting: Container[str]) -> None:
        """Note that what was yielded is in the ledger, but for the names that still wait."""
        with self._lock:
            for entry in self._held.values():
                entry.was_handed_over = not any(name in waiting for name in entry.paths)

    def hold(self, entry: HeldMessage) -> None:
        """Keep a message until a complete checkpoint has all of its files."""
        with self._lock:
            self._held[entry.message.identity] = entry
            for name in entry.paths:
                self._telling_of.setdefault(name, []).append(entry)

    def gone(self, name: str) -> None:
        """This file will never be taken."""
        with self._lock:
            for entry in self._telling_of.pop(name, ()):
                entry.paths.pop(name, None)

    def acknowledge(self, waiting: Iterable[str]) -> None:
        """Delete the messages of which a checkpoint holds everything."""
        with self._lock:
            self._waiting = frozenset(waiting)
            self._acknowledge()

    def _acknowledge(self) -> None:
        done = [entry for entry in self._held.values() if not entry.paths]
        if not self._wants_versions and self._known is not None:
            old = self._all_known(self._known)
            # In this order: what is known and was counted then is in that checkpoint.
            if len(self._known) == self._durable:
                done += [x for x in old if self._waiting.isdisjoint(x.paths)]
        self._release(done)

    def cut(self, checkpoint_id: int, ledger: KnownFiles) -> None:
        """A checkpoint is cut, with all that is known at this instant."""
        with self._lock:
            self._known_at[checkpoint_id] = len(ledger)
            if self._wants_versions:
                # A path may be known in an earlier version: only that its file was entered counts.
                entries = [entry for entry in self._held.values() if entry.was_handed_over]
            else:
                entries = self._all_known(ledger)
            for entry in entries:
                entry.checkpoints.add(checkpoint_id)

    def _all_known(self, ledger: KnownFiles) -> list[HeldMessage]:
        entries = [entry for entry in self._held.values() if entry.paths]
        paths = [path for entry in entries for path in entry.paths.values()]
        if not paths:
            return []
        answers = iter(ledger.are_known(paths).tolist())
        # A list, so that each entry takes all of its answers: a generator stops at the first False.
        return [entry for entry in entries if all([next(answers) for _ in entry.paths])]  # noqa: C419

    def aborted(self, checkpoint_id: int) -> None:
        """The checkpoint is taken back."""
        with self._lock:
            self._known_at.pop(checkpoint_id, None)
            for entry in self._held.values():
                entry.checkpoints.discard(checkpoint_id)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """The checkpoint and all before it are complete."""
        with self._lock:
            for known_at in sorted(at for at in self._known_at if at <= checkpoint_id):
                self._durable = self._known_at.pop(known_at)
            self._release(
                [
                    entry
                    for entry in self._held.values()
                    if any(cut <= checkpoint_id for cut in entry.checkpoints)
                ]
            )
            # Those that came after the cut, of files that were in it: no pass may follow.
            self._acknowledge()

    def _release(self, entries: list[HeldMessage]) -> None:
        for entry in entries:
            del self._held[entry.message.identity]
            for name in entry.paths:
                telling = self._telling_of.get(name, [])
                telling[:] = [other for other in telling if other is not entry]
                if not telling:
                    self._telling_of.pop(name, None)
        self._receiver.done([entry.message for entry in entries])
