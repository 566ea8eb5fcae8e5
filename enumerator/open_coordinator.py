"""A coordinator over opened state: answers Spark, and works ahead in the background.

While checkpoint n runs and the next batch is decided, n+1 is cut and published in the background,
and Spark's thread hands it out from memory. Where it is not decided the cut waits for Spark's
question, so that what is found meanwhile is in it.

Not here: opening and restoring (`coordinator.py`), the sequence of checkpoints (`in_flight.py`),
the cut (`cut.py`), reader commits (`acknowledgements.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from ..checkpoint_meta.epochs import check_not_fenced
from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.reference import CheckpointRef
from ..checkpoint_meta.state_store import StateStore
from ..errors import FencedError, StateError, WaitTimeoutError
from .acknowledgements import Acknowledgements
from .api import EnumeratorSource, SplitEnumerator, SplitT, StateT
from .applied_orders import AppliedOrders
from .cleaning import Cleaning
from .context import CoordinatorContext
from .cut import CheckpointCutter
from .in_flight import CutAhead, InFlight
from .room import UNLIMITED, BatchRoom
from .sent_back import SentBackSplits
from .settings import CoordinatorSettings
from .threads import Threads
from .upkeep import Upkeep


@dataclass
class OpenCoordinator(Generic[SplitT, StateT]):
    """Spark's thread calls `latest` and `commit`, the background thread `background`."""

    source: EnumeratorSource[SplitT, StateT]
    store: StateStore
    history: CheckpointHistory
    settings: CoordinatorSettings
    clock: Callable[[], float]
    threads: Threads
    context: CoordinatorContext[SplitT]
    enumerator: SplitEnumerator[SplitT, StateT]
    sent_back: SentBackSplits
    cutter: CheckpointCutter[SplitT, StateT]
    acknowledgements: Acknowledgements[SplitT]
    flight: InFlight
    upkeep: Upkeep
    orders: AppliedOrders
    cleaning: Cleaning[SplitT] | None = None

    def __post_init__(self) -> None:
        self.room = BatchRoom(self.settings.limits)
        """What the batch being planned still takes."""
        self._lock = self.threads.lock
        self._may_cut_ahead = True
        self._was_idle = False
        """The last question of Spark's thread came to nothing, and no batch has begun since."""

    # Spark's thread -------------------------------------------------------------------------

    def latest(self, start: CheckpointRef, unlimited: bool) -> CheckpointRef:
        """See `Coordinator.latest`."""
        with self._lock:
            self.threads.raise_failure()
            if self.flight.running is not None and start == self.flight.complete:
                return self.flight.running
            is_news = self.flight.advance(start, self.store.location)
            self._await_publication()
            if self.flight.ahead is not None and unlimited:
                self._take_back(self.flight.ahead)
            self._may_cut_ahead = not unlimited
            if self.flight.ahead is not None:
                return self._hand_out()
        if is_news:
            self._check_not_fenced()
        self.acknowledgements.complete(start)
        with self._lock:
            self.orders.apply()
        return self._cut_now(start, unlimited)

    def _await_publication(self) -> None:
        # Only if Spark was faster than the store. What is cut cannot be cut again.
        deadline = time.monotonic() + self.settings.settle_timeout
        while self.flight.ahead is not None and not self.flight.is_published:
            self.threads.raise_failure()
            if not self._lock.wait(max(0.0, deadline - time.monotonic())):
                raise WaitTimeoutError(
                    "a checkpoint is being written and does not get done",
                    self.store.location,
                    f"no end after {self.settings.settle_timeout:.0f} s",
                    "a store that answers",
                    "Repair access to the state directory, then restart: nothing is lost.",
                )
        self.threads.raise_failure()

    def _cut_now(self, start: CheckpointRef, unlimited: bool) -> CheckpointRef:
        self._await_discovery(unlimited)
        with self._lock:
            self.threads.raise_failure()
            self._plan()
            if self._was_idle and not (unlimited or self.context.bounded):
                self._await_news()
            self._was_idle = not self._has_news
            if self._was_idle:
                if unlimited:
                    self.room.lift(self.settings.limits)
                self._await_upkeep()
                return start
            ahead = self._cut()
        self._publish(ahead)
        with self._lock:
            return self._hand_out()

    def _await_discovery(self, unlimited: bool) -> None:
        # A batch waits while there is nothing for it and the first discovery goes on, lest a long
        # trigger interval begin with an empty one; one without limits waits for all there is.
        deadline = time.monotonic() + self.settings.settle_timeout
        with self._lock:
            if unlimited:
                self.room.lift(UNLIMITED)
            while not self.enumerator.is_settled and self.threads.failure is None:
                # Also so that discovery need not rest because too much is pending.
                self._plan()
                if not unlimited and self.context.tracker.uncheckpointed:
                    return
                if not self._lock.wait(max(0.0, deadline - time.monotonic())):
                    raise WaitTimeoutError(
                        "the first discovery did not end in time",
                        self.source.name,
                        f"no end after {self.settings.settle_timeout:.0f} s",
                        "a listing that ends",
                        "Raise discoveryTimeout, or point the source at less.",
                    )

    def _await_news(self) -> None:
        # Spark asks a hundred times a second, which costs more than all that an idle query does.
        def is_over() -> bool:
            self._plan()
            return self._has_news or self.threads.failure is not None

        self._lock.wait_for(is_over, self.settings.idle_patience)
        self.threads.raise_failure()

    @property
    def _has_news(self) -> bool:
        wants_checkpoint = self.enumerator.wants_checkpoint or self.orders.wants_checkpoint
        wants_checkpoint = wants_checkpoint or self.sent_back.wants_checkpoint
        return bool(self.context.tracker.uncheckpointed) or wants_checkpoint

    def _await_upkeep(self) -> None:
        # Runs that end as soon as they can would never come to a base.
        deadline = time.monotonic() + self.settings.upkeep_patience
        while self.context.bounded and self._is_overdue and self.threads.failure is None:
            if not self._lock.wait(max(0.0, deadline - time.monotonic())):
                return

    @property
    def _is_overdue(self) -> bool:
        return self.upkeep.is_overdue or (self.cleaning is not None and self.cleaning.is_behind)

    def commit(self, end: CheckpointRef) -> None:
        """See `Coordinator.commit`."""
        with self._lock:
            # Perhaps of a batch of other sources of the query, which must not wait for this one.
            self._was_idle = False
            if self.cleaning is not None:
                self.cleaning.completed(end)
            self.upkeep.completed(end)

    def report(self) -> dict[str, Any]:
        """See `Coordinator.report`."""
        damaged = self.history.unreadable
        with self._lock:
            return {
                "checkpoint": self.flight.newest.checkpoint,
                "epoch": self.flight.epoch,
                "heldEvents": self.context.held_events,
                "quarantinedSplits": self.sent_back.quarantined_total,
                "abandonedReaders": self.acknowledgements.abandoned_readers,
                "abandonedSplits": self.acknowledgements.abandoned_splits,
                **({"unreadableState": list(damaged)} if damaged else {}),
                **({"cleaned": dict(self.cleaning.figures())} if self.cleaning else {}),
                **self.enumerator.backlog(),
            }

    def close(self) -> None:
        """Close the enumerator."""
        # An enumerator that hangs holds the lock; the process has to end all the same.
        held = self._lock.acquire(timeout=self.settings.close_timeout)
        try:
            self.enumerator.close()
        finally:
            if held:
                self._lock.release()

    # The life of a checkpoint ---------------------------------------------------------------

    def _plan(self) -> None:
        # What is cut may be taken back, and then has to have the room that it took.
        # Nor before the orders are carried out: what they let go of must not be planned.
        if self.flight.ahead is None and not (self.room.is_full or self.orders.are_waiting):
            self.enumerator.plan_batch(self.room)

    def _cut(self) -> CutAhead:
        counted = {ref.name: sorted(of) for ref, of in self.acknowledgements.counted.items()}
        ref = self.flight.new_ref()
        try:
            checkpoint = self.cutter.cut(
                self.flight.newest, ref, int(self.clock() * 1_000_000), counted
            )
        except BaseException as error:
            # A snapshot may be gone with it: only the state on disk is sure.
            self.threads.fail(error)
            raise
        ahead = CutAhead(checkpoint, self.room)
        self.flight.cut(ahead)
        self.upkeep.cut(checkpoint)
        self.room = BatchRoom(self.settings.limits)
        return ahead

    def _publish(self, ahead: CutAhead) -> None:
        try:
            self.history.publish(ahead.checkpoint)
            self._check_not_fenced()
        except BaseException:
            with self._lock:
                self._take_back(ahead)
                self._lock.notify_all()
            raise
        with self._lock:
            self.flight.is_published = True
            self._lock.notify_all()
        header, journal = ahead.checkpoint.header, self.threads.journal
        journal.checkpoint = header.checkpoint
        readers = len({reader for reader, _ in ahead.checkpoint.assigned})
        journal.info(
            "checkpoint", "cut and published: %d splits for %d readers",
            header.assigned_splits, readers,
        )  # fmt: skip

    def _take_back(self, ahead: CutAhead) -> None:
        self.cutter.abort(ahead.checkpoint)
        self.flight.taken_back()
        self.upkeep.taken_back()
        self.room = ahead.room

    def _hand_out(self) -> CheckpointRef:
        ahead = self.flight.ahead
        ref = self.flight.hand_out()
        self.acknowledgements.expect(ref)
        if ahead is not None:
            self.upkeep.handed_out(ahead.checkpoint)
        self.threads.wake.set()
        return ref

    # In the background ----------------------------------------------------------------------

    def background(self) -> None:
        """One round: fencing, acknowledgements, planning, and the next checkpoint if decided."""
        self._check_not_fenced()
        self.acknowledgements.complete(self.flight.complete)
        running = self.flight.running
        if running is not None:
            self.acknowledgements.take_in(running)
        with self._lock:
            if self.threads.failure is None:
                self._plan()
            ahead = self._cut() if self._is_decided() else None
            self.upkeep.look()
            self._lock.notify_all()
        if ahead is not None:
            self._publish_ahead(ahead)

    def _is_decided(self) -> bool:
        """True if the next checkpoint can be cut now, and waiting could not add to it."""
        running = self.flight.running
        return (
            self._may_cut_ahead
            and not self.orders.are_waiting
            and self.threads.failure is None
            and running is not None
            and self.flight.ahead is None
            and bool(self.context.tracker.uncheckpointed)
            # What readers say of the checkpoint before the running one belongs into this one.
            and list(self.acknowledgements.counted) == [running]
            and self.context.held_events == 0
            and self.enumerator.is_decided(self.room)
        )

    def _publish_ahead(self, ahead: CutAhead) -> None:
        try:
            self._publish(ahead)
        except FileExistsError:
            raise
        except (StateError, OSError):
            # Spark's thread tries once more when it asks, and fails by name if that fails too.
            if self.threads.failure is not None:
                raise
            self._may_cut_ahead = False

    def _check_not_fenced(self) -> None:
        try:
            check_not_fenced(self.store, self.flight.epoch)
        except FencedError as error:
            self.threads.fail(error)
            raise
