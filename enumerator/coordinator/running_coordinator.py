"""A coordinator over opened state: answers Spark, and works ahead in the background.

While checkpoint n runs and the next batch is decided, n+1 is cut and published in the background,
and more after it as far as `checkpoints_ahead` allows. Spark's thread hands them out from memory.
Where a batch is not decided the cut waits for Spark's question, so that what is found meanwhile is
in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Generic

from ...checkpoint_meta.documents.checkpoint import Checkpoint, CustomEvent, rows_of
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.heartbeat import Heartbeat
from ...checkpoint_meta.documents.orders import Orders
from ...errors import FencedError, StateError, WaitTimeoutError
from ..api import SplitEnumerator, SplitT, StateT
from ..batch_budget import UNLIMITED
from .acknowledgements import Acknowledgements, CommitCounter
from .applied_orders import AppliedOrders
from .context import CoordinatorContext, CoordinatorParts, Readers
from .cut import CheckpointCutter
from .in_flight import CheckpointRecord, CheckpointsInFlight, Stage
from .restore import RestoredState
from .returned_splits import ReturnedSplits
from .subtask_gateway import Gateways, still_held
from .threads import failing
from .upkeep import Upkeep


class RunningCoordinator(Generic[SplitT, StateT]):
    """Spark's thread calls `latest` and `commit`, the background thread `background`."""

    def __init__(
        self,
        parts: CoordinatorParts[SplitT, StateT],
        flight: CheckpointsInFlight,
        restored: RestoredState[StateT],
        heartbeat: Heartbeat,
    ) -> None:
        """Builds everything; nothing is started. Under the lock."""
        source, settings, threads = parts.source, parts.settings, parts.threads
        self.source, self.settings = source, settings
        self.threads, self.clock = threads, parts.clock
        self.store, self.history, self.flight = parts.store, parts.history, flight
        self.returned_splits = ReturnedSplits(
            settings.max_split_attempts, restored.attempts, restored.quarantined
        )
        self.readers = Readers(settings.parallelism, settings.at_least_readers, self._announce)
        self.gateways = Gateways(flight)
        self.context: CoordinatorContext[SplitT] = CoordinatorContext(
            self.gateways,
            source.split_serializer,
            threads,
            self.readers,
            parts.bounded,
            self.returned_splits,
            self.store,
        )
        self.context.attachments = parts.attachments
        self.enumerator: SplitEnumerator[SplitT, StateT] = source.create_enumerator(
            self.context, restored.state
        )
        self.enumerator.resume_from(restored.cursors)
        self.orders = AppliedOrders(
            source,
            self.enumerator,
            self.returned_splits,
            threads.journal,
            flight,
            Orders(self.store).after(restored.orders),
        )
        self.cutter = CheckpointCutter(
            flight, source, self.enumerator, self.returned_splits, self.orders
        )
        self.acknowledgements = Acknowledgements(
            parts,
            self.gateways,
            CommitCounter(source, self.enumerator, self.returned_splits, threads.journal),
        )
        self.upkeep = Upkeep(parts, flight, self.enumerator, self.returned_splits)
        self._lock = threads.lock
        self._check_still_ours = parts.check_still_ours
        self.heartbeat = heartbeat
        self._may_cut_ahead = True
        self._was_idle = False
        """The last question of Spark's thread came to nothing, and no batch has begun since."""

    def _announce(self, reader: int) -> None:
        # A method, since the enumerator is made after the context, which knows the readers.
        self.enumerator.add_reader(reader)

    def send_again(self, reader: int, events: Sequence[Any]) -> None:
        """Events that were sent before a restart, or to a reader of a savepoint. Under the lock."""
        if self.readers.may_have(reader):
            for event in events:
                self.gateways[reader].send(CustomEvent(event=event))
        else:
            self.enumerator.add_events_back(events, reader)

    def release(self, refs: Sequence[CheckpointRef]) -> None:
        """Spark is about to read these: every gateway has to let its reader's part through.

        Raises:
            ProtocolError: one is held under a checkpoint before them, and stays held.
        """
        for under, reader in self._closed(refs):
            # Counted meanwhile where one look has found the commits of several readers.
            if reader not in under.committed:
                self.acknowledgements.await_commit(under, reader)
        for under, reader in self._closed(refs):
            raise still_held(under, reader, self.settings.commit_patience)

    def _closed(self, refs: Sequence[CheckpointRef]) -> list[tuple[CheckpointRecord, int]]:
        with self._lock:
            return self.gateways.closed(refs)

    # Spark's thread -------------------------------------------------------------------------

    def latest(self, start: CheckpointRef, unlimited: bool) -> CheckpointRef:
        """See `Coordinator.latest`."""
        with self._lock:
            self.threads.raise_failure()
            running = self.flight.running
            # However often Spark asks for what follows `start`, it gets the same checkpoint.
            if running is not None and start == self.flight.latest_completed:
                return running.ref
            self.flight.advance(start, self.store.location)
            # What a question without limits is to take cannot be decided before it is asked.
            self._may_cut_ahead = not unlimited
            ahead = self.flight.ahead
            if ahead and unlimited:
                # They were cut under limits that do not hold for this question.
                self.cutter.abort(ahead[0].ref)
        # Although a batch may be ready: a sink that has skipped one must not get the next.
        if not self.acknowledgements.sink_is_proven:
            self.acknowledgements.finish()
        if ahead and not unlimited:
            return self._hand_out_ahead(ahead[0])
        self.acknowledgements.finish()
        with self.threads.deciding():
            self.orders.apply()
        return self._cut_now(start, unlimited)

    def following(self, running: CheckpointRef) -> CheckpointRef:
        """The checkpoint after one that was handed out and may not be read; else that one."""
        with self._lock:
            ahead = self.flight.ahead
        return self._hand_out_ahead(ahead[0]) if ahead else self._cut_now(running, unlimited=False)

    def _hand_out_ahead(self, record: CheckpointRecord) -> CheckpointRef:
        # What comes before it was handed out, so it is durable.
        seconds = self.settings.discovery_timeout
        with self._lock:
            if not self.threads.wait_for(lambda: not record.is_writing, seconds):
                raise WaitTimeoutError(
                    "timed out publishing a checkpoint",
                    self.store.location,
                    f"not finished after {seconds:.0f} s",
                    "a store that responds",
                    "Repair access to the state directory, then restart: nothing is lost.",
                )
            self.threads.raise_failure()
        if record.stage is Stage.CUT:
            # The write failed in the background. The name stays, and so does the content: if it is
            # there after all, it is the same object.
            self._publish(record)
        return self._hand_out(record)

    def _cut_now(self, start: CheckpointRef, unlimited: bool) -> CheckpointRef:
        latest = self._decide_now(start, unlimited)
        is_end = unlimited or (self.context.bounded and latest == start)
        if is_end and not self.settings.is_closed_by_host:
            # Perhaps before the next heartbeat, and nobody may close it.
            self.beat(is_due=True)
        return latest

    def _decide_now(self, start: CheckpointRef, unlimited: bool) -> CheckpointRef:
        self._await_discovery(unlimited)
        with self._lock:
            self.threads.raise_failure()
            self._plan()
            # A run that ends would spend its last question waiting for what it must not read.
            if self._was_idle and not (unlimited or self.context.bounded):
                self._await_news()
            self._was_idle = not self._has_news
            if self._was_idle:
                if unlimited:
                    # Nothing was cut, so the record stays open, and the next question may have
                    # limits again.
                    self.flight.open_record.budget.lift(self.settings.limits)
                self._await_upkeep()
                return start
            record = self._cut()
        self._publish(record)
        return self._hand_out(record)

    def _await_discovery(self, unlimited: bool) -> None:
        # A batch waits while there is nothing for it and the first discovery goes on, so that a
        # long trigger interval does not begin with an empty one. One without limits waits for all
        # there is.
        def is_over() -> bool:
            if self.enumerator.has_discovered:
                return True
            # Also so that discovery need not rest because too much is pending.
            self._plan()
            has_some = bool(self.flight.open_record.readers) or self.enumerator.wants_checkpoint
            return has_some and not unlimited

        seconds = self.settings.discovery_timeout
        with self._lock:
            if unlimited:
                self.flight.open_record.budget.lift(UNLIMITED, everything=True)
            if not self.threads.wait_for(is_over, seconds):
                raise WaitTimeoutError(
                    "timed out waiting for the first listing",
                    self.source.name,
                    f"not finished after {seconds:.0f} s",
                    "a listing that finishes in time",
                    "Raise discoveryTimeout, or point the source at fewer files.",
                )

    def _await_news(self) -> None:
        # Spark asks a hundred times a second, which costs more than all that an idle query does.
        def is_over() -> bool:
            self._plan()
            return self._has_news

        self.threads.wait_for(is_over, self.settings.idle_patience)
        self.threads.raise_failure()

    @property
    def _has_news(self) -> bool:
        parts = (self.enumerator, self.orders, self.returned_splits)
        return bool(self.flight.open_record.readers) or any(part.wants_checkpoint for part in parts)

    def _await_upkeep(self) -> None:
        # Runs that end as soon as they can would never come to a base.
        if self.context.bounded:
            patience = self.settings.upkeep_patience
            if not self.threads.wait_for(lambda: not self.upkeep.is_overdue, patience):
                self.threads.journal.warning(
                    "upkeep",
                    "the run does not wait longer than %.0f s for cleaning up and old state: the "
                    "next one goes on with it",
                    patience,
                )

    def commit(self, end: CheckpointRef) -> None:
        """See `Coordinator.commit`."""
        with self._lock:
            # Perhaps of a batch of other sources of the query, which must not wait for this one.
            self._was_idle = False
            self.upkeep.completed(end)

    def report(self) -> dict[str, Any]:
        """See `Coordinator.report`."""
        damaged = self.history.unreadable
        with self._lock:
            return {
                "checkpoint": self.flight.newest.checkpoint,
                "epoch": self.flight.epoch,
                **self.gateways.held_counts(),
                "quarantinedSplits": self.returned_splits.quarantined_total,
                "abandonedReaders": self.acknowledgements.counter.abandoned_readers,
                "abandonedSplits": self.acknowledgements.counter.abandoned_splits,
                **({"unreadableState": list(damaged)} if damaged else {}),
                **self.upkeep.report(),
                **self.enumerator.backlog(),
            }

    def close(self) -> None:
        """Close the enumerator, and wait for it no longer than `close_timeout`.

        Then the last heartbeat says that the state has no owner. Of a run that was short it is the
        only one with figures.
        """
        # An enumerator that hangs holds the lock; the process has to end all the same.
        held = self._lock.acquire(timeout=self.settings.close_timeout)
        try:
            figures = self._figures() if held else {}
            self.enumerator.close()
        finally:
            if held:
                self._lock.release()
        if not isinstance(self.threads.failure, FencedError):
            with contextlib.suppress(StateError, OSError):
                self.heartbeat.end(figures)

    # The life of a checkpoint ---------------------------------------------------------------

    def _plan(self) -> None:
        # As far as batches may wait, and one more, but not before the orders are carried out: what
        # they withdraw must not be planned.
        may_wait = max(1, self.settings.checkpoints_ahead)
        if not self.orders.are_waiting and len(self.flight.ahead) < may_wait:
            # Also where it is full: what continues, and so what it counts, may have ended since.
            with failing(self.threads.fail):
                self.enumerator.plan_batch(self.flight.open_record.budget)

    def _cut(self) -> CheckpointRecord:
        try:
            record = self.cutter.cut(int(self.clock() * 1_000_000))
        except BaseException as error:
            # A snapshot may be gone with it: only the state on disk is sure.
            self.threads.fail(error)
            raise
        self.upkeep.cut(record)
        return record

    def _publish(self, record: CheckpointRecord) -> None:
        checkpoint = record.checkpoint
        published: Checkpoint | None = None
        try:
            # A directory that was emptied or restored meanwhile may be another query's by now.
            self._check_still_ours()
            published = self.history.publish(checkpoint)
        finally:
            with self._lock:
                record.is_writing = False
                if published is not None and record.stage is Stage.CUT:
                    record.content, record.stage = published, Stage.PUBLISHED
                self._lock.notify_all()
        header, journal = checkpoint.header, self.threads.journal
        journal.checkpoint = header.checkpoint
        journal.info(
            "checkpoint", "cut and published: %d splits for %d readers",
            header.assigned_splits, len(record.readers),
        )  # fmt: skip
        budget = record.budget
        journal.debug(
            "checkpoint", "%d files of %d bytes; ended by %s",
            budget.files, budget.bytes, budget.ended_by,
        )  # fmt: skip
        for reader in record.readers:
            journal.debug(
                "checkpoint", "reader %d has %d splits, and %d parts to continue",
                reader, rows_of(record.splits(reader)), len(record.continuations(reader)),
            )  # fmt: skip

    def _hand_out(self, record: CheckpointRecord) -> CheckpointRef:
        # After the write: if a newer coordinator has begun meanwhile, this is an orphan. Also where
        # it was written long ago, for the machine may have been paused since.
        self._check_still_ours()
        with self._lock:
            assert record.stage is Stage.PUBLISHED
            record.stage = Stage.HANDED_OUT
            record.is_of_this_run = True
            self.upkeep.handed_out(record)
            self.threads.wake.set()
            return record.ref

    # In the background ----------------------------------------------------------------------

    def background(self) -> None:
        """One round: fencing, acknowledgements, planning, and the checkpoints that are decided."""
        # Before anything else: a superseded coordinator must not go on writing.
        self._check_still_ours()
        self.beat()
        self.acknowledgements.look()
        with self.threads.deciding():
            cut = []
            if self.threads.failure is None:
                self._plan()
                while self._is_decided():
                    cut.append(self._cut())
                    self._plan()
            for record in cut:
                record.is_writing = True
            self.upkeep.look()
            self._lock.notify_all()
        for record in cut:
            self.threads.calls.write(partial(self._publish, record), self._written)

    def beat(self, *, is_due: bool = False) -> None:
        """Write a heartbeat if it is time for one; others only think that they know less."""
        work, optional = "writing a heartbeat", self.upkeep.optional
        if optional.is_due(work):
            try:
                self.heartbeat.beat(self._figures, is_due=is_due)
            except (StateError, OSError) as error:
                optional.failed(work, error)
            else:
                optional.succeeded(work)

    def _figures(self) -> dict[str, Any]:
        """For the heartbeat: what of the report the state says nowhere else."""
        names = ("failingUpkeep", "filesSkipped", "listingError")
        return {name: value for name, value in self.report().items() if name in names}

    def _is_decided(self) -> bool:
        """True if the next checkpoint can be cut now, and waiting could not add to it."""
        return (
            self._may_cut_ahead
            and not self.orders.are_waiting
            and self.flight.running is not None
            and len(self.flight.ahead) < self.settings.checkpoints_ahead
            and bool(self.flight.open_record.readers or self.flight.continuing)
            and self.enumerator.is_decided(self.flight.open_record.budget)
        )

    def _written(self, _: None, error: BaseException | None) -> None:
        if isinstance(error, StateError | OSError) and not isinstance(error, FencedError):
            # Spark's thread repeats the write, and fails by name if that fails too.
            self._may_cut_ahead = False
        elif error is not None:
            self.threads.fail(error)
