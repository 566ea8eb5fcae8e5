"""Runs the enumerator, owns its mutable state and takes the checkpoints.

Flink's SourceCoordinator and OperatorCoordinatorHolder in one, driven by Spark's calls: being
asked for what follows checkpoint n is the proof that n is complete (Spark's `commit(n)` comes
later, or never), and the offset handed out is nothing but the name of a published checkpoint.

Invariants:
    I1 a checkpoint is durable before its reference is returned.
    I3 every split is in exactly one of: pending with the enumerator, sent to a reader and not cut,
       assigned to one checkpoint.
    I4 what is sent to a reader after the cut of n reaches it only when it has committed n.
    I5 a reader commit is counted once, in the first checkpoint that is cut after it was, and is
       read again after a crash before that cut.

Here: opening and restoring the state at Spark's first call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic

from ...checkpoint_meta.checkpoint_snapshot import in_flight
from ...checkpoint_meta.documents.attachments import AdoptedAttachments, Attachments
from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef, new_lineage
from ...checkpoint_meta.documents.epochs import (
    check_not_fenced,
    claim_epoch,
    new_nonce,
    open_format,
)
from ...checkpoint_meta.documents.heartbeat import HEARTBEAT_SECONDS, Heartbeat, open_claims
from ...checkpoint_meta.documents.layout import REREADS
from ...checkpoint_meta.documents.orders import Orders
from ...checkpoint_meta.documents.reader_commit import Rereads, give_back, rereads_in
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import FencedError
from ..api import SplitT, StateT
from ..settings import CoordinatorSettings
from ..source_api import EnumeratorSource
from .applied_orders import orders_contained
from .context import CoordinatorParts
from .in_flight import CheckpointRecord, CheckpointsInFlight
from .restore import RestoredState, adopt, restore
from .running_coordinator import RunningCoordinator
from .start_position import StartPosition, start_position
from .threads import AsyncCalls, BoundedLock, Threads


class Coordinator(Generic[SplitT, StateT]):
    """One incarnation of the coordinator over one state directory.

    Spark's thread calls `latest`, `assignments` and `commit`, one at a time; background threads
    discover and plan. `close` may never be called: a killed process leaves everything as it
    remains, and the next incarnation resumes from the checkpoint that Spark names.
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
        history: CheckpointHistory | None = None,
    ) -> None:
        """Touches nothing; Spark's first call opens the state and claims an epoch.

        `history` is that of the store, where checkpoints were looked at before.
        """
        self._source = source
        self._store = store
        self._settings = settings
        self._clock = clock
        self.history = history or CheckpointHistory(store, ahead=settings.checkpoints_ahead)
        """Shared with readers of checkpoints that were just cut."""
        self._threads = Threads(settings.step_timeout, source.name, make_calls)
        self._journal = self._threads.journal
        self._journal.location = store.location
        self._bounded = False
        self._nonce = new_nonce()
        self._seed = NO_CHECKPOINT
        """What represents Spark's beginning, where this query began after it."""
        self.rereads: Rereads = {}
        """Checkpoints that an order has given back; known once the state is open."""
        self._waived: dict[CheckpointRef, frozenset[str]] = {}
        """Ids of splits that were given up, of what Spark reads again after this start."""
        self._opened: RunningCoordinator[SplitT, StateT] | None = None

    @property
    def epoch(self) -> int:
        """This incarnation; 0 until the state is opened."""
        return 0 if self._opened is None else self._opened.flight.epoch

    # What Spark calls -----------------------------------------------------------------------

    def prepare_available_now(self) -> None:
        """This run ends with what is there now. Called before any other method, if at all."""
        self._bounded = True

    def latest(self, start: CheckpointRef, unlimited: bool = False) -> CheckpointRef:
        """Everything up to `start` is complete: the checkpoint that follows it, if any.

        Answers from memory while there is nothing new, and where the next checkpoint was decided
        while `start` was running. Asked again for the same start it gives the same checkpoint.

        Args:
            start: the checkpoint Spark has processed last.
            unlimited: ignore the limits and take all that is there (Trigger.Once).

        Returns:
            A durable checkpoint whose parent is `start`, or `start` if there is nothing to read.

        Raises:
            SluiceError: the state, the discovery or the protocol failed.
        """
        opened = self._open(start)
        # Spark does not know of a seed: to it the query begins at nothing, and an unchanged offset
        # means that there is nothing new.
        after = self._seed if start == NO_CHECKPOINT else start
        latest = opened.latest(after, unlimited)
        return start if latest == after else latest

    def latest_of_run(self, start: CheckpointRef) -> CheckpointRef:
        """The last of the checkpoints after `start` that together contain all that is there now.

        For a Spark that requests one batch in a run: its range spans several checkpoints, and the
        limits hold for each of them. Called after `prepare_available_now`.
        """
        newest, following = start, self.latest(start)
        while following != newest:
            newest = following
            following = self._open(start).following(newest)
        return newest

    def assignments(self, start: CheckpointRef, end: CheckpointRef) -> Sequence[Checkpoint]:
        """The checkpoints in (`start`, `end`], oldest first: a pure function of durable state.

        Each part comes through its reader's gateway: what it has to wait for is committed.

        Raises:
            ProtocolError: a part stays held under a checkpoint before them.
        """
        if start == end:
            return []
        opened = self._open(start, end)
        self._threads.raise_failure()
        # From durable state alone: after a restart Spark asks for the same range, and has to get
        # the same splits in the same partitions.
        checkpoints = self.history.between(start, end)
        opened.release([checkpoint.ref for checkpoint in checkpoints])
        return checkpoints

    def waived(self, ref: CheckpointRef) -> frozenset[str]:
        """Ids of splits of `ref` that an order has given up; after `assignments` for it.

        Orders are looked for when a batch is read again after a restart, and then only: while a
        query runs, nothing is given up.
        """
        return self._waived.get(ref, frozenset())

    @property
    def claim_to_check(self) -> int:
        """The epoch that readers of a first batch find to be the newest; 0 for later batches.

        A query that begins claims the state, and then looks for reader commits. A reader publishes
        its commit, and then looks for a newer claim. So of two queries that begin at the same
        instant, one finds the other. Asked after `assignments`.
        """
        opened = self._opened
        return 0 if opened is None or opened.acknowledgements.has_finished_any else self.epoch

    def commit(self, end: CheckpointRef) -> None:
        """Spark will never ask for `end` or before again: old objects may go, in the background.

        Nothing depends on it.
        """
        if self._opened is not None:
            self._opened.commit(end)

    def report(self) -> dict[str, Any]:
        """The state of affairs for Spark's progress events, from memory."""
        return {} if self._opened is None else self._opened.report()

    def close(self) -> None:
        """Stop the background threads. May never be called."""
        self._threads.stop()
        open_claims.discard(self._nonce)
        if self._opened is not None:
            self._opened.close()

    # Start and restore ----------------------------------------------------------------------

    def _open(
        self, complete: CheckpointRef, running: CheckpointRef | None = None
    ) -> RunningCoordinator[SplitT, StateT]:
        """Open the state as Spark's first call finds it.

        Args:
            complete: Spark has read this checkpoint and all before it.
            running: what it reads again, handed out by an incarnation that is dead.
        """
        if self._opened is not None:
            return self._opened
        # First: a directory of a newer release is refused before anything is written into it.
        open_format(self._store)
        # Before the claim: a query that must not begin supersedes no other.
        spark = running or complete
        start = start_position(self._store, spark, self._settings)
        claimed = self._clock()
        epoch = claim_epoch(
            self._store,
            nonce=self._nonce,
            check=self._settings.check_owner,
            parent=self._settings.parent,
        )
        if spark == NO_CHECKPOINT:
            # Again, since a tool may have begun to prepare the directory between the look and the
            # claim.
            start = start_position(self._store, spark, self._settings, epoch)
        newest, savepoint = start.newest, start.savepoint
        if start.is_seed:
            complete = self._seed = newest
        self._journal.epoch, self._journal.checkpoint = epoch, newest.checkpoint
        attachments = Attachments(self._store, epoch)
        if savepoint:
            history = CheckpointHistory(savepoint.store)
            adopted = AdoptedAttachments(savepoint.store, attachments)
            restored = restore(history, savepoint.ref, self._source, adopted)
        else:
            restored = restore(self.history, newest, self._source, attachments)
        lineage = savepoint.store if savepoint else None if newest == NO_CHECKPOINT else self._store
        contained = orders_contained(self._store, lineage, restored.orders)
        restored = replace(restored, orders=contained)
        records = self._records(newest, complete)
        # Where the first batch is read again its record has the lineage, and what is drawn here
        # counts for nothing.
        is_new = complete == NO_CHECKPOINT
        identity = new_lineage() if is_new else self.history.load(complete).identity
        flight = CheckpointsInFlight(identity, epoch, self._settings.limits, contained)
        flight.restore(records)
        if running is not None:
            # All of them: with asynchronous progress tracking a range spans several.
            read_again = self.history.between(complete, running)
            for ref, orders in Orders(self._store).waived(read_again[0].header.orders).items():
                serializer = self._source.split_serializer
                splits = (split for order in orders for split in order.read_splits(serializer))
                self._waived[ref] = frozenset(split.split_id for split in splits)
            self._give_back(read_again)
        self._store.refresh(REREADS)
        self.rereads = rereads_in(self._store)
        there = 0 if savepoint else len(self.history.checkpoints())
        with self._threads.lock:
            opened = self._build(restored, flight, attachments)
            self._begin(opened, restored, start, there)
        self._opened = opened
        self._journal.info("coordinator", "opened: %s", start.described(restored.deltas))
        # Until the first heartbeat the claim counts, which says when it was made: of a run that is
        # soon over, and says so, there is no other one.
        is_late = self._clock() - claimed > HEARTBEAT_SECONDS
        if is_late or not self._settings.is_closed_by_host:
            opened.beat()
        every = min(self._settings.background_interval, HEARTBEAT_SECONDS)
        self._threads.calls.every(every, opened.background, self._threads.wake)
        return opened

    def _give_back(self, batch: Sequence[Checkpoint]) -> None:
        """Let a batch be read again from its beginning, if an order says so.

        Under this incarnation's claim, before anything is handed out or counted. Killed between
        two checkpoints, the next incarnation gives back the rest.
        """
        ref, lineage = batch[-1].ref, batch[-1].header.lineage
        for order in Orders(self._store).rereads(batch[0].header.orders).get(ref, ()):
            if self._settings.sink_has(lineage, ref.checkpoint):
                self._journal.warning(
                    "orders", "order %d has no effect: the sink has %s", order.number, ref
                )
                continue
            for link in batch:
                give_back(self._store, link.ref, order.number)

    def _records(self, newest: CheckpointRef, complete: CheckpointRef) -> list[CheckpointRecord]:
        links = in_flight(self.history, newest, complete)
        return [CheckpointRecord.restored(link) for link in reversed(links)]

    def _build(
        self, restored: RestoredState[StateT], flight: CheckpointsInFlight, attachments: Attachments
    ) -> RunningCoordinator[SplitT, StateT]:
        parts = CoordinatorParts(
            self._settings,
            self._clock,
            self._store,
            self.history,
            flight.epoch,
            flight.parent.lineage,
            partial(self._check_still_ours, flight.epoch),
            self._source,
            self._threads,
            attachments,
            self._bounded,
        )
        heartbeat = Heartbeat(self._store, flight.epoch, self._clock, nonce=self._nonce)
        return RunningCoordinator(parts, flight, restored, heartbeat)

    def _check_still_ours(self, epoch: int) -> None:
        try:
            check_not_fenced(self._store, epoch, self._nonce)
        except FencedError as error:
            # Kept for Spark's thread: the background may be the first to find out.
            self._threads.fail(error)
            raise

    def _begin(
        self,
        opened: RunningCoordinator[SplitT, StateT],
        restored: RestoredState[StateT],
        start: StartPosition,
        there: int,
    ) -> None:
        """Start the enumerator, then hand it what was sent and said before. Under the lock."""
        if start.newest != NO_CHECKPOINT:
            opened.upkeep.restored(restored, start.newest, opened.flight.latest_completed, there)
        opened.enumerator.start()
        # After the enumerator, as in Flink: a reader that registers may be given splits at once.
        opened.readers.start()
        for name, events in restored.waiting.items():
            # The document has readers as texts: JSON knows no other keys.
            opened.send_again(int(name), events)
        if start.savepoint:
            opened.cutter.adopt(restored)
            adopt(start.savepoint, opened.acknowledgements.counter, opened.send_again)
        opened.upkeep.start()
