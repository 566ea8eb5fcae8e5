"""Several queries in one process: a thread each, and the same processes for the tasks of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final, Protocol

from typing_extensions import override

from ...checkpoint_meta.documents.query_records import RunSummary
from ...checkpoint_meta.storage.storage_errors import may_pass
from ...errors import FencedError, QueryRunningError
from ..query.start_check import StartTerms
from .embedded_query import EmbeddedRun, Sink, Stopped
from .run import checked_with_target
from .run_record import BatchReport
from .worker_pool import WorkerPool

_AGAIN: Final = 60.0
"""Seconds after which a feed is tried again that may go on by itself."""


_AT_ONCE: Final = 2
"""Feeds that begin at the same time."""

_APART: Final = 0.1
"""Seconds that a feed waits at most for the first look of one before it."""

_TOGETHER: Final = 1.0
"""Seconds after which all feeds have begun."""


@dataclass(frozen=True)
class Feed:
    """One query: what it reads, into which table, and how."""

    options: Mapping[str, object]
    to: str | Sink
    every: float | None = None
    """Seconds between two looks for new files; None to end with what is there."""

    terms: StartTerms = field(default_factory=StartTerms)
    task_timeout: float | None = None


class FeedWatcher(Protocol):
    """Learns what becomes of feeds, from the thread of each."""

    def begins(self, name: str, run: EmbeddedRun, /) -> None:
        """A run of the feed is about to start."""

    def on_task(self, name: str, done: int, tasks: int, /) -> None:
        """So many tasks of the batch have finished, of so many."""

    def batch(self, name: str, report: BatchReport) -> None:
        """A batch is in the table."""

    def ended(self, name: str, summary: RunSummary | None, error: BaseException | None) -> None:
        """The run has ended; without a summary it has not even begun."""


class Feeds:
    """Runs feeds until each has ended; a feed that fails does not stop the others."""

    def __init__(self, workers: int | None, watchers: Sequence[FeedWatcher]) -> None:
        self.pool = WorkerPool(workers)
        self.watchers = watchers
        self._running: dict[str, _Thread] = {}
        self._messages = SimpleQueue[Callable[[], None]]()
        self._is_stopping = False
        self.failures: dict[str, BaseException] = {}
        """The error that each feed ended with, of those that did."""

    def run(self, feeds: Mapping[str, Feed]) -> None:
        """Run feeds to their ends."""
        try:
            self._change(feeds)
            while self._running:
                self._messages.get()()
        finally:
            # An exception of this thread, such as a pipe that was closed.
            for thread in self._running.values():
                thread.stop.set()
            for thread in self._running.values():
                thread.join()
            self.pool.close()

    def stop(self) -> None:
        """End each feed after its batch. May be called by the handler of a signal."""
        self.send(self._stop)

    def change(self, feeds: Callable[[], Mapping[str, Feed] | None]) -> None:
        """Begin feeds that are new, and end those that are gone, after their batches.

        A feed that is another one by now ends and begins. `feeds` is called by the thread of `run`;
        None changes nothing. May be called by the handler of a signal.
        """

        def change() -> None:
            changed = feeds()
            if changed is not None:
                self._change(changed)

        self.send(change)

    def send(self, message: Callable[[], None]) -> None:
        """Have the thread of `run` call it."""
        # Of all queues this one may be used within itself, as a handler does.
        self._messages.put(message)

    def _stop(self) -> None:
        self._is_stopping = True
        for thread in self._running.values():
            thread.successor = None
            thread.stop.set()

    def _change(self, feeds: Mapping[str, Feed]) -> None:
        if self._is_stopping:
            return
        for name, thread in self._running.items():
            if feeds.get(name) != thread.feed or thread.stop.is_set():
                thread.successor = feeds.get(name)
                thread.stop.set()
        last, beginning = time.monotonic() + _TOGETHER, list[_Thread]()
        for name, feed in feeds.items():
            if name in self._running:
                continue
            if len(beginning) == _AT_ONCE:
                # More of them take the lock of the interpreter from each other, ten thousand times
                # where each lists a directory. A store is not waited for.
                left = max(0.0, last - time.monotonic())
                beginning.pop(0).has_looked.wait(min(_APART, left))
            beginning.append(self._begin(name, feed))

    def _begin(self, name: str, feed: Feed) -> _Thread:
        self.failures.pop(name, None)
        thread = self._running[name] = _Thread(name, feed, self)
        thread.start()
        return thread

    def has_ended(self, name: str) -> None:
        """A thread has nothing left to do."""
        thread = self._running.pop(name)
        thread.join()
        if thread.error is not None:
            self.failures[name] = thread.error
        if thread.successor is not None:
            self._begin(name, thread.successor)
        self.end_if_all_wait()

    def end_if_all_wait(self) -> None:
        """End where no feed is at work any more."""
        # What waits to be tried again keeps no process alive: who started it may start it again.
        if all(thread.waits for thread in self._running.values()):
            self._stop()


class _Thread(Thread):
    """Runs one feed, again and again where that may help."""

    def __init__(self, name: str, feed: Feed, feeds: Feeds) -> None:
        super().__init__(name=f"sluice-feed-{name}", daemon=True)
        self.feed, self.stop = feed, Event()
        self.successor: Feed | None = None
        self.error: BaseException | None = None
        self.has_looked = Event()
        """Set once the first look for new files has an answer."""

        self.waits = False
        """True while nothing runs, until the feed is tried again."""
        self._key, self._feeds = name, feeds

    @override
    def run(self) -> None:
        while True:
            self._run_once()
            if self.feed.every is None or not _goes_on_after(self.error) or self.stop.is_set():
                break
            self.waits = True
            self._feeds.send(self._feeds.end_if_all_wait)
            if self.stop.wait(_AGAIN):
                break
            self.waits = False
        self._feeds.send(lambda: self._feeds.has_ended(self._key))

    def _run_once(self) -> None:
        self.error, summary, feed = None, None, self.feed
        try:
            run = EmbeddedRun(
                *checked_with_target(feed.options, feed.to),
                self._feeds.pool,
                every=feed.every,
                on_task=lambda done, tasks: self._tell("on_task", done, tasks),
                terms=feed.terms,
                task_timeout=feed.task_timeout,
            )
            self._tell("begins", run)
            try:
                for report in run.batches(self._wait):
                    self.has_looked.set()
                    self._tell("batch", report)
            finally:
                summary = run.summary
        except BaseException as error:  # noqa: BLE001 - the thread of `Feeds.run` has them all
            self.error = error
        self.has_looked.set()
        try:
            self._tell("ended", summary, self.error)
        # Such as a pipe that was closed; the thread of `Feeds.run` waits for this one.
        except BaseException as error:  # noqa: BLE001
            self.error = self.error or error

    def _wait(self, seconds: float) -> None:
        if seconds:
            self.has_looked.set()
        if self.stop.wait(seconds):
            raise Stopped

    def _tell(self, what: str, *arguments: object) -> None:
        for watcher in self._feeds.watchers:
            getattr(watcher, what)(self._key, *arguments)


def _goes_on_after(error: BaseException | None) -> bool:
    """True if the feed is tried again by itself."""
    # Who has taken over means it: only the next start of this process may ask for the state again.
    is_superseded = isinstance(error, FencedError) and not isinstance(error, QueryRunningError)
    return may_pass(error) and not is_superseded
