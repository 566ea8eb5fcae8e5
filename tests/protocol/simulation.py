"""Drives coordinator, reader tasks and store through everything that can happen to them.

The model is a plain list of rows. Invariants I1 to I6 are checked at every step (I7 by a source
that fails to list, I8 by the golden files). Nothing runs by itself: threads are turned by hand.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
)

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.file_columns import ranges_of
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.documents.orders import Order, Orders
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.enumerator import StartingState
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.errors import FencedError, SluiceError, StateError

from .invariants import Invariants
from .opened import opened
from .query import LIMITS, MAX_ATTEMPTS, RETAINED, Incarnation
from .rows import Row, is_lane
from .spark_model import Spark, rows_of

FAULTS = st.sampled_from(
    ["crash before", "crash after", "crash half-way", "error before", "error after"]
)
WORDS = st.lists(st.sampled_from(["read", "read", "return", "part", "fail", "stop"]), max_size=3)
SCRIPTS = st.lists(WORDS, max_size=6)
FILES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=3)
PARALLELISM = st.sampled_from([None, 1, 2, 3])
MOVES = st.lists(
    st.sampled_from(["t", "gt", "tg", "1gt", "g1t", "g2t", "tg1t", "2tgt", "t2t", "tgt1", "tt2t1"]),
    max_size=4,
)
AHEAD = st.sampled_from([1, 1, 2, 3, 0])
LANES = st.tuples(st.integers(0, 2), st.integers(1, 3))
OTHER_LIMITS = st.sampled_from(
    [LIMITS, LIMITS, BatchLimits(files=1), BatchLimits(bytes=2), BatchLimits()]
)


class Simulation(Invariants):
    """One query over one state directory, with all that can happen to it."""

    @initialize(
        files=FILES,
        batches=st.integers(0, 6),
        scripts=SCRIPTS,
        moves=MOVES,
        lane=LANES,
        ahead=AHEAD,
    )
    def begin(
        self,
        files: list[tuple[int, int]],
        batches: int,
        scripts: list[list[str]],
        moves: list[str],
        lane: tuple[int, int],
        ahead: int = 1,
    ) -> None:
        self.ahead = ahead
        self.run = self._incarnation(None)
        self.land(files)
        if moves:
            self.grow(lane, discover=False)
        self.some_batches(batches, scripts, moves, lane)

    @rule(files=FILES)
    def land(self, files: list[tuple[int, int]]) -> None:
        if len(self.world.files) < 20:
            for rows, modified in files:
                self.world.land(rows, modified)

    @rule(lane=LANES, discover=st.booleans())
    def grow(self, lane: tuple[int, int], discover: bool) -> None:
        """A lane grows; where a reader has it, an event is sent at once."""
        self.world.grow(*lane)
        if discover and self.coordinator._opened:
            self._guarded(self.run.discover)

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

    @rule()
    def discover(self) -> None:
        self._guarded(self.run.discover)

    @rule()
    def tick(self) -> None:
        self._guarded(self.run.tick)

    @rule(reader=st.integers(0, 2))
    def ask_for_an_event(self, reader: int) -> None:
        if self.coordinator._opened:
            self.enumerator.wanted.append(reader)

    @precondition(lambda self: not self.spark.is_running)
    @rule(
        crash_before_log=st.sampled_from([False, False, False, True]),
        again=st.booleans(),
        once=st.sampled_from([False, False, False, True]),
    )
    def trigger(self, crash_before_log: bool, again: bool, once: bool) -> None:
        self._guarded(lambda: self._trigger(crash_before_log, again, once))

    @precondition(lambda self: not self.spark.is_running)
    @rule(kind=st.sampled_from(["error before", "error after"]), meanwhile=st.booleans())
    def fail_to_publish(self, kind: Any, meanwhile: bool) -> None:
        """A checkpoint is aborted; its coordinator goes on."""
        self._guarded(lambda: self.coordinator._open(self.spark.start))
        self.run.store.fault = Fault(kind, times=2, verb="publish")
        self._guarded(self._discover_and_trigger)
        self.run.store.fault = None
        if meanwhile:
            self.tick()

    @precondition(lambda self: self.spark.committed and not self.spark.is_running)
    @rule()
    def let_old_state_go(self) -> None:
        def prune() -> None:
            self.coordinator.commit(self.spark.start)
            self.run.discover()

        if self.coordinator._opened:
            self._guarded(prune)

    @rule(pick=st.integers(0, 3), hold=st.booleans())
    def write(self, pick: int, hold: bool) -> None:
        """Writes in the background end one by one from now on, in any order, or at once."""
        calls = self.run.calls
        if calls is not None:
            self._guarded(lambda: self.run.write(pick))
            calls.holds_writes = hold

    @rule(parallelism=PARALLELISM, limits=OTHER_LIMITS, leave_zombie=st.booleans(), ahead=AHEAD)
    def restart(
        self, parallelism: int | None, limits: BatchLimits, leave_zombie: bool, ahead: int
    ) -> None:
        self.ahead = ahead
        if leave_zombie and self.coordinator._opened:
            self.zombie = self.run
            self.zombie.store.fault = None
        self._restart(parallelism, limits)
        if leave_zombie:
            last = self.spark.offsets[-1] if self.spark.offsets else NO_CHECKPOINT
            self._guarded(lambda: self.coordinator._open(last))

    @precondition(lambda self: self.spark.is_running and self._open_tasks())
    @rule(pick=st.integers(0, 5), script=WORDS, fault=st.none() | FAULTS)
    def begin_attempt(self, pick: int, script: list[str], fault: Any) -> None:
        tasks = self._open_tasks()
        self._begin_attempt(tasks[pick % len(tasks)], script, fault)

    @precondition(lambda self: self.attempts)
    @rule(pick=st.integers(0, 5), batches=st.integers(1, 9))
    def go_on(self, pick: int, batches: int) -> None:
        """Some rows further; nine are enough to end any attempt."""
        self._go_on(self.attempts[pick % len(self.attempts)], batches)

    @precondition(lambda self: self.spark.is_running and self._open_tasks())
    @rule(pick=st.integers(0, 5), script=WORDS, batches=st.integers(0, 3))
    def abandon(self, pick: int, script: list[str], batches: int) -> None:
        """Spark has enough of a task's rows (`limit`)."""
        task = self._open_tasks()[pick % len(self._open_tasks())]
        if task.outcome is None:
            self._abandon(task, script, batches)

    @precondition(lambda self: self.spark.is_running and self._all_done())
    @rule(crash=st.sampled_from([False, False, False, True]))
    def finish_batch(self, crash: bool) -> None:
        self._finish_batch()
        if crash:
            self._restart(None)
            return
        self.spark.committed += 1

    @precondition(lambda self: self.spark.is_running)
    @rule()
    def run_all_tasks(self) -> None:
        self._run_tasks([])

    @rule(
        batches=st.integers(1, 4),
        scripts=SCRIPTS,
        moves=MOVES,
        lane=LANES,
        prune=st.booleans(),
        stop_short=st.booleans(),
    )
    def some_batches(
        self,
        batches: int,
        scripts: list[list[str]],
        moves: list[str],
        lane: tuple[int, int],
        prune: bool = False,
        stop_short: bool = False,
    ) -> None:
        """The ordinary course of things, which gets a run to where it is interesting."""
        for number in range(batches):
            if not self.spark.is_running:
                self._guarded(self._discover_and_trigger)
            if not self.spark.is_running:
                return
            for move in moves.pop() if moves else "":
                self._move(move, scripts, lane)
            if stop_short and number == batches - 1:
                return
            self._run_tasks(scripts)
            self.finish_batch(crash=False)
            if prune and not self.spark.is_running:
                self.let_old_state_go()

    def _move(self, move: str, scripts: list[list[str]], lane: tuple[int, int]) -> None:
        """While a batch runs: the background's turn, growth, the end of the first or last task."""
        if move == "t":
            self.tick()
        elif move == "g":
            self.grow(lane, discover=True)
        else:
            tasks = [task for task in self.spark.tasks if task.outcome is None]
            self._run(tasks[:1] if move == "1" else tasks[-1:], scripts)

    @precondition(lambda self: self.zombie is not None and self.coordinator._opened)
    @rule(deed=st.sampled_from(["tick", "latest", "prune"]))
    def zombie_acts(self, deed: str) -> None:
        """The older of two coordinators stops, and harms nobody (I6)."""
        assert self.zombie is not None
        old = self.zombie.coordinator
        if deed == "tick":
            self.zombie.tick()
            assert isinstance(old._threads.failure, SluiceError)
        elif deed == "prune":
            self.zombie.discover()
            old.commit(opened(old).flight.latest_completed)
            self.zombie.discover()
            return
        else:
            flight = opened(old).flight
            # What it made before it was superseded it may still hand out.
            known = {flight.latest_completed, *(record.ref for record in flight.cut_records)}
            try:
                returned = old.latest(flight.latest_completed)
            except FencedError as error:
                message = str(error)
                assert f"epoch {old.epoch} (this query)" in message
            except SluiceError:
                pass
            else:
                assert returned in known, "I6: a superseded coordinator made a new checkpoint"
                return
        self.zombie = None

    @precondition(lambda self: self.spark.committed >= 2)
    @rule(first=st.integers(0, RETAINED), last=st.integers(0, RETAINED))
    def replay_a_range(self, first: int, last: int) -> None:
        """Asynchronous progress: one `partitions` call over several checkpoints (I2)."""
        offsets = self.spark.offsets[: self.spark.committed][-RETAINED:]
        low, high = sorted((first % len(offsets), last % len(offsets)))

        def replay() -> None:
            coordinator = self.coordinator
            if not coordinator._opened:
                return
            found = self.spark.plan(coordinator.assignments(offsets[low], offsets[high]))
            assert [task.ref for task in found] == [
                ref for ref in offsets[low + 1 : high + 1] for _ in self.spark.plans[ref]
            ]

        self._guarded(replay)

    @precondition(lambda self: len(self.ordered) < 3 and self._files_through())
    @rule(pick=st.integers(0, 9), fault=st.none() | FAULTS, part=st.booleans())
    def order_again(self, pick: int, fault: Any, part: bool) -> None:
        """A person wants a file that is in the sink again, and may die of writing it down."""
        files = self._files_through()
        file = files[pick % len(files)]
        start = file.size // 2 if part else 0
        splits = ranges_of([FileSplit(file, start, file.size)])
        order = Order(
            action="requeue",
            enumerator="rows",
            split_version=1,
            splits={name: splits.column(name).to_pylist() for name in splits.schema.names},
            nonce=str(len(self.ordered)),
        )
        store = FaultyStateStore(self.objects)
        if fault is not None:
            store.fault = Fault(fault, 1)
        before = len(self.objects.list("orders"))
        with suppress(SimulatedCrash, StateError):
            Orders(RetryingStateStore(store, attempts=2, sleep=lambda _: None)).publish(order)
        if len(self.objects.list("orders")) > before:
            self.ordered.append(rows_of((file.path, start, file.size)))

    def _files_through(self) -> list[FileVersion]:
        """Files of which the sink has every row, and of which no order has spoken yet."""
        taken = {row for batch in self.spark.sink for row in batch.taken}
        known = {path for rows in self.ordered for path, _ in rows}
        return [
            file
            for file in self.world.files
            if file.path not in known and taken.issuperset(rows_of((file.path, 0, file.size)))
        ]

    @precondition(lambda self: self.spark.committed >= 1)
    @rule(back=st.integers(0, RETAINED - 1), parallelism=PARALLELISM)
    def start_from_savepoint(self, back: int, parallelism: int | None) -> None:
        """A new query from a retained checkpoint reads the rest, and leaves the old state."""
        batches = max(1, self.spark.committed - back)
        before = dict(self.objects.objects)
        self.world.listing_failures = 0
        state = StartingState(self.objects, self.spark.offsets[batches - 1])
        settings = self._settings(parallelism, starting_state=lambda: state)
        other = MemoryStateStore("other")
        spark = Spark(other, MAX_ATTEMPTS)
        run = Incarnation(type(self).make_coordinator, self.world, other, settings)
        run.coordinator.prepare_available_now()
        self._drain(run, spark)
        assert self.objects.objects == before, "a savepoint was touched"
        rows = self.spark.accounted(batches) + spark.accounted()
        # An order belongs to its directory: what the savepoint does not contain stays there.
        name = f"checkpoints/{state.ref.name}.arrow"
        orders = Checkpoint.from_bytes(before[name], name).header.orders
        landed = self.due(orders) + self._unread(batches)
        assert rows == landed, "a savepoint loses or doubles rows"

    def _unread(self, batches: int) -> Counter[Row]:
        """What nothing says has been read, though the old query abandoned it: read again."""
        commits, (last, *later) = ReaderCommits(self.objects), self.spark.offsets[batches - 1 :]
        if any(commits.readers(ref) or commits.abandoned(ref) for ref in later):
            return Counter()
        silent = set(self.spark.plans[last]) - set(commits.readers(last))
        parts = [part for reader in silent for part in self.spark.plans[last][reader]]
        # What is left of a lane comes back, here as there.
        return Counter(row for part in parts for row in rows_of(part) if not is_lane(part[0]))

    def teardown(self) -> None:
        """Let everything come to rest: every row that has landed is in exactly one place."""
        self.world.listing_failures = 0
        self._kill_attempts()
        self.run.store.fault = None
        failed = self.coordinator._threads.failure is not None or self.run.store.dead
        # What is ordered while a query runs is done at its next start.
        if failed or self.ordered:
            self._restart(None)
        if self.spark.is_running:
            for task in self.spark.tasks:
                if task.outcome is None:
                    self._read_through(self.spark, task)
            self.spark.finish_sink()
            self.spark.committed += 1
        if not self.coordinator._opened:
            self.coordinator._open(self.spark.start) if self.spark.committed else None
        self._drain(self.run, self.spark)
        self._check_all()
        # What is on disk has to say the same.
        self._restart(2)
        self._drain(self.run, self.spark)
        self._check_all()
        self._check_told(later=False)

    def _check_all(self) -> None:
        landed = self.due()
        found = self.spark.accounted()
        assert found == landed, f"lost {landed - found}, doubled or invented {found - landed}"
