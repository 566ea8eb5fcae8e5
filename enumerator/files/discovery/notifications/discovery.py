"""Discovery by notifications: what the queue tells of at once, and all that is there now and then.

A message is deleted only after a checkpoint that holds all of its files is complete; until then it
is kept from other receivers, and after a crash it comes again. What a message says of an object is
never believed: the store is asked what it is now, once, so that late, repeated and reordered
events do no harm. Not here: threads (`inbox.py`), the full pass (`tree_discovery.py`).
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from typing_extensions import override

from .....errors import SourceUnavailable
from ..api import CHUNK, Discovery, FoundFiles, KnownFiles, Skipped, SkippedFile
from ..object_pages import Page
from ..remote_tree import RemoteTree
from ..tally import Tally
from ..tree_discovery import TreeDiscovery
from .inbox import Inbox
from .letters import Letter, Letters
from .messages import MalformedMessage, objects_of
from .queue import Message

_LANES = 16
"""Objects that are asked for at a time."""

_FIRST_DRAIN = 10.0
"""Longest time, in seconds, that the first pass waits for the queue to be empty once."""


class NotificationDiscovery(Discovery):
    """Full passes of `whole`, and between them what the queue tells of."""

    def __init__(
        self,
        whole: TreeDiscovery,
        trees: Callable[[], Sequence[RemoteTree]],
        inbox: Inbox,
        full_listing_interval: float,
        *,
        wants_versions: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`trees` are those of all loaded paths; each is asked what it would take."""
        self._whole = whole
        self._make_trees = trees
        self._trees: Sequence[RemoteTree] = ()
        self._inbox = inbox
        self._interval = full_listing_interval
        self._clock = clock
        self._full_listing: float | None = None
        self._letters = Letters(inbox, wants_versions=wants_versions)
        self._wants_versions = wants_versions
        self._waiting: dict[str, None] = {}
        """Names that were told of and are not taken yet: not settled, not marked ready."""
        self._left_out: Counter[str] = Counter()
        self._started = False

    @property
    @override
    def skipped(self) -> Skipped:
        whole = self._whole.skipped
        return Skipped(dict(sorted((Counter(whole.counts) + self._left_out).items())), whole.sample)

    @override
    def listing(self, known: KnownFiles) -> Iterator[FoundFiles]:
        is_first = not self._started
        if is_first:
            self._started = True
            self._trees = self._make_trees()
            self._inbox.start()
        self._letters.begin_pass(known)
        began = self._clock()
        if self._full_listing is None or not 0 <= began - self._full_listing < self._interval:
            self._left_out.clear()
            yield from self._whole.listing(known)
            self._full_listing = began
        names = self._opened(self._received(_FIRST_DRAIN if is_first else 0.0), known)
        for start in range(0, len(names), CHUNK):
            yield from self._asked(names[start : start + CHUNK], known)

    def _received(self, patience: float) -> list[Message]:
        try:
            return self._inbox.take(patience)
        except OSError as error:
            raise SourceUnavailable(
                "the queue of notifications does not answer",
                str(error.filename or ""),
                f"{type(error).__name__}: {error.strerror or error}",
                "a queue from which messages can be received, kept and deleted",
                "Repair access to queueUrl: no message is lost meanwhile.",
            ) from error

    def _opened(self, messages: Sequence[Message], known: KnownFiles) -> list[str]:
        names: dict[str, None] = dict(self._waiting)
        for message in messages:
            try:
                told = objects_of(message.body)
            except MalformedMessage:
                self._inbox.malformed(message)
                continue
            wanted = [f"{bucket}/{key}" for bucket, key in told]
            covered = [name for name in wanted if any(tree.covers(name) for tree in self._trees)]
            self._inbox.counted("notChosen", len(wanted) - len(covered))
            self._letters.hold(Letter(message, {name: self._path(name) for name in covered}))
            names.update(dict.fromkeys(covered))
        unknown = list(names)
        if not self._wants_versions and unknown:
            are_known = known.are_known([self._path(name) for name in unknown])
            self._inbox.counted("known", int(np.count_nonzero(are_known)))
            unknown = [unknown[at] for at in np.flatnonzero(~are_known).tolist()]
        # An error below leaves them for the next pass.
        self._waiting = dict.fromkeys(unknown)
        self._letters.settle(self._waiting)
        return unknown

    def _tree(self, name: str) -> RemoteTree:
        return next(tree for tree in self._trees if tree.covers(name))

    def _path(self, name: str) -> str:
        return self._tree(name).path_of(name)

    def _asked(self, names: Sequence[str], known: KnownFiles) -> Iterator[FoundFiles]:
        for tree in self._trees:
            tree.begin_pass()
        with ThreadPoolExecutor(min(_LANES, len(names))) as pool:
            pages = list(pool.map(self._page, names))
        found: list[FoundFiles] = []
        for name, page in zip(names, pages, strict=True):
            if not page.names:
                self._inbox.counted("goneObjects")
                self._letters.gone(name)
                del self._waiting[name]
                continue
            tally = Tally(marks_names=True)
            covering = [tree for tree in self._trees if tree.covers(name)]
            found += [tree.judged(page, known, tally) for tree in covering]
            if not tally.waiting:
                del self._waiting[name]
                self._left_out.update(tally.counts)
                if tally.counts:
                    self._letters.gone(name)
        found = [part for part in found if len(part)]
        if found:
            yield _joined(found)
        self._letters.settle(self._waiting)

    def _page(self, name: str) -> Page:
        try:
            return self._tree(name).page_of(name)
        except OSError as error:
            raise SourceUnavailable(
                "an object that a notification tells of cannot be looked at",
                name,
                f"{type(error).__name__}: {error.strerror or error}",
                "a bucket that this process may read",
                "Repair access and restart the query: it continues where it stood.",
            ) from error

    @override
    def left_out(self, known: KnownFiles) -> Iterator[SkippedFile]:
        return self._whole.left_out(known)

    @override
    def position(self) -> Mapping[str, Any]:
        if self._full_listing is None:
            return {}
        return {"fullListing": int(self._full_listing), "told": self._identity()}

    @override
    def resume(self, position: Mapping[str, Any]) -> None:
        # Another queue has not told of what this one has.
        if position.get("told") == self._identity():
            self._full_listing = float(position["fullListing"])

    def _identity(self) -> str:
        return hashlib.sha256(f"{self._whole.identity()} {self._inbox.url}".encode()).hexdigest()[
            :16
        ]

    @override
    def notify_cut(self, checkpoint_id: int, known: KnownFiles) -> None:
        self._letters.cut(checkpoint_id, known)

    @override
    def notify_aborted(self, checkpoint_id: int) -> None:
        self._letters.aborted(checkpoint_id)

    @override
    def notify_complete(self, checkpoint_id: int) -> None:
        self._letters.complete(checkpoint_id)

    @override
    def report(self) -> Mapping[str, Any]:
        return {"notifications": dict(sorted(self._inbox.figures().items()))}

    @override
    def close(self) -> None:
        self._inbox.close()


def _joined(parts: Sequence[FoundFiles]) -> FoundFiles:
    etags = [etag for part in parts for etag in (part.etags or [""] * len(part))]
    return FoundFiles(
        [path for part in parts for path in part.paths],
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.modified for part in parts]),
        etags if any(etags) else None,
    )
