"""When what a checkpoint has read may be taken out of the source's way, and how far that has come.

Checkpoints are cleaned one by one along the chain, the oldest first. One is due when Spark will
never ask for it again, when it is old enough, and when no checkpoint that is promised to be
retained would read its splits again. What was read follows from checkpoints and reader commits, so
nothing is written down but a mark of how far the work has come; checkpoints behind it are retained.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from ....checkpoint_meta.documents.checkpoint import Checkpoint
from ....checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ....checkpoint_meta.documents.cleanup_marks import CleanupMarks
from ....checkpoint_meta.documents.orders import Order, Orders
from ....checkpoint_meta.documents.reader_assignment import part_of, readers_of
from ....checkpoint_meta.documents.reader_commit import ReaderCommits
from ....checkpoint_meta.files.file_split import RETRACTS, FileSplit
from ....errors import StateMissingError
from ...coordinator.upkeep import Backoff
from ...source_api import OpenState, SourceCleaner
from ..ledger_source import FilesSource
from .file_cleaner import FileCleaner

_PER_MARK = 10
"""Checkpoints after which a mark is written, if there is more to do."""

_MOST_FAILING = 1000
"""With more failures than this the next checkpoint waits, which bounds the marks."""


@dataclass(frozen=True)
class _Link:
    ref: CheckpointRef
    created: int
    orders: int
    """See `CheckpointHeader.orders`."""
    since: float
    """When it was cut, by the time that passes: a wall clock may be set."""


class SourceCleanup(SourceCleaner):
    """Cleans up after one query, through `cleaner`."""

    def __init__(self, cleaner: FileCleaner, source: FilesSource, state: OpenState) -> None:
        self._cleaner, self._source, self._state = cleaner, source, state
        self._orders: list[Order] = []
        """What they want read again is not cleaned up before."""
        self._lost = 0
        """The newest order that is contained and gone: what it wants read again is unknown."""
        self._commits = ReaderCommits(state.store)
        self._lineage = ""
        self._marks = CleanupMarks(state.store, state.epoch)
        self._lock = threading.Lock()
        self._end = NO_CHECKPOINT
        """Spark will never ask for this one or those before it again."""
        self._head = NO_CHECKPOINT
        """Up to here the chain is known."""
        self._done = NO_CHECKPOINT
        self._chain: deque[_Link] = deque()
        """What is not cleaned yet, up to the head, the oldest first."""
        self._is_loaded = False
        self._unmarked = 0
        """Checkpoints that were cleaned since the last mark: still needed, too."""
        self._is_better = False
        """True if something that had failed was done since the last mark."""
        # When earlier checkpoints were cut only the wall clock can tell, as it is at the start.
        self._ahead = state.clock() - time.monotonic()
        self._backoff = Backoff()

    @override
    def completed(self, end: CheckpointRef) -> None:
        self._end = max(self._end, end)

    @override
    def hold(self) -> tuple[CheckpointRef, int] | None:
        with self._lock:
            needed = len(self._chain) + self._unmarked
            return (self._head, needed) if self._is_loaded else None

    @override
    def figures(self) -> Mapping[str, Any]:
        return {**self._cleaner.figures(), "checkpointsToClean": len(self._chain)}

    @override
    def step(self) -> bool:
        end = self._end
        if end == NO_CHECKPOINT:
            return False
        if not self._is_loaded or end != self._head:
            self._follow(end)
        if self._cleaner.failing and self._backoff.is_due:
            self._tidy()
        if self._cleaner.failing > _MOST_FAILING or not self._is_due():
            self._mark()
            return False
        self._clean(self._chain[0])
        return True

    def _follow(self, end: CheckpointRef) -> None:
        """Learn the chain up to `end`; at first as far back as it is retained and not cleaned."""
        head = self._head
        marks = [] if self._is_loaded else self._marks.found()
        newest = self._state.history.load(end).header
        if not self._is_loaded:
            self._find_orders(newest.orders)
        # What another chain has cleaned up, or could not, this one may not have read.
        self._lineage = newest.lineage
        marked = {m.ref: m for m in reversed(marks) if m.lineage == self._lineage}
        links, ref = deque[_Link](), end
        while ref not in (head, NO_CHECKPOINT) and ref not in marked:
            try:
                header = self._state.history.header(ref)
            except StateMissingError:
                break  # Released before cleaning was requested.
            # From the newest back to the oldest, and cleaned in the order of time.
            is_own = ref.epoch == self._state.epoch
            since = time.monotonic() if is_own else header.created / 1e6 - self._ahead
            links.appendleft(_Link(ref, header.created, header.orders, since))
            ref = header.parent
        if ref in marked:
            self._done = ref
            contained = self._orders_in(ref)
            if contained >= self._lost:
                self._cleaner.restore(marked[ref].state)
            # What a mark says was made before any order that it does not know.
            self._spare(contained)
        with self._lock:
            self._chain.extend(links)
            self._head, self._is_loaded = end, True

    def _is_due(self) -> bool:
        if not self._chain:
            return False
        settings, kept = self._state.settings, 0
        seconds = settings.clean_after
        if not settings.clean_while_retained:
            kept = settings.retained_checkpoints
            seconds = max(seconds, settings.retained_seconds)
        first = self._chain[0]
        age = min(self._state.clock() - first.created / 1e6, time.monotonic() - first.since)
        return len(self._chain) > kept and age >= seconds

    def _find_orders(self, contained: int) -> None:
        folder = Orders(self._state.store)
        numbers = folder.numbers()
        self._orders = [order for order in map(folder.read, numbers) if order.reads_again]
        self._lost = max(set(range(1, contained + 1)).difference(numbers), default=0)

    def _orders_in(self, ref: CheckpointRef) -> int:
        try:
            return self._state.history.header(ref).orders
        except StateMissingError:
            return 0

    def _spare(self, contained: int) -> None:
        for order in self._orders:
            if order.number > contained:
                self._cleaner.spare(order.read_splits(self._source.split_serializer))

    def _clean(self, link: _Link) -> None:
        ref = link.ref
        checkpoint = self._state.history.load(ref)
        if link.orders >= self._lost:
            self._cleaner.take_in(self._read_in(checkpoint), checkpoint.header.created)
        # After `take_in`: orders that this checkpoint does not contain want some of its splits
        # again.
        self._spare(link.orders)
        self._tidy()
        with self._lock:
            self._chain.popleft()
            # It is retained until a mark says that it is done: a crash before that repeats it.
            self._unmarked += 1
        self._done = ref
        if self._unmarked >= _PER_MARK:
            self._mark()

    def _tidy(self) -> None:
        before = self._cleaner.failing
        self._cleaner.clean(self._state.check_still_ours)
        if self._cleaner.failing < before:
            self._is_better = True
            self._backoff = Backoff()
        # Every call tries all of them again: those in between do not make the wait longer.
        if self._cleaner.failing and self._backoff.is_due:
            self._backoff.failed()

    def _mark(self) -> None:
        if not (self._unmarked or self._is_better) or self._done == NO_CHECKPOINT:
            return
        if self._cleaner.failing > _MOST_FAILING:
            return  # After a crash the checkpoints tell it all again.
        self._state.check_still_ours()
        self._marks.publish(self._done, self._lineage, self._cleaner.state())
        with self._lock:
            self._unmarked, self._is_better = 0, False

    def _read_in(self, checkpoint: Checkpoint) -> Iterator[tuple[FileSplit, FileSplit | None]]:
        """Return what its readers have read for certain; without a commit nothing is certain."""
        serializer = self._source.split_serializer
        for reader in readers_of(checkpoint):
            commit = self._commits.find(checkpoint.identity, reader)
            if commit is None or commit.abandoned:
                continue
            unread = {*commit.returned_indexes, *commit.skipped}
            left = commit.remainders(serializer)
            part = part_of(checkpoint, reader, serializer, self._commits.find)
            for index, split in enumerate(part):
                if split is not None and index not in unread and split.replaces != RETRACTS:
                    yield split, left.get(index)
