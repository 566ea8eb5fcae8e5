"""The FLIP-27 contract of an enumerator, in the form that micro-batches need.

Roles: a `SplitEnumerator` finds work and decides which reader gets it; the coordinator runs it,
owns the gateways to the readers and takes the checkpoints; the `SplitEnumeratorContext` is the
enumerator's only access to the coordinator.

All methods of an enumerator run one at a time, under the coordinator's lock, and must not block:
input and output go through `SplitEnumeratorContext.call_async`.

Not here: the coordinator (`coordinator/coordinator.py`) and the enumerator of files
(`files/enumerator.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..checkpoint_meta.documents.attachments import Attachments
from ..checkpoint_meta.documents.split import Split
from ..checkpoint_meta.stores.contract import StateStore
from ..errors import ProtocolError
from .batch_budget import BatchBudget
from .journal import Journal
from .large_state import FrozenState

SplitT = TypeVar("SplitT", bound=Split)
StateT = TypeVar("StateT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class SplitFigures(Generic[SplitT]):
    """What a reader has measured of a split that it read to its end."""

    split: SplitT
    rows: int
    bytes: int
    seconds: float
    """Wall time spent on reading it."""


class SplitEnumeratorContext(ABC, Generic[SplitT]):
    """What an enumerator can ask of its coordinator."""

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """True for a run that ends with what exists now (Trigger.AvailableNow).

        The enumerator then discovers once, at `start`, and offers nothing newer.
        """

    @property
    def journal(self) -> Journal:
        """The enumerator's log; its lines name the query's state."""
        return Journal()

    @property
    def store(self) -> StateStore | None:
        """The state of the query, for objects of the source's own; None without such."""
        return None

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """Number of registered readers; their indexes are 0 to parallelism - 1."""

    @property
    def awaits_readers(self) -> bool:
        """True while a split that was assigned may still come back through `add_splits_back`.

        False once a reader commit, or an abandonment, is counted for each of them.
        """
        raise NotImplementedError

    @abstractmethod
    def request_parallelism(self, readers: int) -> int:
        """Ask for `readers` readers for the batch being planned; returns how many it may use.

        They are 0 to that number - 1, all registered; new ones are announced by `add_reader`.
        Those of a larger batch before stay registered and simply get nothing. With a fixed
        `parallelism` the answer is always that number.
        """

    @abstractmethod
    def assign_splits(self, assignment: Mapping[int, Sequence[SplitT]]) -> None:
        """Give splits to readers: all of them, or none if any reader is not registered.

        They join the reader's stream in the order of sending, and reach it once it has committed
        every earlier checkpoint that has something for it. The splits are frozen here: the reader
        does not see later changes.

        Raises:
            ProtocolError: a reader is not registered, or was promised no more splits.
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

        Where that starts is decided by the reader's own commit: what it leaves unfinished. If it
        leaves nothing, this assigns nothing. The remainder then belongs to this continuation and
        does not come back through `add_splits_back`.

        Args:
            reader: the one that reads the split in a checkpoint that it has not committed.
            split_id: of the split as it was assigned, also for a continuation of a continuation.
            max_bytes: at most so many bytes; taken from the budget by the caller.
            max_rows: at most so many rows; taken from the budget by the caller.
            stop: any JSON value that tells the source's reader where to stop.

        Returns:
            False, and nothing is sent, unless the reader reads the split in a checkpoint that it
            has not committed, and does not continue it later already. After the commit the
            remainder comes back through `add_splits_back`.

        Raises:
            ProtocolError: the reader is not registered, or was promised no more splits.
        """
        raise NotImplementedError

    @abstractmethod
    def send_event(self, reader: int, event: Any) -> None:
        """Send any JSON value to a reader; it arrives with that reader's next splits.

        Order within the reader's stream is the order of sending. An event alone causes no batch.
        """

    def quarantine_splits(self, reasons: Mapping[str, str]) -> None:
        """Put splits that were never assigned into quarantine: they are not read until ordered.

        Durable with the next checkpoint, which is cut for it though it be empty. From the same
        checkpoint on they must not be pending.

        Args:
            reasons: split id -> why, for people.
        """
        raise NotImplementedError

    @abstractmethod
    def signal_no_more_splits(self, reader: int) -> None:
        """Promise that `reader` gets no more splits in this run."""

    @abstractmethod
    def call_async(
        self,
        call: Callable[[], ResultT],
        handler: Callable[[ResultT | None, BaseException | None], None],
        delay: float = 0.0,
    ) -> None:
        """Run `call` on a worker thread after `delay` seconds, then `handler` under the lock.

        `call` must not touch the enumerator's state. An exception of `call` goes to the handler;
        an exception of the handler fails the query.
        """

    @abstractmethod
    def request_planning(self) -> None:
        """Say that there is new work; `plan_batch` follows soon."""


