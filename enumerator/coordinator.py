"""Runs the enumerator, owns its mutable state and takes the checkpoints.

Flink's SourceCoordinator and OperatorCoordinatorHolder in one, driven by Spark's calls: being
asked for what follows checkpoint n is the proof that n is complete (Spark's `commit(n)` comes
later, or never), and the offset handed out is nothing but the name of a published checkpoint.

Invariants:
    I1 a checkpoint is durable before its reference is returned.
    I3 every split is in exactly one of: pending with the enumerator, held by a gateway, in an
       inbox, assigned to one checkpoint.
    I4 what is sent after the cut of n reaches a reader only when it has completed n.
    I5 a reader commit is counted once, before the cut that follows it, and is read again after
       a crash before that cut.

Not here: what a source's splits are (`api.py`), durable formats (`checkpoint_meta`), Spark.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic

from ..checkpoint_meta.checkpoint import Checkpoint
from ..checkpoint_meta.epochs import check_not_fenced, claim_epoch, open_format
from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.reader_commit import ReaderCommits
from ..checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from ..checkpoint_meta.retention import Retention
from ..checkpoint_meta.state_store import StateStore
from ..errors import FencedError, ProtocolError, WaitTimeoutError, without_history
from .acknowledgements import Acknowledgements
from .api import EnumeratorSource, SplitT, StateT
from .async_calls import AsyncCalls
from .bounded_lock import BoundedLock
from .commit_search import CommitSearch
from .context import CoordinatorContext
from .cut import CheckpointCutter
from .fresh_start import check_fresh_start
from .restore import RestoredState, base_of, restore
from .room import UNLIMITED, BatchRoom
from .sent_back import SentBackSplits
from .settings import CoordinatorSettings


class Coordinator(Generic[SplitT, StateT]):
    """One incarnation of the coordinator over one state directory.

    Spark's thread calls `latest`, `assignments` and `commit`, one at a time; background threads
    discover and plan. `close` may never be called: a killed process leaves everything as it
    stands, and the next incarnation goes on from the checkpoint that Spark names.
    """

    def __init__(
        self,
        source: EnumeratorSource[SplitT, StateT],
        store: StateStore,
        settings: CoordinatorSettings,
        clock: Callable[[], float] = time.time,
        make_calls: Callable[
            [BoundedLock, Callable[[BaseException], None]], AsyncCalls
        ] = AsyncCalls,
    ) -> None:
        """Touches nothing; Spark's first call opens the state and claims an epoch."""
        self._source = source
        self._store = store
        self._settings = settings
        self._clock = clock
        self._history = CheckpointHistory(store)
        self._lock = BoundedLock(settings.step_timeout, source.name)
        self._wake = threading.Event()
        self._calls = make_calls(self._lock, self.fail)
        self._failure: BaseException | None = None
        self._bounded = False
        self._begun = False
        self._head = NO_CHECKPOINT
        self._next: CheckpointRef | None = None
        """Cut and published after `_head`, but not known to be complete."""
        self._last_id = 0
        self._deltas = 0
        """Checkpoints since the last base."""
        self._room = BatchRoom(settings.limits)
        self.epoch = 0
        """This incarnation; 0 until the state is opened."""

    # What Spark calls -----------------------------------------------------------------------

    def prepare_available_now(self) -> None:
        """This run ends with what is there now. Called before any other method, if at all."""
        self._bounded = True

    def latest(self, start: CheckpointRef, unlimited: bool = False) -> CheckpointRef:
        """Everything up to `start` is complete: the checkpoint that follows it, if any.

        Answers from memory while there is nothing new. Asked again for the same start it gives
        the same checkpoint.

        Args:
            start: the checkpoint Spark has processed last.
            unlimited: ignore the limits and take all that is there (Trigger.Once).

        Returns:
            A durable checkpoint whose parent is `start`, or `start` if there is nothing to read.

        Raises:
            SluiceError: whatever made the state, the discovery or the protocol fail.
        """
        self._begin(start)
        self._raise_failure()
        if self._next is not None and start == self._head:
            return self._next
        self._advance_to(start)
        self._await_discovery(everything=unlimited or self._bounded)
        with self._lock:
            self._raise_failure()
            if unlimited:
                self._room.lift(UNLIMITED)
            self._plan()
            if not self._context.inboxes.has_splits:
                return start
            taken = self._room
            checkpoint = self._cut()
        self._publish(checkpoint, taken)
        self._check_not_fenced()
        self._wake.set()
        return checkpoint.ref

    def assignments(self, start: CheckpointRef, end: CheckpointRef) -> Sequence[Checkpoint]:
        """The checkpoints in (`start`, `end`], oldest first: a pure function of durable state."""
        if start == end:
            return []
        self._begin(end)
        self._raise_failure()
        return self._history.between(start, end)

    def commit(self, end: CheckpointRef) -> None:
        """Spark will never ask for `end` or before again: old objects may go, in the background.

        Nothing depends on it.
        """
        if end != NO_CHECKPOINT and self._deltas >= self._settings.deltas_per_base:
            self._deltas = 0
            self._calls.call(lambda: self._let_go(end), self._let_gone, 0.0)

    def report(self) -> dict[str, Any]:
        """The state of affairs for Spark's progress events, from memory."""
        if not self._begun:
            return {}
        damaged = self._history.unreadable
        with self._lock:
            return {
                "checkpoint": (self._next or self._head).checkpoint,
                "epoch": self.epoch,
                "quarantinedSplits": self._sent_back.quarantined_total,
                "abandonedReaders": self._acknowledgements.abandoned_readers,
                "abandonedSplits": self._acknowledgements.abandoned_splits,
                **({"unreadableState": list(damaged)} if damaged else {}),
                **self._enumerator.backlog(),
            }

    def close(self) -> None:
        """Stop the background threads. May never be called."""
        self._calls.stop()
        self._wake.set()
        if self._begun:
            # An enumerator that hangs holds the lock; the process has to end all the same.
            held = self._lock.acquire(timeout=self._settings.close_timeout)
            try:
                self._enumerator.close()
            finally:
                if held:
                    self._lock.release()

    def fail(self, error: BaseException) -> None:
        """Make the query fail with `error` at its next call; the first error wins."""
        # Before the lock is asked for: whoever holds it may never let go.
        self._failure = self._failure or error
        with self._lock:
            self._lock.notify_all()

    # The life of a checkpoint ---------------------------------------------------------------

    def _advance_to(self, start: CheckpointRef) -> None:
        if start == self._next:
            self._head, self._next = start, None
            self._check_not_fenced()
        elif start != self._head:
            raise ProtocolError(
                "Spark asks for what follows a checkpoint that is not the last one",
                self._store.location,
                str(start),
                str(self._next or self._head),
                "Restart the query; if it happens again, please report it.",
            )
        self._acknowledgements.complete(start)

    def _await_discovery(self, everything: bool) -> None:
        # A first batch waits for the first discovery, lest a long trigger interval begin with an
        # empty batch; one that has to take all that is there waits for the whole of it.
        deadline = time.monotonic() + self._settings.settle_timeout
        with self._lock:
            while not self._enumerator.is_settled and self._failure is None:
                if not everything and self._context.inboxes.has_splits:
                    return
                if not self._lock.wait(max(0.0, deadline - time.monotonic())):
                    raise WaitTimeoutError(
                        "the first discovery did not end in time",
                        self._source.name,
                        f"no end after {self._settings.settle_timeout:.0f} s",
                        "a listing that ends",
                        "Raise discoveryTimeout, or point the source at less.",
                    )

    def _plan(self) -> None:
        if not self._room.is_full:
            self._enumerator.plan_batch(self._room)

    def _cut(self) -> Checkpoint:
        self._last_id += 1
        ref = CheckpointRef(self._last_id, self.epoch)
        try:
            checkpoint = self._cutter.cut(self._head, ref, int(self._clock() * 1_000_000))
        except BaseException as error:
            # A snapshot may be gone with it: only the state on disk is sure.
            self.fail(error)
            raise
        self._room = BatchRoom(self._settings.limits)
        return checkpoint

    def _publish(self, checkpoint: Checkpoint, taken: BatchRoom) -> None:
        try:
            self._history.publish(checkpoint)
        except BaseException:
            with self._lock:
                self._cutter.abort(checkpoint)
                taken.add(self._room)
                self._room = taken
            raise
        with self._lock:
            self._cutter.published()
            self._next = checkpoint.ref
            self._deltas += 1

    # Start and restore ----------------------------------------------------------------------

    def _begin(self, ref: CheckpointRef) -> None:
        if self._begun:
            return
        open_format(self._store)
        savepoint = self._settings.starting_state if ref == NO_CHECKPOINT else None
        if ref == NO_CHECKPOINT and not (savepoint or self._settings.ingest_again):
            # Before the claim: a query that must not begin supersedes nobody.
            check_fresh_start(self._store)
        self.epoch = claim_epoch(self._store)
        history = CheckpointHistory(savepoint.store) if savepoint else self._history
        restored = restore(history, savepoint.ref if savepoint else ref, self._source)
        with self._lock:
            self._build(restored)
            self._head, self._last_id = ref, ref.checkpoint
            self._deltas = restored.chain_length
            self._begun = True
            self._enumerator.start()
            self._context.readers.start()
            if savepoint:
                self._cutter.adopt(restored)
                commits = ReaderCommits(savepoint.store)
                self._acknowledgements.adopt(history.load(savepoint.ref), commits)
        self._calls.every(self._settings.background_interval, self._background, self._wake)

    def _build(self, restored: RestoredState[StateT]) -> None:
        settings = self._settings
        self._sent_back = SentBackSplits(
            settings.max_split_attempts, restored.attempts, len(restored.quarantined)
        )
        self._context: CoordinatorContext[SplitT] = CoordinatorContext(
            self._source.split_serializer,
            self._calls,
            self._wake,
            self._bounded,
            (settings.parallelism, settings.at_least_readers),
            self._announce,
        )
        self._context.inboxes.put_back((), restored.waiting)
        self._enumerator = self._source.create_enumerator(self._context, restored.state)
        self._cutter = CheckpointCutter(
            self._source, self._enumerator, self._context, self._sent_back
        )
        self._acknowledgements = Acknowledgements(
            self._source,
            self._history,
            CommitSearch(ReaderCommits(self._store), settings.commit_patience),
            self._lock,
            self._context,
            self._enumerator,
            self._sent_back,
        )

    def _announce(self, reader: int) -> None:
        self._enumerator.add_reader(reader)

    # In the background ----------------------------------------------------------------------

    def _check_not_fenced(self) -> None:
        try:
            check_not_fenced(self._store, self.epoch)
        except FencedError as error:
            self.fail(error)
            raise

    def _background(self) -> None:
        self._check_not_fenced()
        running = self._next
        if running is not None:
            self._acknowledgements.take_in(running)
        with self._lock:
            if self._failure is None:
                self._plan()
            self._lock.notify_all()

    def _let_go(self, end: CheckpointRef) -> None:
        self._history.publish_base(base_of(self._history, end, self._source))
        retention = Retention(self._store, self._history, self.epoch, self._check_not_fenced)
        retention.prune(end, self._settings.retained_checkpoints)

    def _let_gone(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            # Kept from a background thread, and raised at each call from now on.
            raise without_history(self._failure)
