"""Drives coordinator, reader tasks and store through everything that can happen to them.

The model is a plain list of rows. Invariants I1 to I6 are checked at every step (I7 by a source
that fails to list, I8 by the golden files). Nothing runs by itself: threads are turned by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from pyspark_sluice.checkpoint_meta.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.serializer import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.enumerator.coordinator import Coordinator, CoordinatorSettings, StartingState
from pyspark_sluice.enumerator.room import BatchLimits
from pyspark_sluice.enumerator.testing import HandCrankedCalls
from pyspark_sluice.errors import (
    FencedError,
    MalformedDataError,
    ReplayError,
    SluiceError,
    SourceUnavailable,
    StateError,
)
from pyspark_sluice.reader.task import Assignment, ReaderTask
from pyspark_sluice.reader.task import Attempt as AttemptName

from .rows import LedgerEnumerator, Row, RowSource, World, reader_maker, rows_in
from .spark_model import Attempt, Spark, Task, rows_of

MAX_ATTEMPTS = 2
RETAINED = 3
FAULTS = st.sampled_from(
    ["crash before", "crash after", "crash half-way", "error before", "error after"]
)
WORDS = st.lists(st.sampled_from(["read", "read", "return", "part", "fail", "stop"]), max_size=3)
SCRIPTS = st.lists(WORDS, max_size=6)
FILES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=3)
PARALLELISM = st.sampled_from([None, 1, 2, 3])


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


class Simulation(RuleBasedStateMachine):
    """One query over one state directory, with all its crashes."""

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

    # What a crash is ------------------------------------------------------------------------

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

    # The world ------------------------------------------------------------------------------

    @initialize(files=FILES, batches=st.integers(0, 6), scripts=SCRIPTS)
    def begin(self, files: list[tuple[int, int]], batches: int, scripts: list[list[str]]) -> None:
        self.land(files)
        self.some_batches(batches, scripts)

    @rule(files=FILES)
    def land(self, files: list[tuple[int, int]]) -> None:
        if len(self.world.files) < 20:
            for rows, modified in files:
                self.world.land(rows, modified)

    @rule(times=st.integers(1, 2))
    def stop_listing(self, times: int) -> None:
        self.world.listing_failures = times

    @rule(
        kind=FAULTS,
        after=st.integers(0, 4),
        times=st.sampled_from([1, 4]),
        verb=st.sampled_from(["", "publish"]),
    )
    def arm(self, kind: Any, after: int, times: int, verb: str) -> None:
        self.run.store.fault = Fault(kind, after if verb == "" else 0, times, verb)

    # The driver -----------------------------------------------------------------------------

    @rule()
    def discover(self) -> None:
        self._guarded(self.run.discover)

    @rule()
    def tick(self) -> None:
        self._guarded(self.run.tick)

    @rule(reader=st.integers(0, 2))
    def ask_for_an_event(self, reader: int) -> None:
        if self.coordinator._begun:
            self.enumerator.wanted.append(reader)

    @precondition(lambda self: not self.spark.is_running)
    @rule(crash_before_log=st.sampled_from([False, False, False, True]), again=st.booleans())
    def trigger(self, crash_before_log: bool, again: bool) -> None:
        self._guarded(lambda: self._trigger(crash_before_log, again))

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

    def _latest(self, start: CheckpointRef, unlimited: bool = False) -> CheckpointRef:
        coordinator = self.coordinator
        coordinator._begin(start)
        for _ in range(4):
            if not coordinator._enumerator.is_settled:
                self.run.discover()
        return coordinator.latest(start, unlimited)

    @precondition(lambda self: not self.spark.is_running)
    @rule(kind=st.sampled_from(["error before", "error after"]), meanwhile=st.booleans())
    def fail_to_publish(self, kind: Any, meanwhile: bool) -> None:
        """A checkpoint is aborted; its coordinator goes on."""
        self._guarded(lambda: self.coordinator._begin(self.spark.start))
        self.run.store.fault = Fault(kind, times=2, verb="publish")
        self._guarded(self._discover_and_trigger)
        self.run.store.fault = None
        if meanwhile:
            self.tick()

    @precondition(lambda self: self.spark.committed and not self.spark.is_running)
    @rule()
    def let_old_state_go(self) -> None:
        def let_go() -> None:
            self.coordinator.commit(self.spark.start)
            self.run.discover()

        if self.coordinator._begun:
            self._guarded(let_go)

    @rule(parallelism=PARALLELISM, leave_zombie=st.booleans())
    def restart(self, parallelism: int | None, leave_zombie: bool) -> None:
        if leave_zombie and self.coordinator._begun:
            self.zombie = self.run
            self.zombie.store.fault = None
        self._restart(parallelism)
        if leave_zombie:
            self._guarded(
                lambda: (
                    self.coordinator._begin(self.spark.offsets[-1])
                    if self.spark.offsets
                    else self.coordinator._begin(NO_CHECKPOINT)
                )
            )

    # Executors ------------------------------------------------------------------------------

    def _open_tasks(self) -> list[Task]:
        return [task for task in self.spark.tasks if not task.abandoned]

    @precondition(lambda self: self.spark.is_running and self._open_tasks())
    @rule(pick=st.integers(0, 5), script=WORDS, fault=st.none() | FAULTS)
    def begin_attempt(self, pick: int, script: list[str], fault: Any) -> None:
        tasks = self._open_tasks()
        self._begin_attempt(tasks[pick % len(tasks)], script, fault)

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

    @precondition(lambda self: self.attempts)
    @rule(pick=st.integers(0, 5), batches=st.integers(1, 9))
    def go_on(self, pick: int, batches: int) -> None:
        """Some rows further; nine are enough to end any attempt."""
        self._go_on(self.attempts[pick % len(self.attempts)], batches)

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

    @precondition(lambda self: self.spark.is_running and self._open_tasks())
    @rule(pick=st.integers(0, 5), script=WORDS, batches=st.integers(0, 3))
    def abandon(self, pick: int, script: list[str], batches: int) -> None:
        """Spark has enough of a task's rows (`limit`)."""
        task = self._open_tasks()[pick % len(self._open_tasks())]
        if task.outcome is None:
            self._abandon(task, script, batches)

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

    @precondition(lambda self: self.spark.is_running and self._all_done())
    @rule(crash=st.sampled_from([False, False, False, True]))
    def finish_batch(self, crash: bool) -> None:
        self._finish_batch()
        if crash:
            self._restart(None)
            return
        self.spark.committed += 1
        self.acknowledged = False

    def _all_done(self) -> bool:
        return all(task.outcome is not None for task in self.spark.tasks)

    def _finish_batch(self) -> None:
        self._kill_attempts()
        self.spark.finish_sink()

    @precondition(lambda self: self.spark.is_running)
    @rule()
    def run_all_tasks(self) -> None:
        self._run_tasks([])

    def _run_tasks(self, scripts: list[list[str]]) -> None:
        for task in self.spark.tasks:
            while task.outcome is None:
                script = scripts.pop() if scripts else []
                if "stop" in script:
                    self._abandon(task, script, script.index("stop"))
                else:
                    self._go_on(self._begin_attempt(task, script), 1000)

    @rule(
        batches=st.integers(1, 4),
        scripts=SCRIPTS,
        let_go=st.booleans(),
        stop_short=st.booleans(),
    )
    def some_batches(
        self,
        batches: int,
        scripts: list[list[str]],
        let_go: bool = False,
        stop_short: bool = False,
    ) -> None:
        """The ordinary course of things, which gets a run to where it is interesting."""
        for number in range(batches):
            if not self.spark.is_running:
                self._guarded(self._discover_and_trigger)
            if not self.spark.is_running:
                return
            if stop_short and number == batches - 1:
                return
            self._run_tasks(scripts)
            self.finish_batch(crash=False)
            if let_go and not self.spark.is_running:
                self.let_old_state_go()

    def _discover_and_trigger(self) -> None:
        if self.coordinator._begun:
            self.run.discover()
        self._trigger()

    # Zombies --------------------------------------------------------------------------------

    @precondition(lambda self: self.zombie is not None and self.coordinator._begun)
    @rule(deed=st.sampled_from(["tick", "latest", "prune"]))
    def zombie_acts(self, deed: str) -> None:
        """The older of two coordinators stops, and harms nobody (I6)."""
        assert self.zombie is not None
        old = self.zombie.coordinator
        if deed == "tick":
            self.zombie.tick()
            assert isinstance(old._failure, SluiceError)
        elif deed == "prune":
            self.zombie.discover()
            old.commit(old._head)
            self.zombie.discover()
            return
        else:
            try:
                returned = old.latest(old._head)
            except FencedError as error:
                message = str(error)
                assert f"epoch {old.epoch} (this query)" in message
            except SluiceError:
                pass
            else:
                known = (old._head, old._next)
                assert returned in known, "I6: a superseded coordinator made a new checkpoint"
                return
        self.zombie = None

    # Looking back ---------------------------------------------------------------------------

    @precondition(lambda self: self.spark.committed >= 2)
    @rule(first=st.integers(0, RETAINED), last=st.integers(0, RETAINED))
    def replay_a_range(self, first: int, last: int) -> None:
        """Asynchronous progress: one `partitions` call over several checkpoints (I2)."""
        offsets = self.spark.offsets[: self.spark.committed][-RETAINED:]
        low, high = sorted((first % len(offsets), last % len(offsets)))

        def replay() -> None:
            coordinator = self.coordinator
            if not coordinator._begun:
                return
            found = self.spark.plan(coordinator.assignments(offsets[low], offsets[high]))
            assert [task.ref for task in found] == [
                ref for ref in offsets[low + 1 : high + 1] for _ in self.spark.plans[ref]
            ]

        self._guarded(replay)

    @precondition(lambda self: self.spark.committed >= 1)
    @rule(back=st.integers(0, RETAINED - 1), parallelism=PARALLELISM)
    def start_from_savepoint(self, back: int, parallelism: int | None) -> None:
        """A new query from a retained checkpoint reads the rest, and leaves the old state."""
        batches = max(1, self.spark.committed - back)
        before = dict(self.objects.objects)
        self.world.listing_failures = 0
        state = StartingState(self.objects, self.spark.offsets[batches - 1])
        settings = self._settings(parallelism, starting_state=state)
        other = MemoryStateStore("other")
        spark = Spark(other, MAX_ATTEMPTS)
        run = Incarnation(type(self).make_coordinator, self.world, other, settings)
        run.coordinator.prepare_available_now()
        self._drain(run, spark)
        assert self.objects.objects == before, "a savepoint was touched"
        rows = self.spark.accounted(batches) + spark.accounted()
        assert rows == Counter(self.world.rows()), "a savepoint loses or doubles rows"

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

    # Invariants -----------------------------------------------------------------------------

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        twice = [row for row, times in self.spark.accounted().items() if times > 1]
        assert not twice, f"I3: more than once in the sink: {twice}"

    @invariant()
    def events_arrive_in_order_without_gaps(self) -> None:
        arrived: dict[int, list[object]] = {}
        for ref in self.spark.offsets:
            for reader, events in self.spark.events[ref].items():
                assert reader in self.spark.plans[ref], "an event for a reader without a task"
                arrived.setdefault(reader, []).extend(events)
        for events in arrived.values():
            assert events == list(range(1, len(events) + 1)), f"events out of order: {arrived}"

    def _is_alive(self) -> bool:
        coordinator = self.coordinator
        return coordinator._begun and coordinator._failure is None and not self.run.store.dead

    @invariant()
    def every_split_is_in_one_place(self) -> None:
        """I3, seen from inside: pending, held or in an inbox, and nowhere else."""
        if not self._is_alive():
            return
        with_coordinator = self._rows_with_the_coordinator()
        assert max(with_coordinator.values(), default=0) <= 1, "I3: a row in two places"
        assigned, back, surely_back = self._rows_assigned()
        for row in with_coordinator:
            assert assigned[row] <= back[row], f"I3: {row} is assigned and pending"
        if self.coordinator._next in (None, *self.spark.offsets):
            for path in self.enumerator.inner._seen:
                size = next(file.size for file in self.world.files if file.path == path)
                for row in rows_of((path, 0, size)):
                    found = with_coordinator[row] or assigned[row] > surely_back[row]
                    assert found, f"I3: {row} is nowhere"

    def _rows_with_the_coordinator(self) -> Counter[Row]:
        coordinator = self.coordinator
        context = coordinator._context
        serializer = FileSplitSerializer()
        splits = list(self.enumerator.inner._pending)
        batches = [batch for of in context.inboxes._splits.values() for batch in of]
        for gateway in context.gateways:
            for events in gateway._held.values():
                batches.extend(e.splits for e, _ in events if hasattr(e, "splits"))
        for batch in batches:
            splits.extend(serializer.deserialize(1, batch))
        ranges = [(split.file.path, split.start, split.end) for split in splits]
        return Counter(row for split in ranges for row in rows_of(split))

    def _rows_assigned(self) -> tuple[Counter[Row], Counter[Row], Counter[Row]]:
        """Rows assigned on the chain; those sent back by now; those counted as sent back."""
        assigned: Counter[Row] = Counter()
        back: Counter[Row] = Counter()
        surely_back: Counter[Row] = Counter()
        given_up = [row for batch in self.spark.sink for row in batch.given_up]
        for number, ref in enumerate(self.spark.offsets):
            for reader, ranges in self.spark.plans[ref].items():
                verdicts = self.spark.commits.of(ref, reader)
                for index, (file, start, end) in enumerate(ranges):
                    assigned.update(rows_of((file, start, end)))
                    if verdicts is None:
                        continue
                    first = start if index in verdicts.returned else end
                    first = verdicts.remainders.get(index, first)
                    rows = rows_of((file, first, end))
                    back.update(rows)
                    last = self.spark.committed - (0 if self.acknowledged else 1)
                    if number < last:
                        surely_back.update(rows)
        surely_back.subtract(given_up)
        return assigned, back, surely_back

    @invariant()
    def nothing_passes_a_closed_gateway(self) -> None:
        """I4: in an inbox is only what its reader may have: it acknowledged, or came later."""
        if not self._is_alive() or not self.spark.is_running:
            return
        running = self.spark.offsets[-1]
        if self.coordinator._next != running or self.readers_at_cut == 0:
            return
        for reader in self.coordinator._context.inboxes._splits:
            acknowledged = self.spark.commits.of(running, reader) is not None
            assert acknowledged or reader >= self.readers_at_cut, "I4: released too early"

    # The end --------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Let everything come to rest: every row that has landed is in exactly one place."""
        self.world.listing_failures = 0
        self._kill_attempts()
        self.run.store.fault = None
        if self.coordinator._failure is not None or self.run.store.dead:
            self._restart(None)
        if self.spark.is_running:
            for task in self.spark.tasks:
                if task.outcome is None:
                    self._read_through(self.spark, task)
            self.spark.finish_sink()
            self.spark.committed += 1
        if not self.coordinator._begun:
            self._latest(self.spark.start) if self.spark.committed else None
        self._drain(self.run, self.spark)
        self._check_all()
        # What is on disk has to say the same.
        self._restart(2)
        self._drain(self.run, self.spark)
        self._check_all()
        assert sorted(self.enumerator.told) == self.spark.told(), "I5: after a restart"

    def _check_all(self) -> None:
        landed: Counter[Row] = Counter(self.world.rows())
        found = self.spark.accounted()
        assert found == landed, f"lost {landed - found}, doubled or invented {found - landed}"
