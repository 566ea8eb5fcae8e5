"""The contract of an enumerator: FLIP-27, adapted to micro-batches.

A `SplitEnumerator` discovers splits and assigns them to readers. The coordinator runs the
enumerator, sends its assignments to the readers and takes the checkpoints. The enumerator accesses
the coordinator only through a `SplitEnumeratorContext`.

The coordinator calls the methods of an enumerator one at a time, under its lock, except where a
method says otherwise. They must not block: use `SplitEnumeratorContext.call_async` for I/O.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from ..checkpoint_meta.documents.attachments import Attachments
from ..checkpoint_meta.documents.checkpoint import PartBudget
from ..checkpoint_meta.documents.serializer import Split
from ..checkpoint_meta.stores.contract import StateStore
from ..errors import ProtocolError
from ..masking import masked
from .batch_budget import BatchBudget
from .large_state import FrozenState

SplitT = TypeVar("SplitT", bound=Split)
StateT = TypeVar("StateT")
ResultT = TypeVar("ResultT")

Handler: TypeAlias = Callable[[ResultT | None, BaseException | None], None]
"""Is given the result of a call, or what the call has raised."""


class Journal:
    """The log of one coordinator, by the standard library's logging. Any thread.

    Every line begins with the state directory, by which a query and its source are known on the
    driver, the epoch and the newest checkpoint; the record has them as attributes, too. The loggers
    are below `pyspark_sluice`.
    """

    def __init__(self, location: str = "") -> None:
        self.location = location
        self.epoch = 0
        self.checkpoint = 0

    def info(self, name: str, message: str, *values: object) -> None:
        """Log what happens in the ordinary course of things; `name` is the logger's last part."""
        self._tell(logging.INFO, name, message, values)

    def warning(self, name: str, message: str, *values: object) -> None:
        """Log what may need the user's attention."""
        self._tell(logging.WARNING, name, message, values)

    def debug(self, name: str, message: str, *values: object) -> None:
        """Log what is only of interest to who looks for a fault."""
        self._tell(logging.DEBUG, name, message, values)

    def _tell(self, level: int, name: str, message: str, values: tuple[Any, ...]) -> None:
        log = logging.getLogger(f"pyspark_sluice.{name}")
        if log.isEnabledFor(level):
            where = (self.location, self.epoch, self.checkpoint)
            names = ("sluice_state", "sluice_epoch", "sluice_checkpoint")
            # Errors of stores quote URLs and answers, which may hold tokens.
            shown = [masked(str(v)) if isinstance(v, str | BaseException) else v for v in values]
            extra = dict(zip(names, where, strict=True))
            # The place is a value and no part of the text: its name may hold a percent sign.
            text = "[%s epoch %d checkpoint %d] " + message
            log.log(level, text, *where, *shown, extra=extra)


