"""Flink's scenarios of delivery: what readers receive, over coordinators and tasks that fail.

OperatorEventSendingCheckpointITCase and CoordinatorEventsExactlyOnceITCase. A reader here is a real
task, which is pickled as Spark does it, receives splits and events, and commits.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import (
    readers_of,
    sent_to,
    splits_of,
)
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.enumerator.api import SplitEnumeratorContext
from pyspark_sluice.enumerator.batch_budget import BatchBudget
from pyspark_sluice.reader.api import ReaderContext, Report, SplitFinished, SplitReader
from pyspark_sluice.reader.task import Assignment, Attempt, ReaderTask
from pyspark_sluice.tests.protocol.numbers import Harness, Number, NumberEnumerator, NumberSource
from pyspark_sluice.tests.protocol.opened import opened

READERS = 2


class EventSender(NumberEnumerator):
    """Sends each number to a reader as an event, and then as a split."""

    def plan_batch(self, budget: BatchBudget) -> None:
        while self.pending and not budget.is_full:
            value = self.pending.pop(0)
            budget.take(str(value), 1)
            self.context.send_event(value % READERS, value)
            self.context.assign_splits({value % READERS: [Number(value)]})


class EventSource(NumberSource):
    """Its coordinator sends events."""

    def create_enumerator(
        self, context: SplitEnumeratorContext[Number], state: Sequence[int] | None
    ) -> NumberEnumerator:
        return EventSender(context, self._numbers if state is None else state)


class Receiver(SplitReader[Number]):
    """Returns what it receives, in order: a row for each event and each split."""

    def __init__(self, context: ReaderContext) -> None:
        self._events = list(context.events)

    def read(self, splits: Sequence[Number]) -> Iterator[pa.RecordBatch | Report]:
        for index, split in enumerate(splits):
            while self._events and self._events[0].before <= index:
                yield self._row("event", self._events.pop(0).value)
            yield self._row("split", split.value)
            yield SplitFinished(split.split_id, 1)

    @staticmethod
    def _row(kind: str, value: int) -> pa.RecordBatch:
        return pa.record_batch({"kind": [kind], "value": [value]})


Received = list[tuple[str, int]]


@dataclass
class Operator:
    """One coordinator, and what its readers have received in batches that were completed."""

    count: int
    limit: int
    ahead: int = 1
    received: dict[int, Received] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = CoordinatorSettings(
            BatchLimits(files=self.limit),
            parallelism=READERS,
            discovery_timeout=0.0,
            checkpoints_ahead=self.ahead,
        )
        self.harness = Harness(settings=settings)
        self.harness.source = EventSource(range(self.count))
        self.harness.restart()

    def tasks(self, start: CheckpointRef, end: CheckpointRef) -> list[bytes]:
        """The partitions of a batch, as they travel to executors."""
        serializer = self.harness.source.split_serializer
        return [
            pickle.dumps(
                Assignment(
                    checkpoint.ref,
                    reader,
                    splits_of(checkpoint, reader, serializer),
                    sent_to(checkpoint, reader),
                    lineage=checkpoint.header.lineage,
                )
            )
            for checkpoint in self.harness.coordinator.assignments(start, end)
            for reader in readers_of(checkpoint)
        ]

    def attempt(self, task: bytes) -> Iterator[pa.RecordBatch]:
        """One attempt; its commit is published before it ends."""
        serializer, commits = self.harness.source.split_serializer, self.harness.commits
        reader = ReaderTask(Receiver, serializer, commits, frozenset(), may_return=False)
        return reader.read(pickle.loads(task), Attempt())

    def read(self, task: bytes, fate: str = "") -> tuple[int, Received]:
        """Attempts as Spark makes them, until one ends well that Spark knows of.

        One that is lost with its executor has done nothing, and is followed by another.
        """
        if fate == "dies":
            attempt = self.attempt(task)
            next(attempt)
            del attempt
        if fate == "ack lost":
            assert list(self.attempt(task)), "it has committed, and Spark does not know"
        rows = [row for batch in self.attempt(task) for row in batch.to_pylist()]
        return pickle.loads(task).reader, [(row["kind"], row["value"]) for row in rows]

    def take(self, outcomes: Sequence[tuple[int, Received]]) -> None:
        """The batch is in the sink."""
        for reader, rows in outcomes:
            self.received.setdefault(reader, []).extend(rows)

    def check(self) -> None:
        """Every event and split once, in the order of sending."""
        for reader in range(READERS):
            numbers = range(reader, self.count, READERS)
            expected = [(kind, value) for value in numbers for kind in ("event", "split")]
            assert self.received.get(reader, []) == expected


def run(operator: Operator, fates: Sequence[str]) -> None:
    """Batch after batch; the tasks meet these fates in turn."""
    start, fates = NO_CHECKPOINT, list(fates)
    for _ in range(100):
        end = operator.harness.coordinator.latest(start)
        if end == start:
            return
        outcomes = []
        for task in operator.tasks(start, end):
            outcomes.append(operator.read(task, fates.pop(0) if fates else ""))
            operator.harness.calls.tick()
        operator.take(outcomes)
        start = end


@pytest.mark.parametrize("ahead", [0, 1, 2])
@pytest.mark.parametrize("fate", ["lost", "dies", "ack lost"])
def test_a_part_that_is_lost_on_its_way_or_acknowledged_unheard_is_received_once(fate, ahead):
    """testOperatorEventLostNoReaderFailure, testOperatorEventAckLost."""
    operator = Operator(12, limit=3, ahead=ahead)
    run(operator, ["", fate, "", fate, "", fate])
    operator.check()


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_a_part_is_lost_and_then_its_reader_and_the_driver_fail(ahead):
    """testOperatorEventLostWithReaderFailure: the batch is read again after a restart."""
    operator = Operator(12, limit=4, ahead=ahead)
    first = operator.harness.coordinator.latest(NO_CHECKPOINT)
    lost, other = operator.tasks(NO_CHECKPOINT, first)
    operator.harness.calls.tick()
    operator.read(other, "dies")
    next(operator.attempt(lost))
    operator.harness.restart()
    operator.take([operator.read(task) for task in operator.tasks(NO_CHECKPOINT, first)])
    start = first
    while (end := operator.harness.coordinator.latest(start)) != start:
        operator.take([operator.read(task) for task in operator.tasks(start, end)])
        start = end
    operator.check()


def test_an_acknowledgement_that_comes_after_several_later_cuts_releases_the_part():
    """testOperatorEventAckDelay: the status of an assignment is unknown across checkpoints."""
    operator = Operator(12, limit=2, ahead=2)
    harness = operator.harness
    first = harness.coordinator.latest(NO_CHECKPOINT)
    early, late = operator.tasks(NO_CHECKPOINT, first)
    outcomes = [operator.read(early)]
    for _ in range(3):
        harness.calls.tick()
    gateways = opened(harness.coordinator).gateways
    ahead, *later = opened(harness.coordinator).flight.ahead
    second, third = ahead.ref, later[0].ref
    assert gateways[0].held_under(ahead) is None
    assert gateways[1].held_under(ahead) is not None, "its own commit opens it"
    operator.take([*outcomes, operator.read(late)])
    harness.calls.tick()
    assert gateways[1].held_under(ahead) is None
    start = first
    for end in (second, third):
        assert harness.coordinator.latest(start) == end
        operator.take([operator.read(task) for task in operator.tasks(start, end)])
        start = end
    while (end := harness.coordinator.latest(start)) != start:
        operator.take([operator.read(task) for task in operator.tasks(start, end)])
        start = end
    operator.check()


Attempts = list[Iterator[pa.RecordBatch]]


def die(operators: Sequence[Operator], running: Sequence[Sequence[bytes]]) -> Attempts:
    """Restart the driver, after which its old gateways send; return attempts that outlive it."""
    late = [
        operator.attempt(task)
        for operator, tasks in zip(operators, running, strict=True)
        for task in tasks[:1]
    ]
    for attempt in late:
        next(attempt)
    for operator in operators:
        old = operator.harness.coordinator
        operator.harness.restart()
        if old._opened is not None:
            opened(old).context.send_event(0, -1)
    return late


@pytest.mark.parametrize("seed", range(12))
def test_readers_of_two_coordinators_receive_every_event_once_and_in_order(seed):
    """CoordinatorEventsExactlyOnceITCase: a fast and a slow coordinator of one query.

    The query dies once for each of them, at a random point of the second half of its events.
    """
    luck = random.Random(seed)
    operators = [Operator(200, luck.randint(3, 9), luck.randint(0, 2)), Operator(10, 1, 1)]
    deaths = [luck.randint(o.count // 2, o.count * 5 // 6) for o in operators]
    starts: list[CheckpointRef] = [NO_CHECKPOINT, NO_CHECKPOINT]
    ends: list[CheckpointRef] = []
    while ends != starts or any(deaths):
        starts = ends or starts
        pairs = list(zip(operators, starts, strict=True))
        ends = [operator.harness.coordinator.latest(start) for operator, start in pairs]
        batch = list(zip(operators, starts, ends, strict=True))
        running = [operator.tasks(start, end) for operator, start, end in batch]
        sent = [o.count - len(o.harness.enumerator.pending) for o in operators]
        due = [at for at, death in enumerate(deaths) if 0 < death <= sent[at]]
        late: Attempts = []
        for at in due:
            deaths[at] = 0
            late += die(operators, running)
            running = [operator.tasks(start, end) for operator, start, end in batch]
        for operator, tasks in zip(operators, running, strict=True):
            fates = [luck.choice(["", "", "dies", "ack lost"]) for _ in tasks]
            outcomes = [operator.read(task, fate) for task, fate in zip(tasks, fates, strict=True)]
            operator.take(outcomes)
            operator.harness.calls.tick()
        for attempt in late:
            list(attempt)
    for operator in operators:
        operator.check()
