"""One query over one state directory: its driver, its executors and its crashes, as verbs.

What happens when is decided in `simulation.py`; what has to hold is in `invariants.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

from hypothesis.stateful import (
    RuleBasedStateMachine,
)

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.coordinator.in_flight import Stage
from pyspark_sluice.enumerator.testing import HandCrankedCalls
from pyspark_sluice.errors import (
    MalformedDataError,
    ReplayError,
    SourceUnavailable,
    StateError,
    WaitTimeoutError,
)
from pyspark_sluice.reader.task import Attempt as AttemptName
from pyspark_sluice.reader.task import ReaderTask

from .opened import opened
from .row_reader import reader_maker, rows_in
from .rows import LedgerEnumerator, Row, RowSource, World, is_lane
from .spark_model import Attempt, Plan, Spark, Task

MAX_ATTEMPTS = 2
_CLAIM_LOOKS = 2
"""Operations by which a coordinator sees that its claim is the newest, before each hand-out."""

RETAINED = 3
LIMITS = BatchLimits(files=3, bytes=4)


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

    def write(self, pick: int) -> None:
        """Make one of the writes that wait."""
        assert self.calls is not None
        if self.calls.writes:
            self.calls.make_write(pick % len(self.calls.writes))

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
        self.limits = LIMITS
        self.ahead = 1
        """`checkpointsAhead`."""
        self.referred: dict[str, list[str]] = {}
        """Base -> objects that it refers to."""
        self.ordered: list[list[Row]] = []
        """By order, in turn: rows that a person wants again."""
        self.lifted = False
        """True while something planned without limits has not been handed out."""
        self.run = self._incarnation(None)

    def due(self, orders: int | None = None) -> Counter[Row]:
        """Everything that has landed, and what the first `orders` orders want again."""
        again = [row for rows in self.ordered[:orders] for row in rows]
        return Counter(self.world.rows()) + Counter(again)

    def _settings(self, parallelism: int | None, **more: Any) -> CoordinatorSettings:
        return CoordinatorSettings(
            limits=self.limits,
            parallelism=parallelism,
            at_least_readers=2,
            max_split_attempts=MAX_ATTEMPTS,
            retained_checkpoints=RETAINED,
            deltas_per_base=2,
            discovery_timeout=0.0,
            commit_patience=0.0,
            upkeep_patience=0.0,
            checkpoints_ahead=self.ahead,
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
        found = opened(self.coordinator).enumerator
        assert isinstance(found, LedgerEnumerator)
        return found

    def _restart(self, parallelism: int | None, limits: BatchLimits = LIMITS) -> None:
        self.limits, self.lifted = limits, False
        self.run = self._incarnation(parallelism)
        if self.spark.is_running:
            # Spark replays the batch that its offset log names, before anything else.
            start, end = self.spark.start, self.spark.offsets[-1]
            self.spark.tasks = self._plan(start, end)

    def _plan(self, start: CheckpointRef, end: CheckpointRef) -> list[Task]:
        tasks = self.spark.plan(self.coordinator.assignments(start, end))
        assert end in self.spark.plans, "I6: another checkpoint than the one that was named"
        return tasks

    def _guarded(self, action: Callable[[], object]) -> bool:
        """Do it; a query that is killed is restarted. True if it went through."""
        try:
            action()
        except SimulatedCrash:
            assert self.run.store.dead
        except (StateError, SourceUnavailable):
            # A store or a bucket that keeps failing: it fails the query, by name (I7).
            if self.coordinator._threads.failure is None and not self.run.store.dead:
                return False
        else:
            return not self.run.store.dead
        self._restart(None)
        return False

    def _trigger(
        self, crash_before_log: bool = False, again: bool = False, once: bool = False
    ) -> None:
        start = self.spark.start
        was_ahead = self.coordinator._opened and opened(self.coordinator).flight.ahead
        # What an aborted call without limits has planned is not planned again by the next one.
        self.lifted = self.lifted or once
        end = self._latest(start, unlimited=once)
        self._check_told(later=bool(was_ahead))
        if end == start:
            self.lifted = False
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
        try:
            self.spark.tasks = self._plan(start, end)
        except StateError:
            # A store that fails while the batch is planned fails the query: it is replayed.
            self._restart(None)
            return
        if not self.lifted:
            self._check_limits(self.spark.plans[end])
        self.lifted = False

    def _check_told(self, *, later: bool) -> None:
        found, expected = Counter(self.enumerator.told), Counter(self.spark.told())
        if later:
            # What was cut ahead is handed out first; the background counts after that.
            assert found <= expected, "I5: a reader event doubled"
        else:
            assert found == expected, "I5: a reader event lost or doubled"

    def _check_limits(self, plan: Plan) -> None:
        ranges = [of for part in plan.values() for of in part if not is_lane(of[0])]
        files, size = {of[0] for of in ranges}, sum(end - start for _, start, end in ranges)
        assert self.limits.files is None or len(files) <= self.limits.files, "too many files"
        # A split that came back fits an empty batch with any limits.
        assert self.limits.bytes is None or size <= max(self.limits.bytes, 3), "too many bytes"

    def _discover_and_trigger(self) -> None:
        if self.coordinator._opened:
            self.run.discover()
        self._trigger()

    def _latest(self, start: CheckpointRef, unlimited: bool = False) -> CheckpointRef:
        coordinator = self.coordinator
        coordinator._open(start)
        if unlimited:
            opened(coordinator).flight.open_record.budget.lift(BatchLimits())
        self._await_discovery(self.run)
        ahead, operations = opened(coordinator).flight.ahead, self.run.store.operations
        is_durable = ahead and ahead[0].stage is Stage.PUBLISHED
        end = self._asked(coordinator, start, unlimited)
        if is_durable and not unlimited:
            looks = self.run.store.operations - operations
            assert looks <= _CLAIM_LOOKS, "Spark's thread waited for more than a look at the claim"
        return end

    def _asked(
        self, coordinator: Coordinator[Any, Any], start: CheckpointRef, unlimited: bool
    ) -> CheckpointRef:
        for _ in range(4 + len(self.world.files)):
            try:
                return coordinator.latest(start, unlimited)
            except WaitTimeoutError:
                # The threads that would go on with the listing and the writes are this loop.
                self.run.discover()
                self.run.write(0)
        return coordinator.latest(start, unlimited)

    def _await_discovery(self, run: Incarnation) -> None:
        # A pass that rests goes on when some of what it has found is planned.
        for _ in range(12):
            if opened(run.coordinator).enumerator.has_discovered:
                return
            run.discover()
            with run.coordinator._threads.lock:
                opened(run.coordinator)._plan()

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
        assignment = task.assignment()
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
        if any(is_lane(file) for file, _, _ in task.ranges):
            # What a limit downstream takes of an unbounded split is read again.
            batches = 0
        self._go_on(attempt, batches)
        if attempt not in self.attempts:
            return
        self._kill_attempts(task.reader)
        task.outcome, task.abandoned = attempt.rows, True

    def _kill_attempts(self, reader: int | None = None) -> None:
        for attempt in list(self.attempts):
            if reader is None or attempt.task.reader == reader:
                assert isinstance(attempt.batches, Generator)
                # Its executor may die of it: an attempt that is closed says so in the store.
                with suppress(SimulatedCrash, StateError):
                    attempt.batches.close()
                self.attempts.remove(attempt)

    def _run_tasks(self, scripts: list[list[str]]) -> None:
        self._run([task for task in self.spark.tasks if task.outcome is None], scripts)

    def _run(self, tasks: list[Task], scripts: list[list[str]]) -> None:
        for task in tasks:
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
        run.coordinator._open(spark.start)
        opened(run.coordinator).flight.open_record.budget.lift(BatchLimits())
        self._await_discovery(run)
        # A pass comes in portions; what landed last may have to wait for the one after.
        quiet, rounds_of_two_passes = 0, 4 + len(self.world.files) // 4
        for _ in range(100 + 10 * rounds_of_two_passes):
            run.discover()
            try:
                end = run.coordinator.latest(spark.start, unlimited=True)
            except WaitTimeoutError:
                # The threads that would go on with the listing and the writes are this loop.
                run.write(0)
                continue
            if end == spark.start:
                quiet += 1
                if quiet > rounds_of_two_passes:
                    return
                continue
            quiet = 0
            checkpoints = run.coordinator.assignments(spark.start, end)
            spark.offsets.append(end)
            spark.tasks = spark.plan(checkpoints)
            for task in spark.tasks:
                self._read_through(spark, task)
            spark.finish_sink()
            spark.committed += 1
        landed, found = self.due(), spark.accounted()
        message = f"no end: rows lost {landed - found}, doubled {found - landed}"
        raise AssertionError(message)

    def _read_through(self, spark: Spark, task: Task) -> None:
        store = self.objects if spark is self.spark else spark.commits.store
        reader = ReaderTask(
            reader_maker((), f"{task.ref.name}/{task.reader}"),
            FileSplitSerializer(),
            ReaderCommits(store),
            frozenset({"told"}),
            may_return=False,
        )
        assignment = task.assignment()
        batches = list(reader.read(assignment, AttemptName()))
        task.outcome = [row for batch in batches for row in rows_in(batch)]
