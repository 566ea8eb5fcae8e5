"""The checkpoints in flight: one ordered list, one record each, and every view of it.

A record says how a checkpoint is named, what it took of the limits, what was sent to each
reader under it, which readers have committed it, and how far it is. The last record is open: it
collects what is sent until the next cut names it. What a gateway holds (`subtask_gateway.py`), what
the next checkpoint assigns and which commits are still to be counted are derived from this list and
stored nowhere else (FLINK-26029, FLINK-28941: events are held per checkpoint id).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import pyarrow as pa

from ...checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ...checkpoint_meta.documents.checkpoint import (
    Checkpoint,
    Continuation,
    CustomEvent,
    QuarantinedSplit,
    Sent,
)
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity, CheckpointRef
from ...checkpoint_meta.documents.reader_assignment import budget_of
from ...errors import ProtocolError
from ..batch_budget import BatchBudget, BatchLimits
from ..large_state import FrozenState


class Stage(IntEnum):
    """The stage of a checkpoint."""

    OPEN = 0
    """Not cut: what is sent now belongs to it."""
    CUT = 1
    """It has a name and a content, and is not known to be durable."""
    PUBLISHED = 2
    """Durable, waits for Spark's question."""
    HANDED_OUT = 3
    """Spark has its offset and may be reading it."""
    COMPLETE = 4
    """Spark has read it; not all of its reader commits are counted."""


Event: TypeAlias = pa.RecordBatch | Continuation | CustomEvent
"""What is sent, frozen by the sender; splits already have the columns that they have in a
checkpoint."""


@dataclass(frozen=True)
class FrozenBase:
    """The values that the base of one checkpoint is written from."""

    head: Checkpoint
    quarantined: Sequence[QuarantinedSplit]
    frozen: FrozenState | None


# Compared by identity, by which the list finds them: two records of equal content are two.
@dataclass(eq=False)
class CheckpointRecord:
    """One checkpoint in flight."""

    budget: BatchBudget
    """What it takes of the limits."""

    stage: Stage = Stage.OPEN
    sent: dict[int, list[Event]] = field(default_factory=dict)
    """Reader -> what was sent to it under this checkpoint, in order."""

    committed: set[int] = field(default_factory=set)
    """Readers whose commit is there and counted."""

    content: Checkpoint | None = None
    """What it was cut as; None while it is open."""

    is_writing: bool = False
    """True while a thread publishes it."""

    rows: int = 0
    """Rows of the commits counted so far."""

    bytes: int = 0
    is_of_this_run: bool = False
    """True once this incarnation has handed it out."""

    base: FrozenBase | None = None
    """Frozen at its cut, to be written once Spark has it; None where no base was due."""

    @classmethod
    def restored(cls, snapshot: CheckpointSnapshot) -> CheckpointRecord:
        """The record of a checkpoint that an earlier incarnation has cut, and handed out."""
        checkpoint, sent = snapshot.checkpoint, dict[int, list[Event]]()
        stage = Stage.COMPLETE if snapshot.is_complete else Stage.HANDED_OUT
        for reader, batch in checkpoint.assigned:
            sent.setdefault(reader, []).append(batch)
        for name, entries in checkpoint.header.sent.items():
            # Each number is that of the rows of one batch.
            batches = iter(sent.get(int(name), ()))
            sent[int(name)] = [next(batches) if isinstance(e, int) else e for e in entries]
        # What it took of the limits is not stored: nothing is planned into it any more.
        budget = BatchBudget(BatchLimits())
        return cls(budget, stage, sent, {*snapshot.counted, *snapshot.commits}, checkpoint)

    @property
    def checkpoint(self) -> Checkpoint:
        """The content that it was cut with. The open record has none, and no `ref`."""
        assert self.content is not None
        return self.content

    @property
    def ref(self) -> CheckpointRef:
        """The name that it was cut under."""
        return self.checkpoint.ref

    @property
    def identity(self) -> CheckpointIdentity:
        """The identity that it was cut with."""
        return self.checkpoint.identity

    @property
    def readers(self) -> Sequence[int]:
        """Readers that have a part in it: splits or continuations, and so a task."""
        return sorted(reader for reader in self.sent if self.has_part(reader))

    def has_part(self, reader: int) -> bool:
        """True if `reader` has something to read in it. Events alone make no task."""
        return any(not isinstance(event, CustomEvent) for event in self.sent.get(reader, ()))

    def splits(self, reader: int) -> list[pa.RecordBatch]:
        """The splits sent to `reader`, in order."""
        events = self.sent.get(reader, ())
        return [event for event in events if isinstance(event, pa.RecordBatch)]

    def continuations(self, reader: int) -> list[Continuation]:
        """The continuations sent to `reader`, in order."""
        return [event for event in self.sent.get(reader, ()) if isinstance(event, Continuation)]

    def events(self, reader: int) -> list[Any]:
        """The custom events sent to `reader`, in order."""
        events = self.sent.get(reader, ())
        return [event.event for event in events if isinstance(event, CustomEvent)]

    def stream(self, reader: int) -> list[Sent]:
        """Return what `reader` was sent, as checkpoint headers have it; empty for splits only."""
        events = self.sent.get(reader, ())
        if all(isinstance(event, pa.RecordBatch) for event in events):
            return []
        return [e.num_rows if isinstance(e, pa.RecordBatch) else e for e in events]

    def split_count(self, reader: int) -> int:
        """Return how many splits and continuations `reader` has in it."""
        return sum(map(len, self.splits(reader))) + len(self.continuations(reader))

    def take_over(self, aborted: CheckpointRecord) -> None:
        """Send under this checkpoint what was sent under `aborted`, which came before.

        What went on with a part of `aborted` is dropped: that part is in here now, and its
        remainder comes back to the enumerator.
        """
        later, self.sent = self.sent, {r: list(events) for r, events in aborted.sent.items()}
        for reader, events in later.items():
            kept = (
                e for e in events if not (isinstance(e, Continuation) and e.origin == aborted.ref)
            )
            self.sent.setdefault(reader, []).extend(kept)
        # The next cut holds what both were sent, so both count against its limits.
        aborted.budget.add(self.budget)
        self.budget = aborted.budget


