"""One query over one state directory: its driver, its executors and its crashes, as verbs.

What happens when is decided in `simulation.py`; what has to hold is in `invariants.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from hypothesis.stateful import (
    RuleBasedStateMachine,
)

from pyspark_sluice.checkpoint_meta.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.reference import CheckpointRef
from pyspark_sluice.checkpoint_meta.serializer import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.room import BatchLimits
from pyspark_sluice.enumerator.testing import HandCrankedCalls
from pyspark_sluice.errors import (
    MalformedDataError,
    ReplayError,
    SourceUnavailable,
    StateError,
)
from pyspark_sluice.reader.task import Assignment, ReaderTask
from pyspark_sluice.reader.task import Attempt as AttemptName

from .rows import LedgerEnumerator, Row, RowSource, World, reader_maker, rows_in
from .spark_model import Attempt, Spark, Task

MAX_ATTEMPTS = 2
RETAINED = 3


class Incarnation:
    """A driver process: a coordinator and its own handle on the store."""

    def __init__(
        self,
        make: Callable[..., Coordinator[Any, Any]],
        world: World,
        store: MemoryStateStore,
        settings: CoordinatorSettings,
    ) -> None:
        self.store = FaultyStateStore(store)
        self.calls: HandCrankedCalls | None = None

        def make_calls(*args: Any) -> HandCrankedCalls:
            self.calls = HandCrankedCalls(*args)
            return self.calls

        retrying = RetryingStateStore(self.store, attempts=2, sleep=lambda _: None)
        self.coordinator = make(RowSource(world), retrying, settings, lambda: 0.0, make_calls)

    def discover(self) -> None:
        assert self.calls is not None
        self.calls.run_calls()

    def tick(self) -> None:
        assert self.calls is not None
        self.calls.tick()


class Query(RuleBasedStateMachine):
    """Every verb keeps the books of the model of Spark; a crash may come out of most of them."""

    make_coordinator: Callable[..., Coordinator[Any, Any]] = Coordinator

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.objects = MemoryStateStore()
        self.spark = Spark(self.objects, MAX_ATTEMPTS)
        self.attempts: list[Attempt] = []
        self.seen_rows: dict[tuple[CheckpointRef, int], list[Row]] = {}
        self.zombie: Incarnation | None = None
        self.acknowledged = False
        """True once the live coordinator has been asked for what follows `spark.start`."""
        self.readers_at_cut = 0
        self.run = self._incarnation(None)

    def _settings(self, parallelism: int | None, **more: Any) -> CoordinatorSettings:
        return CoordinatorSettings(
            limits=BatchLimits(files=3, bytes=4),
            parallelism=parallelism,
            at_least_readers=1,
            max_split_attempts=MAX_ATTEMPTS,
            retained_checkpoints=RETAINED,
            deltas_per_base=2,
            settle_timeout=0.0,
            commit_patience=0.0,
            **more,
        )

    def _incarnation(self, parallelism: int | None) -> Incarnation:
        make = type(self).make_coordinator
        return Incarnation(make, self.world, self.objects, self._settings(parallelism))

    @property
    def coordinator(self) -> Coordinator[Any, Any]:
        return self.run.coordinator

    @property
    def enumerator(self) -> LedgerEnumerator:
        found = self.coordinator._enumerator
        assert isinstance(found, LedgerEnumerator)
        return found

    def _restart(self, parallelism: int | None) -> None:
        self.run = self._incarnation(parallelism)
        self.acknowledged = False
        if self.spark.is_running:
            # Spark replays the batch that its offset log names, before anything else.
            start, end = self.spark.start, self.spark.offsets[-1]
            self.spark.tasks = self._plan(start, end)
            self.readers_at_cut = 0

    def _plan(self, start: CheckpointRef, end: CheckpointRef) -> list[Task]:
        tasks = self.spark.plan(self.coordinator.assignments(start, end))
        assert end in self.spark.plans, "I6: another checkpoint than the one that was named"
        return tasks

    def _guarded(self, action: Callable[[], None]) -> bool:
        """Do it; whatever kills the query restarts it. True if it went through."""
        try:
            action()
        except SimulatedCrash:
            assert self.run.store.dead
        except (StateError, SourceUnavailable):
            # A store or a bucket that keeps failing: it fails the query, by name (I7).
            if self.coordinator._failure is None and not self.run.store.dead:
                return False
        else:
            return not self.run.store.dead
        self._restart(None)
        return False

    def _trigger(self, crash_before_log: bool = False, again: bool = False) -> None:
        start = self.spark.start
        end = self._latest(start)
        self.acknowledged = True
        assert sorted(self.enumerator.told) == self.spark.told(), (
            "I5: a reader event lost or doubled"
        )
        if end == start:
            return
        name = f"checkpoints/{end.checkpoint:010d}-{end.epoch:010d}.arrow"
        assert name in self.objects.objects, "I1: the offset is out before its checkpoint"
        assert end.epoch == self.coordinator.epoch
        if again:
            assert self.coordinator.latest(start) == end
        if crash_before_log:
            self._restart(None)
            return
        self.spark.offsets.append(end)
        self.readers_at_cut = self.coordinator._context.parallelism
        self.spark.tasks = self._plan(start, end)

    def _discover_and_trigger(self) -> None:
        if self.coordinator._begun:
            self.run.discover()
        self._trigger()

    def _latest(self, start: CheckpointRef, unlimited: bool = False) -> CheckpointRef:
        coordinator = self.coordinator
        coordinator._begin(start)
        for _ in range(4):
            if not coordinator._enumerator.is_settled:
                self.run.discover()
        return coordinator.latest(start, unlimited)

    def _open_tasks(self) -> list[Task]:
        return [task for task in self.spark.tasks if not task.abandoned]

    def _all_done(self) -> bool:
        return all(task.outcome is not None for task in self.spark.tasks)

    def _begin_attempt(self, task: Task, script: list[str], fault: Any = None) -> Attempt:
        if len(self.spark.sink) == len(self.spark.offsets) or task.outcome is not None:
            # Its rows are in the sink, or will be: a verdict against them would come too late
            # where an abandoned attempt has left none.
            script = ["fail" if word == "fail" else "read" for word in script]
        store = FaultyStateStore(self.objects)
        if fault is not None:
            store.fault = Fault(fault, 1)
        reader_task = ReaderTask(
            reader_maker(script, f"{task.ref.name}/{task.reader}"),
            FileSplitSerializer(),
            ReaderCommits(RetryingStateStore(store, attempts=2, sleep=lambda _: None)),
            frozenset({"told"}),
            may_return=True,
        )
        assignment = Assignment(task.ref, task.reader, task.splits, task.events)
        batches = reader_task.read(assignment, AttemptName(len(self.attempts)))
        had_commit = self.spark.commits.of(task.ref, task.reader) is not None
        attempt = Attempt(task, batches, had_commit)
        self.attempts.append(attempt)
        return attempt

    def _go_on(self, attempt: Attempt, batches: int) -> None:
        try:
            for _ in range(batches):
                batch = next(attempt.batches, None)
                if batch is None:
                    self._succeed(attempt)
                    return
                attempt.rows.extend(rows_in(batch))
        except (SimulatedCrash, MalformedDataError, StateError):
            self.attempts.remove(attempt)
        except ReplayError as error:
            scripted = isinstance(error.__cause__, MalformedDataError)
            assert scripted or not attempt.had_commit, "an attempt cannot follow the first one"
            self.attempts.remove(attempt)

    def _succeed(self, attempt: Attempt) -> None:
        self.attempts.remove(attempt)
        task = attempt.task
        assert self.spark.commits.of(task.ref, task.reader) is not None
        assert attempt.rows == self.spark.expected(task), "rows and verdicts disagree"
        for known in self.spark.tasks:
            if (known.ref, known.reader) == (task.ref, task.reader) and known is task:
                known.outcome = known.outcome if known.outcome is not None else attempt.rows

    def _abandon(self, task: Task, script: list[str], batches: int) -> None:
        attempt = self._begin_attempt(task, script)
        self._go_on(attempt, batches)
        if attempt not in self.attempts:
            return
        self._kill_attempts(task.reader)
        task.outcome, task.abandoned = attempt.rows, True

    def _kill_attempts(self, reader: int | None = None) -> None:
        for attempt in list(self.attempts):
            if reader is None or attempt.task.reader == reader:
                assert isinstance(attempt.batches, Generator)
                attempt.batches.close()
                self.attempts.remove(attempt)

    def _run_tasks(self, scripts: list[list[str]]) -> None:
        for task in self.spark.tasks:
            while task.outcome is None:
                script = scripts.pop() if scripts else []
                if "stop" in script:
                    self._abandon(task, script, script.index("stop"))
                else:
                    self._go_on(self._begin_attempt(task, script), 1000)

    def _finish_batch(self) -> None:
        self._kill_attempts()
        self.spark.finish_sink()

    def _drain(self, run: Incarnation, spark: Spark) -> None:
        run.coordinator._begin(spark.start)
        for _ in range(3):
            run.discover()
        for _ in range(100):
            end = run.coordinator.latest(spark.start, unlimited=True)
            if end == spark.start:
                return
            checkpoints = run.coordinator.assignments(spark.start, end)
            spark.offsets.append(end)
            spark.tasks = spark.plan(checkpoints)
            for task in spark.tasks:
                self._read_through(spark, task)
            spark.finish_sink()
            spark.committed += 1
        raise AssertionError("the stream does not come to rest")

    def _read_through(self, spark: Spark, task: Task) -> None:
        store = self.objects if spark is self.spark else spark.commits._store
        reader = ReaderTask(
            reader_maker((), f"{task.ref.name}/{task.reader}"),
            FileSplitSerializer(),
            ReaderCommits(store),
            frozenset({"told"}),
            may_return=False,
        )
        assignment = Assignment(task.ref, task.reader, task.splits, task.events)
        batches = list(reader.read(assignment, AttemptName()))
        task.outcome = [row for batch in batches for row in rows_in(batch)]
