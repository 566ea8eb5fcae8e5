"""Which messages may be deleted: those whose files are all in a checkpoint that is complete.

Asked from the listing's thread and told of checkpoints by the coordinator's. Not here: receiving
and deleting (`message_receiver.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from ..api import KnownFiles
from .message_receiver import Inbox
from .sqs import Message


@dataclass
class Letter:
    """A message and the files it tells of that are to be taken."""

    message: Message
    paths: dict[str, str]
    """Names in the store -> paths as the ledger has them."""

    was_handed_over: bool = False
    """True once all of them are in the ledger."""

    checkpoints: set[int] = field(default_factory=set)
    """Those that hold all of its files."""


class Letters:
    """All messages that are held for their files."""

    def __init__(self, inbox: Inbox, *, wants_versions: bool) -> None:
        """`wants_versions`: that a path is known does not say that its version is."""
        self._inbox = inbox
        self._wants_versions = wants_versions
        self._lock = threading.Lock()
        self._letters: dict[str, Letter] = {}
        self._telling_of: dict[str, list[Letter]] = {}
        self._known_at: dict[int, int] = {}
        """Checkpoint -> files that were known at its cut."""
        self._known: KnownFiles | None = None
        self._waiting: frozenset[str] = frozenset()
        self._durable: int | None = None
        """Files known at the cut of the newest complete checkpoint; all of them are in it."""

    def begin_pass(self, known: KnownFiles) -> None:
        """`known` is the ledger."""
        with self._lock:
            if self._durable is None:
                # All that is known before the first pass came out of a checkpoint.
                self._durable = len(known)
            self._known = known

    def entered(self, waiting: Container[str]) -> None:
        """What was yielded is in the ledger, but for the names that still wait."""
        with self._lock:
            for letter in self._letters.values():
                letter.was_handed_over = not any(name in waiting for name in letter.paths)

    def hold(self, letter: Letter) -> None:
        """Another message."""
        with self._lock:
            self._letters[letter.message.identity] = letter
            for name in letter.paths:
                self._telling_of.setdefault(name, []).append(letter)

    def gone(self, name: str) -> None:
        """This file will never be taken."""
        with self._lock:
            for letter in self._telling_of.pop(name, ()):
                letter.paths.pop(name, None)

    def acknowledge(self, waiting: Iterable[str]) -> None:
        """Delete the messages of which a checkpoint holds everything."""
        with self._lock:
            self._waiting = frozenset(waiting)
            self._acknowledge()

    def _acknowledge(self) -> None:
        done = [letter for letter in self._letters.values() if not letter.paths]
        if not self._wants_versions and self._known is not None:
            old = self._all_known(self._known)
            # In this order: what is known and was counted then is in that checkpoint.
            if len(self._known) == self._durable:
                done += [x for x in old if self._waiting.isdisjoint(x.paths)]
        self._let_go(done)

    def cut(self, checkpoint_id: int, known: KnownFiles) -> None:
        """A checkpoint is cut, with all that is known at this instant."""
        with self._lock:
            self._known_at[checkpoint_id] = len(known)
            if self._wants_versions:
                held = [letter for letter in self._letters.values() if letter.was_handed_over]
            else:
                held = self._all_known(known)
            for letter in held:
                letter.checkpoints.add(checkpoint_id)

    def _all_known(self, known: KnownFiles) -> list[Letter]:
        letters = [letter for letter in self._letters.values() if letter.paths]
        paths = [path for letter in letters for path in letter.paths.values()]
        if not paths:
            return []
        answers = iter(known.are_known(paths).tolist())
        return [letter for letter in letters if all([next(answers) for _ in letter.paths])]  # noqa: C419

    def aborted(self, checkpoint_id: int) -> None:
        """The checkpoint is taken back."""
        with self._lock:
            self._known_at.pop(checkpoint_id, None)
            for letter in self._letters.values():
                letter.checkpoints.discard(checkpoint_id)

    def complete(self, checkpoint_id: int) -> None:
        """The checkpoint and all before it are complete."""
        with self._lock:
            for known_at in sorted(at for at in self._known_at if at <= checkpoint_id):
                self._durable = self._known_at.pop(known_at)
            self._let_go(
                [
                    letter
                    for letter in self._letters.values()
                    if any(held <= checkpoint_id for held in letter.checkpoints)
                ]
            )
            # Those that came after the cut, of files that were in it: no pass may follow.
            self._acknowledge()

    def _let_go(self, letters: list[Letter]) -> None:
        for letter in letters:
            del self._letters[letter.message.identity]
            for name in letter.paths:
                telling = self._telling_of.get(name, [])
                telling[:] = [other for other in telling if other is not letter]
                if not telling:
                    self._telling_of.pop(name, None)
        self._inbox.done([letter.message for letter in letters])