class SplitEnumeratorContext(ABC, Generic[SplitT]):
    """The interface of the coordinator for its enumerator."""

    bounded: bool
    """True if the run ends when everything that exists now is read (Trigger.AvailableNow).

    The enumerator then discovers once, at `start`, and assigns nothing newer.
    """

    journal = Journal()
    """The enumerator's log; its lines name the query's state."""

    store: StateStore | None = None
    """The store of the query's state, for objects of this source; None without a store."""

    attachments: Attachments | None = None
    """Publishes objects next to the state; what is published is deleted later, unless the next
    snapshot or `attachments_in_use` names it. None without a store."""

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """Number of registered readers; their indexes are 0 to parallelism - 1."""

    @property
    def awaits_readers(self) -> bool:
        """True while a split that was assigned may still come back through `add_splits_back`.

        False when every assigned split has been covered by a reader commit or abandoned.
        """
        raise NotImplementedError

    @property
    def continuing(self) -> Collection[int]:
        """Readers whose part of the next checkpoint begins with what their current part leaves."""
        return ()

    @abstractmethod
    def request_parallelism(self, readers: int) -> int:
        """Request readers for the batch being planned; returns how many the enumerator may use.

        These have the indexes 0 to that number - 1 and are registered; `add_reader` announces new
        ones. Readers of earlier, larger batches stay registered and get no splits. If the option
        `parallelism` is set, this always returns its value.
        """

    @abstractmethod
    def assign_splits(self, assignment: Mapping[int, Sequence[SplitT]]) -> None:
        """Give splits to readers: all of them, or none if any reader is not registered.

        A reader gets its splits in the order in which they were sent, after it has committed every
        earlier checkpoint with work for it. This copies the splits: the reader does not see later
        changes.

        Raises:
            ProtocolError: a reader is not registered.
        """

    def continue_split(
        self,
        reader: int,
        split_id: str,
        *,
        max_bytes: int | None = None,
        max_rows: int | None = None,
        stop: Any = None,
    ) -> bool:
        """Let `reader` continue a split that it is still reading, in the next checkpoint.

        The continuation starts where the reader's commit says that it stopped. If the reader
        finishes the split, nothing is assigned. Otherwise the remainder belongs to the continuation
        and does not come back through `add_splits_back`.

        Args:
            reader: index of the reader that is reading the split.
            split_id: id of the split as it was assigned, even if it was continued before.
            max_bytes: most bytes to read. The caller takes them from the budget.
            max_rows: most rows to read. The caller takes them from the budget.
            stop: any JSON value that tells the source's reader where to stop.

        Returns:
            True if the continuation is sent. False if the reader is not reading the split in an
            uncommitted checkpoint, or if its next continuation has already been sent. After the
            commit, the remainder comes back through `add_splits_back`.

        Raises:
            ProtocolError: the reader is not registered.
        """
        raise NotImplementedError

    @abstractmethod
    def send_event(self, reader: int, event: Any) -> None:
        """Send any JSON value to a reader; it arrives with that reader's next splits.

        A reader gets events and splits in the order in which they were sent. An event alone does
        not start a batch. The value is copied now: a replay receives an equal one.

        Raises:
            ProtocolError: JSON would change the value, such as a tuple or a key that is no text; or
                1,000 events wait for a reader without splits.
        """

    def quarantine_splits(self, reasons: Mapping[str, str]) -> None:
        """Put splits that were never assigned into quarantine: read only if a user requests it.

        This becomes durable with the next checkpoint, which is taken even if it is otherwise empty.
        The splits must not be pending in the snapshot of that checkpoint.

        Args:
            reasons: split id -> the reason, in words.
        """
        raise NotImplementedError

    @abstractmethod
    def call_async(
        self, call: Callable[[], ResultT], handler: Handler[ResultT], delay: float = 0.0
    ) -> None:
        """Run `call` on a worker thread after `delay` seconds, then `handler` under the lock.

        `call` must not touch the enumerator's state. An exception of `call` goes to the handler;
        an exception of the handler fails the query.
        """

    @abstractmethod
    def request_planning(self) -> None:
        """Announce new work; the coordinator then calls `plan_batch`."""


