"""A model of Spark, as plain lists: an offset log, a commit log and an exactly-once sink.

What the oracle knows of Sluice it reads from the raw objects with `json` alone; nothing here calls
the code under test but `Checkpoint.assigned`, which is what Spark is handed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint, CustomEvent, Sent
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import readers_of, stream_of
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.reader.task import Assignment

from .opened import events_in
from .rows import Row, is_lane

Range = tuple[str, int, int]
"""A split as the oracle sees it: file, first row, after the last row."""


def rows_of(split: Range) -> list[Row]:
    """The rows of a range."""
    return [(split[0], row) for row in range(split[1], split[2])]


@dataclass
class Verdicts:
    """What the durable commit of one reader says, by index of the split."""

    returned: list[int]
    remainders: dict[int, int]
    """Index -> first row of the remainder."""
    told: list[str]


class RawCommits:
    """Reader commits, straight from the objects."""

    def __init__(self, store: MemoryStateStore) -> None:
        self.store = store
        self._parsed: dict[str, Verdicts] = {}

    def of(self, ref: CheckpointRef, reader: int) -> Verdicts | None:
        name = f"readers/{ref.checkpoint:010d}-{ref.epoch:010d}/{reader:05d}.json"
        if name not in self._parsed:
            data = self.store.objects.get(name)
            if data is None:
                return None
            document = json.loads(data)
            self._parsed[name] = Verdicts(
                [split["index"] for split in document["returned"]],
                {part["index"]: part["remainder"]["start"][0] for part in document["unfinished"]},
                [value for _, value in document["events"]],
            )
        return self._parsed[name]


@dataclass
class Task:
    """One partition of the running batch."""

    ref: CheckpointRef
    reader: int
    splits: list[FileSplit]
    sent: list[Sent]
    ranges: list[Range]
    """The splits, and what the continuations come to by the durable commits of this reader."""
    outcome: list[Row] | None = None
    """Rows that Spark took from the first attempt that ended well."""
    abandoned: bool = False

    def assignment(self) -> Assignment[FileSplit]:
        """What Spark's task is handed."""
        return Assignment(self.ref, self.reader, self.splits, self.sent)


@dataclass
class Attempt:
    """One attempt at a task, somewhere on an executor."""

    task: Task
    batches: Iterator[pa.RecordBatch]
    had_commit: bool
    """True if an acknowledgement was there before this attempt began: it has to follow it."""
    rows: list[Row] = field(default_factory=list)


@dataclass
class Batch:
    """A batch that has finished: what the sink took, what Spark left unread, what is given up."""

    ref: CheckpointRef
    taken: list[Row]
    unwanted: list[Row]
    given_up: list[Row]


Plan = dict[int, list[Range]]


