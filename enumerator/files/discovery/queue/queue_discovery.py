"""Discovery by notifications: what the queue tells of at once, and all that is there now and then.

A message is deleted only after a checkpoint that holds all of its files is complete; until then it
is kept from other receivers, and after a crash it comes again. What a message says of an object is
never believed: the store is asked what it is now, once, so that late, repeated and reordered
events do no harm.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from typing_extensions import override

from .....checkpoint_meta.storage.contract import Page
from .....checkpoint_meta.storage.providers import AZURE, GOOGLE, S3
from .....errors import SourceUnavailable
from ..api import (
    CHUNK,
    Discovery,
    FoundFiles,
    KnownFiles,
    SkipCounter,
    Skipped,
    SkippedFile,
    joined,
)
from ..object_store.remote_files import file_page
from ..object_store.remote_tree import RemoteTree
from ..tree_discovery import TreeDiscovery
from .api import EventQueue, MalformedMessage, Message
from .journal import SCHEME, JournalQueue
from .message_acks import HeldMessage, MessageAcks
from .message_receiver import SHORT_POLL, MessageReceiver
from .pubsub import PubSubSubscription
from .sqs import SqsQueue
from .storage_queue import StorageQueue

_WORKERS = 16
"""Objects that are asked for at a time."""

_FIRST_DRAIN = 10.0
"""Longest time, in seconds, that the first pass waits for the queue to be empty once."""


class NotificationDiscovery(Discovery):
    """Full passes of `whole`, and between them what the queue tells of."""

    def __init__(self, whole: TreeDiscovery, receiver: MessageReceiver) -> None:
        self._whole = whole
        self._trees: Sequence[RemoteTree] = ()
        """One for each loaded path, which is asked what of it would be taken."""
        self._receiver = receiver
        self._wants_versions = whole.mode.wants_versions
        self._acks = MessageAcks(receiver, wants_versions=self._wants_versions)
        self._unopened: deque[Message] = deque()
        self._malformed: deque[Message] = deque()
        """Messages that are still to be put into the dead-letter queue."""
        self._waiting: dict[str, None] = {}
        """Names that a message tells of and that are not in the ledger yet."""
        self._yielded: list[str] = []
        """Those of them that this pass has yielded."""
        self._left_out: Counter[str] = Counter()
        self._cursor = ""
        """The place in the queue up to which it was read, as the checkpoint says."""
        self._patience = _FIRST_DRAIN
        self._is_next_short = False
        """The last pass listed everything or waited for the queue: the next one does neither."""

    @property
    @override
    def skipped(self) -> Skipped:
        whole = self._whole.skipped
        return Skipped(dict(sorted((Counter(whole.counts) + self._left_out).items())), whole.sample)

    @override
    def listing(self, ledger: KnownFiles) -> Iterator[FoundFiles]:
        if not self._trees:
            trees = self._whole.make_trees()
            try:
                self._receiver.queue.begin(self._cursor)
            except OSError as error:
                raise _unanswered("queue of notifications", "queueUrl", error) from error
            self._receiver.start()
            self._trees = [one.tree for one in trees if isinstance(one.tree, RemoteTree)]
        self._acks.begin_pass(ledger)
        self._yielded.clear()
        if self._receiver.queue.missed():
            self._whole.full_listing = None
        is_full = self._whole.is_due()
        self._is_next_short = is_full or self._patience > 0
        if is_full:
            self._left_out.clear()
            yield from self._whole.listing(ledger)
        messages, unanswered = self._receiver.take(self._patience)
        self._unopened += messages
        names = self._open(ledger)
        for start in range(0, len(names), CHUNK):
            yield from self._asked(names[start : start + CHUNK], ledger)
        # What fails comes after everything that is of use.
        self._bury()
        if unanswered is not None:
            raise _unanswered("queue of notifications", "queueUrl", unanswered) from unanswered
        self._patience = 0.0

    @override
    def notify_entered(self) -> None:
        self._whole.notify_entered()
        for name in self._yielded:
            self._waiting.pop(name, None)
        self._yielded.clear()
        self._acks.entered(self._waiting)

    def _open(self, ledger: KnownFiles) -> list[str]:
        """The names of all messages that are held, as far as the ledger does not have them."""
        while self._unopened:
            # Removed after it was read: an error leaves it for the next pass.
            self._read(self._unopened[0])
            self._unopened.popleft()
        if not self._wants_versions and self._waiting:
            names = list(self._waiting)
            are_known = ledger.are_known([self._path(name) for name in names])
            self._receiver.counted("known", int(np.count_nonzero(are_known)))
            for at in np.flatnonzero(are_known).tolist():
                del self._waiting[names[at]]
        self._acks.acknowledge(self._waiting)
        return list(self._waiting)

    def _read(self, message: Message) -> None:
        try:
            announced = self._receiver.queue.objects_of(message.body)
        except MalformedMessage:
            self._malformed.append(message)
            return
        wanted = [f"{bucket}/{key}" for bucket, key in announced]
        # A key that ends in a slash is a directory marker.
        files = [name for name in wanted if not name.endswith("/")]
        covered = [name for name in files if any(_covers(tree, name) for tree in self._trees)]
        self._receiver.counted("notChosen", len(wanted) - len(covered))
        self._acks.hold(HeldMessage(message, {name: self._path(name) for name in covered}))
        self._waiting.update(dict.fromkeys(covered))

    def _bury(self) -> None:
        while self._malformed:
            try:
                self._receiver.malformed(self._malformed[0])
            except OSError as error:
                raise _unanswered("dead-letter queue", "deadLetterQueueUrl", error) from error
            self._malformed.popleft()

    def _tree(self, name: str) -> RemoteTree:
        return next(tree for tree in self._trees if _covers(tree, name))

    def _path(self, name: str) -> str:
        return self._tree(name).storage.url(name)

    def _asked(self, names: Sequence[str], ledger: KnownFiles) -> Iterator[FoundFiles]:
        # A marker that was missing in an earlier pass may be there by now.
        for tree in self._trees:
            tree.judge.begin_pass()
        listings: list[FoundFiles] = []
        failures: list[SourceUnavailable] = []
        with ThreadPoolExecutor(min(_WORKERS, len(names))) as pool:
            for name, answer in zip(names, pool.map(self._answer, names), strict=True):
                if isinstance(answer, Page):
                    listings += self._judged(name, answer, ledger)
                    continue
                failures.append(answer)
                # No worker gets an answer: asking for thousands more objects would only delay the
                # error.
                if len(failures) >= _WORKERS:
                    pool.shutdown(cancel_futures=True)
                    break
        listings = [part for part in listings if len(part)]
        if listings:
            yield joined(listings)
        self._acks.acknowledge(self._waiting)
        if failures:
            raise failures[0]

    def _judged(self, name: str, page: Page, ledger: KnownFiles) -> list[FoundFiles]:
        if not page.names:
            self._receiver.counted("goneObjects")
            self._acks.gone(name)
            del self._waiting[name]
            return []
        skips = SkipCounter(marks_names=True)
        listings = [
            # What the counter has is deleted at once, and a known file waits for its checkpoint.
            tree.judge.classify(page, -1, ledger, skips, counts_changed=False)
            for tree in self._trees
            if _covers(tree, name)
        ]
        # It waits for its age or its marker: the next pass asks for it again.
        if skips.waiting:
            return listings
        self._left_out.update(skips.counts)
        if skips.counts:
            self._acks.gone(name)
            del self._waiting[name]
        else:
            self._yielded.append(name)
        return listings

    def _answer(self, name: str) -> Page | SourceUnavailable:
        try:
            return file_page(self._tree(name).storage, name)
        except OSError as error:
            failure = SourceUnavailable(
                "cannot check an object that a notification names",
                name,
                f"{type(error).__name__}: {error.strerror or error}",
                "a bucket that this process can read",
                ("Repair access and restart the query: it resumes from the same point."),
            )
            failure.__cause__ = error
            return failure

    @override
    def left_out(self, ledger: KnownFiles) -> Iterator[SkippedFile]:
        return self._whole.left_out(ledger)

    @override
    def rest(self, seconds: float) -> float:
        # Such a pass only asks the queue, which needs no rest.
        if self._is_next_short and not self._whole.is_due():
            return 0.0
        return super().rest(seconds)

    @override
    def position(self) -> Mapping[str, Any]:
        if self._whole.full_listing is None:
            return {}
        position = {"fullListing": int(self._whole.full_listing), "announced": self._identity()}
        cursor = self._receiver.queue.cursor
        return position | ({"journal": cursor} if cursor else {})

    @override
    def resume(self, position: Mapping[str, Any]) -> None:
        # Another queue has not told of what this one has.
        if position.get("announced") == self._identity():
            self._whole.full_listing = float(position["fullListing"])
            self._cursor = str(position.get("journal", ""))

    def _identity(self) -> str:
        return hashlib.sha256(
            f"{self._whole.identity()} {self._receiver.queue.url}".encode()
        ).hexdigest()[:16]

    @override
    def notify_cut(self, checkpoint_id: int, ledger: KnownFiles) -> None:
        self._acks.cut(checkpoint_id, ledger)

    @override
    def notify_aborted(self, checkpoint_id: int) -> None:
        self._acks.aborted(checkpoint_id)

    @override
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._acks.checkpoint_completed(checkpoint_id)

    @override
    def report(self) -> Mapping[str, Any]:
        return {"notifications": dict(sorted(self._receiver.figures().items()))}

    @override
    def will_end(self) -> None:
        self._receiver.longest_poll = SHORT_POLL

    @override
    def close(self) -> None:
        self._receiver.close()


def _covers(tree: RemoteTree, name: str) -> bool:
    """True if a pass would come to this name and, by the name alone, take it."""
    return tree.scope.covers(name, file=True)


def _unanswered(what: str, option: str, error: OSError) -> SourceUnavailable:
    return SourceUnavailable(
        f"the {what} does not respond",
        str(error.filename or ""),
        f"{type(error).__name__}: {error.strerror or error}",
        "a queue that this process can receive from, send to and delete from",
        f"Repair access to {option}: no message is lost meanwhile.",
    )


@dataclass(frozen=True, slots=True)
class Queues:
    """The queue that messages come from, and the one for malformed messages."""

    url: str
    dead_letters: str = ""
    visibility: int = 120
    """Seconds after which a message that is held no more comes to another receiver."""


QUEUES: Final[Mapping[str, Callable[[str, Mapping[str, Any], int], EventQueue]]] = {
    S3.path_scheme: SqsQueue,
    AZURE.path_scheme: StorageQueue,
    GOOGLE.path_scheme: PubSubSubscription,
}
"""What paths begin with -> the queues that its events go to."""


def notification_discovery(whole: TreeDiscovery, queues: Queues) -> NotificationDiscovery:
    """Full passes of `whole`, and what the queue tells of; nothing is asked yet."""
    is_journal = queues.url.startswith(SCHEME)
    service = JournalQueue if is_journal else QUEUES[whole.paths[0].base.scheme]
    queue, dead = (
        service(url, whole.storage_options, queues.visibility) if url else None
        for url in (queues.url, queues.dead_letters)
    )
    assert queue is not None
    return NotificationDiscovery(whole, MessageReceiver(queue, dead))