class SplitEnumerator(ABC, Generic[SplitT, StateT]):
    """Discovers splits and decides which reader gets which."""

    @abstractmethod
    def start(self) -> None:
        """Begin discovery. Called once, after construction or restore."""

    @abstractmethod
    def plan_batch(self, budget: BatchBudget) -> None:
        """Assign splits to the next checkpoint until `budget` is full or none is left.

        This replaces Flink's `handleSplitRequest`: all readers request splits at once. Called in
        the background whenever another checkpoint may be planned: after each checkpoint is taken,
        after `request_planning`, and directly before the next one is taken. `budget` may be full.
        """

    def part_budgets(self, checkpoint_id: int, readers: Sequence[int]) -> Mapping[int, PartBudget]:
        """Return what these readers, with parts in the checkpoint being cut, may spend on them.

        Called for each cut, directly before `snapshot_state`. What a reader leaves of its part goes
        into its part of the next checkpoint if that is cut while it reads, else it comes back
        through `add_splits_back`. Without a budget, the default, a reader reads all of its part.
        """
        return {}

    @abstractmethod
    def add_splits_back(self, splits: Sequence[SplitT], reader: int) -> None:
        """Take back splits that `reader` did not read, and remainders of those it read in part."""

    def left_unread(self, splits: Sequence[SplitT]) -> None:
        """No row was read of these splits, and none will be: skipped, waived, or quarantined."""
        return

    def requeue_splits(self, splits: Sequence[SplitT]) -> None:
        """Make these splits pending because a user wants them read again, each byte once.

        Parts that are already pending stay as they are. Called before the first `plan_batch`; after
        a crash it is called again, on the state without the first call.

        Raises:
            ProtocolError: this source does not know how (the default).
        """
        raise _knows_no_orders(self, "requeue_splits")

    def forget_splits(self, splits: Sequence[SplitT]) -> None:
        """Discard these splits because a user requests it: they are seen, and no longer pending.

        Called at the same time as `requeue_splits`.

        Raises:
            ProtocolError: this source does not know how (the default).
        """
        raise _knows_no_orders(self, "forget_splits")

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> StateT:
        """The state for this checkpoint, including all assignments made so far.

        Either the whole state or, if the source's `snapshots_are_changes` is true, the changes
        since the previous snapshot. Must not share mutable objects with the enumerator.
        """

    def freeze_state(self) -> FrozenState | None:
        """The whole state as of the latest snapshot, for a base. Must be fast (`large_state.py`).

        If it is None, the coordinator builds the base from the chain of snapshots. Also called
        right after a restore.
        """
        return None

    @property
    def can_improve_state(self) -> bool:
        """True if `improve_state` has something to do."""
        return False

    def improve_state(self) -> Callable[[Attachments], None] | None:
        """Choose some of the objects next to the bases to be merged; None if there is no work.

        Called repeatedly, under the lock. The returned function merges what was chosen, on a worker
        thread and without the lock, and should be short. A state that is frozen in between contains
        everything that was chosen.
        """
        return None

    def attachments_in_use(self) -> Collection[str]:
        """Names of attachments that must not be deleted, whether a base refers to them or not."""
        return ()

    def add_reader(self, reader: int) -> None:
        """A reader has registered. Readers never unregister while the query runs."""
        return

    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        """Handle an event of a reader. Delivered exactly once, with the reader's commit."""
        return

    def add_events_back(self, events: Sequence[Any], reader: int) -> None:
        """Take back events for a reader that no longer exists, after `parallelism` was reduced.

        Raises:
            ProtocolError: the source sends events but does not implement this (the default).
        """
        raise ProtocolError(
            "events wait for a reader that no longer exists",
            f"{type(self).__qualname__}, reader {reader}",
            f"{len(events)} events",
            "a source with a method add_events_back",
            "Start the query with the parallelism it had, or implement add_events_back.",
        )

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Spark has completed the checkpoint. The call can come late or not at all."""
        return

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint was undone before Spark knew it; a later one assigns its splits."""
        return

    @property
    def has_discovered(self) -> bool:
        """True once everything that existed at `start` has been found."""
        return True

    @property
    def wants_checkpoint(self) -> bool:
        """True to request a checkpoint even if no split is assigned, as an empty batch."""
        return False

    def is_decided(self, budget: BatchBudget) -> bool:
        """True if no split discovered later would be assigned to the batch that `budget` measures.

        Called after `plan_batch`. If it is true, the checkpoint is made durable while the previous
        one is still being read, and later splits go into the checkpoint after it.
        """
        return budget.is_full

    def backlog(self) -> Mapping[str, Any]:
        """Return what is found but in no checkpoint yet, as JSON for Spark's progress events."""
        return {}

    def cursors(self) -> Mapping[str, Any]:
        """The positions from which to resume discovery, as JSON values, no newer than the snapshot.

        Called for each checkpoint, after `snapshot_state`; returns all cursors, not the changes.
        They only save time: without them the enumerator lists everything.
        """
        return {}

    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        """Resume discovery from the `cursors` of the restored checkpoint. Called before `start`."""
        return

    def close(self) -> None:
        """Release open resources. Not guaranteed to be called."""
        return


def _knows_no_orders(enumerator: object, method: str) -> ProtocolError:
    return ProtocolError(
        "an order is pending, but the source does not support orders",
        type(enumerator).__qualname__,
        f"no method {method}",
        "a source that supports it",
        f"Implement {method}, or start a new query with startingState at a checkpoint of this one.",
    )