class SplitEnumerator(ABC, Generic[SplitT, StateT]):
    """Discovers splits and decides which reader gets which."""

    @abstractmethod
    def start(self) -> None:
        """Begin discovery. Called once, after construction or restore, before anything else."""

    @abstractmethod
    def plan_batch(self, budget: BatchBudget) -> None:
        """Assign splits to the next checkpoint until `budget` is full or there is no more.

        The micro-batch form of Flink's handle_split_request: all readers ask at once. Called
        in the background whenever the next checkpoint may take more: after each cut, after
        `request_planning`, and again directly before a cut.
        """

    @abstractmethod
    def add_splits_back(self, splits: Sequence[SplitT], reader: int) -> None:
        """Take back splits that `reader` could not read or did not reach, or what it left."""

    def requeue_splits(self, splits: Sequence[SplitT]) -> None:
        """A user orders these to be read again: they become pending, each byte of them once.

        What is already pending of them does not change. Called before anything is planned; after a
        crash it is called again, on the state from before.

        Raises:
            ProtocolError: this source does not know how (the default).
        """
        raise _knows_no_orders(self, "requeue_splits")

    def forget_splits(self, splits: Sequence[SplitT]) -> None:
        """A user orders these to be discarded: what is pending of them is no longer pending.

        They count as seen. See `requeue_splits` for when it is called.

        Raises:
            ProtocolError: this source does not know how (the default).
        """
        raise _knows_no_orders(self, "forget_splits")

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> StateT:
        """The state at the cut: it contains earlier assignments and no later ones.

        Either the whole state or, if the source says `snapshots_are_changes`, what changed since
        the previous snapshot. Must not alias what the enumerator changes later.
        """

    def freeze_state(self) -> FrozenState | None:
        """The whole state as of the snapshot just taken, for a base; cheap. See `large_state.py`.

        None lets the coordinator fold the chain. Also called right after a restore.
        """
        return None

    @property
    def can_improve_state(self) -> bool:
        """True if `improve_state` has something to do."""
        return False

    def improve_state(self, attachments: Attachments) -> bool:
        """One bounded step of merging objects next to the bases; True if there was work to do.

        Called on a worker thread, without the lock, as long as it returns True.
        """
        return False

    def attachments_in_use(self) -> Collection[str]:
        """Names of attachments that must not be deleted, whether a base refers to them or not."""
        return ()

    def add_reader(self, reader: int) -> None:
        """A reader has registered. Readers never unregister while the query runs."""
        return

    def handle_reader_event(self, reader: int, event_type: str, value: Any) -> None:
        """An event of a reader, exactly once: with its commit, in the checkpoint after it."""
        return

    @property
    def wants_figures(self) -> bool:
        """True to have `handle_figures` called, which costs a look at every split."""
        return False

    def handle_figures(self, figures: Sequence[SplitFigures[SplitT]]) -> None:
        """What one reader's commit says of the splits that it read to their end.

        Called before `notify_checkpoint_complete` for their checkpoint. To learn what splits cost:
        see `BatchBudget.take`.
        """
        return

    def completed_work(self) -> float | None:
        """The work of the checkpoint that was completed last, by what is known since.

        As in `BatchBudget.take`. None, the default: what was taken for it is as right as ever.
        """
        return None

    def add_events_back(self, events: Sequence[Any], reader: int) -> None:
        """Take back events for a reader that no longer exists, after `parallelism` was reduced.

        Raises:
            ProtocolError: this source sends events and does not know what to do (the default).
        """
        raise ProtocolError(
            "events wait for a reader that no longer exists",
            f"{type(self).__qualname__}, reader {reader}",
            f"{len(events)} events",
            "a source with a method add_events_back",
            "Start the query with the parallelism it had, or implement add_events_back.",
        )

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Spark has completed the checkpoint. Late or missing calls must do no harm."""
        return

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint was taken back before Spark knew it; a later one assigns its splits."""
        return

    @property
    def has_discovered(self) -> bool:
        """True once everything that existed at `start` has been found."""
        return True

    @property
    def wants_checkpoint(self) -> bool:
        """True to request a checkpoint even if no split is assigned: an empty batch."""
        return False

    def is_decided(self, budget: BatchBudget) -> bool:
        """True if nothing that may still be found would join the batch that `budget` measures.

        Called after `plan_batch`. The checkpoint is then made durable while the previous one is
        still being read; later splits go into the next checkpoint.
        """
        return budget.is_full

    def backlog(self) -> Mapping[str, Any]:
        """What is found but not yet in a checkpoint, as JSON values for Spark's progress."""
        return {}

    def cursors(self) -> Mapping[str, Any]:
        """Where to resume looking for work, as JSON values: whole, and no newer than the snapshot.

        Called at each cut, after `snapshot_state`. Only saves time: without them an enumerator
        lists everything.
        """
        return {}

    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        """What `cursors` gave at the checkpoint that was restored. Called before `start`."""
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
