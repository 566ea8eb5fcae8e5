"""Messages that are ours for a while: received, kept from others, and deleted when told so.

Two threads, both daemons: one receives with long polls, one keeps what is held and deletes what is
done. A queue that does not answer is asked again and again, and `take` reports it.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from .....checkpoint_meta.storage.storage_errors import delays, is_final
from .api import LONG_POLL, EventQueue, Message

SHORT_POLL = 1
"""Seconds to wait where more may be there; without any wait SQS looks at a part of itself only."""

_LAST_POLL = SHORT_POLL + 2.0
"""Seconds in which the last short poll of a run should end."""

_MOST_HELD = 20_000
"""Messages at a time: SQS itself lets 120,000 be in flight."""

_UNREACHABLE = 4
"""Failures in a row before they are reported; the client has tried again before each."""


class _Health:
    """The failures of one of the threads."""

    def __init__(self) -> None:
        self._failures = 0
        self.last: OSError | None = None
        """The newest failure, if no success followed."""

    @property
    def failure(self) -> OSError | None:
        """The newest failure, if another try is unlikely to help."""
        return self.last if is_final(self.last) or self._failures >= _UNREACHABLE else None

    def failed(self, error: OSError) -> None:
        self._failures += 1
        self.last = error

    def worked(self) -> None:
        self._failures, self.last = 0, None


class MessageReceiver:
    """Receives from one queue and hands out each message once, however often it is delivered."""

    def __init__(self, queue: EventQueue, dead_letters: EventQueue | None) -> None:
        self.queue = queue
        self._dead_letters = dead_letters
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._new: list[Message] = []
        self._held: dict[str, Message] = {}
        self._done: list[Message] = []
        self._receiving, self._keeping = _Health(), _Health()
        self._broken: OSError | None = None
        """What a thread ended with that must not end."""
        self._was_empty = False
        """True once the queue had nothing more."""
        self._counts: Counter[str] = Counter()
        self.longest_poll = LONG_POLL
        """A server hides what comes during a poll, also if its client is gone: a run that is going
        to end leaves no long one open."""
        self._polling: threading.Thread | None = None

    def start(self) -> None:
        """Start the two threads that receive and keep messages."""
        for run in (self._receive, self._keep):
            thread = threading.Thread(
                target=self._guarded, args=(run,), name="sluice-queue", daemon=True
            )
            if run == self._receive:
                self._polling = thread
            thread.start()

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:  # noqa: BLE001 - `take` reports it
            # Otherwise the query would wait, without a word, for a queue that is not polled.
            broken = OSError(errno.EIO, f"{type(error).__name__}: {error}", self.queue.url)
            broken.__cause__ = error
            with self._changed:
                self._broken = broken
                self._changed.notify_all()

    def close(self) -> None:
        """Stop; what is held comes back to the queue by itself."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        if self._polling is not None and self.longest_poll == SHORT_POLL:
            # The last poll ends, and what it has brought is released.
            self._polling.join(_LAST_POLL)

    # For the listing's thread -----------------------------------------------------------------

    def take(self, patience: float = 0.0) -> tuple[list[Message], OSError | None]:
        """Take what has come since the last call; returns as well why there may be more.

        With `patience` it waits, at most for so many seconds, until the queue has been empty once
        since the start; an error before that is reported even if it may pass.
        """
        deadline = time.monotonic() + patience
        with self._changed:
            while self._failure is None and not self._stopped.is_set() and not self._was_empty:
                left = deadline - time.monotonic()
                if left <= 0 or len(self._held) >= _MOST_HELD:
                    break
                self._changed.wait(left)
            failure = self._failure
            if failure is None and patience and not self._was_empty:
                failure = self._receiving.last
            taken, self._new = self._new, []
            return taken, failure

    @property
    def _failure(self) -> OSError | None:
        return self._broken or self._receiving.failure or self._keeping.failure

    def done(self, messages: Iterable[Message], reason: str = "") -> None:
        """Delete these, when there is time; `reason` is what they count as."""
        with self._changed:
            for message in messages:
                held = self._held.pop(message.identity, None)
                if held is not None:
                    self._done.append(held)
                    if reason:
                        self._counts[reason] += 1
            self._changed.notify_all()

    def malformed(self, message: Message) -> None:
        """To the dead letter queue if there is one; else the queue's own redrive sees to it.

        Raises:
            OSError: the dead letter queue does not answer; the message is still held.
        """
        if self._dead_letters is not None:
            self._dead_letters.send(message.body)
            self.done([message], "malformed")
            return
        with self._changed:
            self._held.pop(message.identity, None)
            self._counts["malformed"] += 1

    def counted(self, reason: str, count: int = 1) -> None:
        """So many more of something that is no message."""
        if count:
            with self._changed:
                self._counts[reason] += count

    def figures(self) -> Mapping[str, int]:
        """Since the start, and what is held now."""
        with self._changed:
            return {**self._counts, "held": len(self._held)}

    # The threads ------------------------------------------------------------------------------

    def _receive(self) -> None:
        pauses, wait = delays(), SHORT_POLL
        while not self._stopped.is_set():
            with self._changed:
                # What is held is kept from others again and again, so it is bounded.
                if len(self._held) >= _MOST_HELD:
                    self._changed.wait(1.0)
                    continue
            try:
                messages = self.queue.receive(wait)
            except OSError as error:
                self._failed(self._receiving, error, "failedReceives")
                self._stopped.wait(next(pauses))
                continue
            pauses = delays()
            if self._stopped.is_set():
                # What a poll brought that was under way.
                with suppress(OSError):
                    self.queue.release(messages)
                return
            # The first answers have to show soon that there is nothing; later ones may wait.
            wait = SHORT_POLL if messages else self.longest_poll
            self._arrived(messages)

    def _failed(self, health: _Health, error: OSError, reason: str) -> None:
        with self._changed:
            self._counts[reason] += 1
            health.failed(error)
            self._changed.notify_all()

    def _arrived(self, messages: list[Message]) -> None:
        with self._changed:
            self._receiving.worked()
            for message in messages:
                self._counts["received"] += 1
                if message.identity in self._held:
                    # Delivered again: only the newest receipt deletes it.
                    self._counts["redelivered"] += 1
                else:
                    self._new.append(message)
                self._held[message.identity] = message
            self._was_empty = self._was_empty or not messages
            self._changed.notify_all()

    def _keep(self) -> None:
        pauses = delays()
        kept = time.monotonic()
        while not self._stopped.is_set():
            with self._changed:
                if not self._done:
                    self._changed.wait(max(0.05, self.queue.visibility / 6))
                done, self._done = self._done, []
            try:
                if done:
                    deleted = self.queue.delete(done)
                    done = []
                    with self._changed:
                        self._counts["deleted"] += deleted
                # After a third of the time, so that a round may fail before other receivers get the
                # messages.
                if time.monotonic() - kept > self.queue.visibility / 3:
                    kept = time.monotonic()
                    with self._changed:
                        held = list(self._held.values())
                    self.queue.keep(held)
                with self._changed:
                    self._keeping.worked()
                pauses = delays()
            except OSError as error:
                # What is not deleted comes again, and is known.
                with self._changed:
                    self._done = done + self._done
                self._failed(self._keeping, error, "failedDeletes" if done else "failedKeeps")
                self._stopped.wait(next(pauses))