def continued_by(sent: Iterable[Continuation], ref: CheckpointRef) -> Collection[int]:
    """Indexes of the reader's part of `ref` that continuations sent to it go on with."""
    indexes = {each.index for each in sent if each.origin == ref}
    # A continuation without an index goes on with all of the part.
    return range(sys.maxsize) if None in indexes else {i for i in indexes if i is not None}


class CheckpointsInFlight:
    """The list. No input or output; under the coordinator's lock."""

    def __init__(
        self, complete: CheckpointIdentity, epoch: int, limits: BatchLimits, orders: int = 0
    ) -> None:
        """`complete`: Spark has read it and all before it; `orders`: the newest in the state."""
        self.epoch = epoch
        self.latest_completed_identity = complete
        self._limits = limits
        self._orders = orders
        self._last_id = complete.ref.checkpoint
        self._records = [CheckpointRecord(BatchBudget(limits))]

    def restore(self, records: Sequence[CheckpointRecord]) -> None:
        """Take in what an earlier incarnation left in flight, oldest first. Called once."""
        self._records[:0] = records
        # Ids grow along a chain, whichever incarnation has given them.
        self._last_id = max([self._last_id, *(r.ref.checkpoint for r in records)])

    # Views ----------------------------------------------------------------------------------

    @property
    def records(self) -> Sequence[CheckpointRecord]:
        """All of them, oldest first."""
        return self._records

    def before(self, record: CheckpointRecord) -> Sequence[CheckpointRecord]:
        """Return what was cut before `record`, oldest first."""
        return self._records[: self._records.index(record)]

    @property
    def newest_id(self) -> int:
        """No checkpoint of a greater id was ever cut."""
        return self._last_id

    @property
    def open_record(self) -> CheckpointRecord:
        """Return the record to which everything belongs that is sent now."""
        return self._records[-1]

    @property
    def cut_records(self) -> Sequence[CheckpointRecord]:
        """All but the open one, oldest first."""
        return self._records[:-1]

    def at(self, *stages: Stage) -> list[CheckpointRecord]:
        """The records of these stages, oldest first."""
        return [record for record in self._records if record.stage in stages]

    @property
    def running(self) -> CheckpointRecord | None:
        """Return what Spark may be reading: the newest that was handed out and is not complete."""
        return next(reversed(self.at(Stage.HANDED_OUT)), None)

    @property
    def ahead(self) -> list[CheckpointRecord]:
        """Return what was cut and waits to be handed out, oldest first."""
        return self.at(Stage.CUT, Stage.PUBLISHED)

    @property
    def latest_completed(self) -> CheckpointRef:
        """Spark has read this checkpoint and all before it."""
        return self.latest_completed_identity.ref

    @property
    def parent(self) -> CheckpointIdentity:
        """Return what the next cut is a delta on."""
        cut = [record.identity for record in self.cut_records]
        return max([self.latest_completed_identity, *cut], key=lambda each: each.ref)

    @property
    def orders(self) -> int:
        """The newest order that the parent of the next cut contains."""
        return max([self._orders, *(r.checkpoint.header.orders for r in self.cut_records)])

    @property
    def newest(self) -> CheckpointRef:
        """The name of the parent of the next cut."""
        return self.parent.ref

    def find(self, ref: CheckpointRef) -> CheckpointRecord | None:
        """The record of `ref`, while it is in flight."""
        return next((record for record in self.cut_records if record.ref == ref), None)

    @property
    def counted(self) -> Mapping[str, list[int]]:
        """Name -> readers whose commits are counted, of each checkpoint in flight."""
        return {r.ref.name: sorted(r.committed) for r in self.cut_records}

    @property
    def continuing(self) -> Mapping[int, CheckpointIdentity]:
        """Reader -> where its part has a budget and may be read now, so that some may be left.

        Its continuation belongs into the next cut.
        """
        newest = {reader: record for record in self.cut_records for reader in record.readers}
        return {
            reader: record.identity
            for reader, record in sorted(newest.items())
            if record.stage < Stage.COMPLETE and reader not in record.committed
            if budget_of(record.checkpoint, reader) is not None
        }

    def continued(self, ref: CheckpointRef, reader: int) -> Collection[int]:
        """Indexes of that part whose remainder belongs to a continuation sent later."""
        return continued_by((c for r in self._records for c in r.continuations(reader)), ref)

    # The life of a record -------------------------------------------------------------------

    def new_ref(self) -> CheckpointRef:
        """A name for the next cut; never the same twice, even if the last was withdrawn."""
        self._last_id += 1
        return CheckpointRef(self._last_id, self.epoch)

    def cut(self, checkpoint: Checkpoint) -> CheckpointRecord:
        """The open record becomes `checkpoint`, and another one is opened.

        Events of readers without a part in it stay in the open one: they cause no task.
        """
        record = self.open_record
        waiting = {r: events for r, events in record.sent.items() if not record.has_part(r)}
        for reader in waiting:
            del record.sent[reader]
        record.stage, record.content = Stage.CUT, checkpoint
        self._records.append(CheckpointRecord(BatchBudget(self._limits), sent=waiting))
        return record

    def advance(self, start: CheckpointRef, location: str) -> bool:
        """Spark asks for what follows `start`; True if that is news, which completes it.

        Raises:
            ProtocolError: `start` is neither complete nor handed out.
        """
        if start == self.latest_completed:
            return False
        record = self.find(start)
        if record is None or record.stage is not Stage.HANDED_OUT:
            raise ProtocolError(
                "Spark requested the batch after a checkpoint that is not the last one",
                location,
                str(start),
                str(self.running.ref if self.running else self.latest_completed),
                "Restart the query; if it happens again, please report it.",
            )
        # Several at once where Spark tracks its progress asynchronously and does not log every
        # offset.
        for completed in (*self.before(record), record):
            completed.stage = Stage.COMPLETE
        self.latest_completed_identity = record.identity
        return True

    def remove(self, ref: CheckpointRef) -> bool:
        """`ref` is complete and counted in full; False if it is not in flight any more."""
        record = self.find(ref)
        if record is None:
            return False
        self._records.remove(record)
        self._orders = max(self._orders, record.checkpoint.header.orders)
        return True

    def abort(self, ref: CheckpointRef) -> list[CheckpointRecord]:
        """Take back `ref` and every later cut, newest first; the open record takes them over."""
        aborted = []
        while (record := self.find(ref)) is not None:
            # Behind it is the open one. Each abort hands it what was sent before what it has
            # already.
            last = self._records[-2]
            assert record.stage < Stage.HANDED_OUT, "only what Spark does not know is taken back"
            self._records.remove(last)
            self.open_record.take_over(last)
            aborted.append(last)
        return aborted