class Spark:
    """Logs, sink and running batch. The machine decides what happens when."""

    def __init__(self, store: MemoryStateStore, max_attempts: int) -> None:
        self.commits = RawCommits(store)
        self.offsets: list[CheckpointRef] = []
        """The offset log, by batch."""
        self.committed = 0
        """Length of the commit log."""
        self.sink: list[Batch] = []
        self.tasks: list[Task] = []
        self.plans: dict[CheckpointRef, Plan] = {}
        """Every assignment ever handed out (I2)."""
        self.events: dict[CheckpointRef, dict[int, list[object]]] = {}
        self.unwanted_lanes: set[tuple[CheckpointRef, int]] = set()
        """(checkpoint, reader) of batches in the sink, of whose lanes it has taken nothing."""
        self._max_attempts = max_attempts
        self._returns: Counter[Range] = Counter()

    @property
    def start(self) -> CheckpointRef:
        """The last completed checkpoint."""
        return self.offsets[self.committed - 1] if self.committed else NO_CHECKPOINT

    @property
    def is_running(self) -> bool:
        """True between the offset log and the commit log of a batch."""
        return len(self.offsets) > self.committed

    def plan(self, checkpoints: Sequence[Checkpoint]) -> list[Task]:
        """Tasks of a range; the same range has to give the same tasks for ever."""
        serializer = FileSplitSerializer()
        tasks: list[Task] = []
        for checkpoint in checkpoints:
            splits: dict[int, list[FileSplit]] = {}
            for reader, batch in checkpoint.assigned:
                splits.setdefault(reader, []).extend(serializer.deserialize(1, batch))
            sent = {int(r): list(s) for r, s in checkpoint.header.sent.items()}
            events = {int(r): e for r, e in events_in(checkpoint.header).items()}
            made = [
                Task(
                    checkpoint.ref,
                    reader,
                    splits.get(reader, []),
                    sent.get(reader, []),
                    self._ranges(reader, splits.get(reader, []), sent.get(reader, [])),
                )
                for reader in readers_of(checkpoint)
            ]
            for task in made:
                # The same query wants no more of them when it is replayed.
                has_lane = any(is_lane(file) for file, _, _ in task.ranges)
                if has_lane and (task.ref, task.reader) in self.unwanted_lanes:
                    task.outcome, task.abandoned = [], True
            plan = {task.reader: task.ranges for task in made}
            assert self.plans.setdefault(checkpoint.ref, plan) == plan, "I2: another assignment"
            assert self.events.setdefault(checkpoint.ref, events) == events, "I2: other events"
            tasks.extend(made)
        return tasks

    def _ranges(self, reader: int, splits: list[FileSplit], sent: list[Sent]) -> list[Range]:
        ranges: list[Range] = []
        for continuation in stream_of(sent, splits):
            if isinstance(continuation, CustomEvent):
                continue
            if isinstance(continuation, FileSplit):
                split = continuation
                ranges.append((split.file.path, split.start, split.end))
                continue
            verdicts = self.commits.of(continuation.origin, reader)
            assert verdicts is not None, "I4: a continuation before its reader's commit"
            file = continuation.split.split("@")[0]
            assert continuation.index is not None
            start = verdicts.remainders.get(continuation.index)
            # Where it stops its reader decides; what it reads is in its own verdict.
            ranges.append((file, start or 0, start or 0))
        return ranges

    def expected(self, task: Task) -> list[Row]:
        """What a full read yields under the durable verdicts; the whole without verdicts."""
        verdicts = self.commits.of(task.ref, task.reader)
        rows: list[Row] = []
        for index, (file, start, end) in enumerate(task.ranges):
            if verdicts is not None and index in verdicts.returned:
                continue
            stop = end if verdicts is None else verdicts.remainders.get(index, end)
            rows.extend(rows_of((file, start, stop)))
        return rows

    def finish_sink(self) -> None:
        """The sink commits the running batch, unless it has seen its number already."""
        if len(self.sink) == len(self.offsets):
            return
        taken: list[Row] = []
        unwanted: list[Row] = []
        given_up: list[Row] = []
        for task in self.tasks:
            assert task.outcome is not None
            taken.extend(task.outcome)
            wanted = self.expected(task)
            missing = [row for row in wanted if row not in task.outcome]
            assert task.abandoned or not missing, "rows of an acknowledged reader are missing"
            if self.commits.of(task.ref, task.reader) is None:
                # Abandoned: what is left of a lane is read again.
                self.unwanted_lanes.add((task.ref, task.reader))
                missing = [row for row in missing if not is_lane(row[0])]
            unwanted.extend(missing)
            given_up.extend(self._judge(task))
        self.sink.append(Batch(self.offsets[-1], taken, unwanted, given_up))

    def _judge(self, task: Task) -> list[Row]:
        verdicts = self.commits.of(task.ref, task.reader)
        given_up: list[Row] = []
        for index, split in enumerate(task.ranges):
            if verdicts is None:
                continue
            if index not in verdicts.returned:
                self._returns.pop(split, None)
                continue
            self._returns[split] += 1
            if self._returns[split] == self._max_attempts:
                del self._returns[split]
                given_up.extend(rows_of(split))
        return given_up

    def accounted(self, batches: int | None = None) -> Counter[Row]:
        """Where every row of the first `batches` batches went; each may appear once."""
        found: Counter[Row] = Counter()
        for batch in self.sink[:batches]:
            found.update(batch.taken)
            found.update(batch.unwanted)
            found.update(batch.given_up)
        return found

    def told(self) -> list[str]:
        """Reader events of all completed batches that have a commit."""
        return sorted(
            value
            for ref in self.offsets[: self.committed]
            for reader in self.plans[ref]
            for value in getattr(self.commits.of(ref, reader), "told", [])
        )
