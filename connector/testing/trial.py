"""One query over a source, in the embedded host: its log is in memory, its tasks are run by hand.

The coordinator, the order of batches, the log, the reader tasks and all that they write are the
product's. Nothing happens by itself: there are no threads and no time, so a run that fails, fails
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from ...checkpoint_meta.stores.contract import RetryingStateStore, StateStore
from ...checkpoint_meta.stores.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from ...enumerator.coordinator.coordinator import Coordinator
from ...enumerator.settings import CoordinatorSettings, StartingState
from ...enumerator.testing import HandCrankedCalls
from ...errors import WaitTimeoutError
from ...reader.api import ReaderContext, Report, SplitReader, SplitReturned
from ...reader.task import Attempt, ReaderTask
from ..host.batch_log import BatchLog, BatchLoop
from ..query.driver import BatchDriver
from ..query.partitions import ReaderPartition, read_parts
from ..query.spark_checkpoint import from_offset
from ..source.api import Source

T = TypeVar("T")

Row: TypeAlias = Mapping[str, Any]
"""One row, by column."""

KILLED = "killed"
"""The executor dies after the first batch of an attempt."""

LOST = "lost"
"""The executor dies after it has acknowledged, and Spark gets none of the rows."""

RETURNED = "returned"
"""The reader sends all of its splits back."""

# Turns of the background that a question of the host's may take.
_PATIENCE = 100

# A source that has always more to read never comes to its end.
_MOST_BATCHES = 200

# Questions without news in a row after which a run has ended.
_QUIET = 4


class Trial:
    """A query, its driver processes one after the other, and what the host has of it."""

    def __init__(
        self,
        make_source: Callable[[], Source[Any, Any]],
        *,
        bounded: bool = False,
        starting_state: StartingState | None = None,
        fault: Fault | None = None,
        **settings: Any,
    ) -> None:
        """`make_source` is called for each process; `bounded` is Trigger.AvailableNow.

        `fault` kills the first process that comes to it. `settings` are of `CoordinatorSettings`.
        """
        self._make_source = make_source
        self._settings = CoordinatorSettings(
            parallelism=2,
            # No split of a suite is given up.
            max_split_attempts=100,
            # Bases come soon, so that kills meet their publication as well.
            deltas_per_base=2,
            discovery_timeout=0.0,
            commit_patience=0.0,
            upkeep_patience=0.0,
            starting_state=None if starting_state is None else lambda: starting_state,
        )
        self._settings = replace(self._settings, **settings)
        self._bounded = bounded
        self.objects = MemoryStateStore("trial" if starting_state is None else "fork")
        """Content of the state directory."""
        self.log_objects = MemoryStateStore("log")
        """Content of the host's log: `offsets` and `commits`, as Spark has them."""
        self.offsets: list[CheckpointRef] = []
        """The checkpoint at the end of each batch in the log."""
        self.sink: list[list[Row]] = []
        """The rows of each committed batch."""
        self.script: list[str] = []
        """What happens to the next attempts of tasks, in turn; nothing if it is empty."""
        self.meanwhile: Callable[[], object] = lambda: None
        """Happens between an attempt that is lost and the one that repeats it."""
        self._fault = fault
        self.kills = 0
        """Processes that `fault` has killed."""
        self._stores: list[FaultyStateStore] = []
        self._attempts = 0
        self._outcomes: dict[int, list[Row]] = {}
        self._start_driver()

    @property
    def rows(self) -> list[Row]:
        """Everything in the sink."""
        return [row for batch in self.sink for row in batch]

    def _store(self, objects: MemoryStateStore) -> FaultyStateStore:
        store = FaultyStateStore(objects)
        store.fault = self._fault
        self._stores.append(store)
        return store

    # The driver -----------------------------------------------------------------------------

    def _start_driver(self) -> None:
        def make_calls(*arguments: Any) -> HandCrankedCalls:
            self.calls = HandCrankedCalls(*arguments)
            return self.calls

        self.source = self._make_source()
        store = _once(self._store(self.objects))
        self.coordinator: Coordinator[Any, Any] = Coordinator(
            self.source, store, self._settings, lambda: 0.0, make_calls
        )
        self._loop: BatchLoop | None = None
        if self._bounded:
            self.coordinator.prepare_available_now()

    def restart(self, parallelism: int | None = None) -> None:
        """The driver's process is gone; another one takes over, perhaps with other readers."""
        if parallelism is not None:
            self._settings = replace(self._settings, parallelism=parallelism)
        self._start_driver()

    def step(self) -> bool:
        """One batch, or what is left of one after a kill; False if there is nothing new."""
        try:
            return self._step()
        except SimulatedCrash:
            self._died()
            self.restart()
            return True

    def kill_at(self, fault: Fault | None) -> None:
        """Kill the next process that comes to `fault`; None calls that off."""
        self._fault = fault
        for store in self._stores:
            store.fault = fault

    def _died(self) -> None:
        self.kills += 1
        self.kill_at(None)

    def _step(self) -> bool:
        if self._loop is None:
            log = BatchLog(_once(self._store(self.log_objects)))
            self._loop = BatchLoop(log, BatchDriver(self.coordinator, self.objects.location))
        loop, log = self._loop, self._loop.log
        if not loop.is_repeating:
            self.calls.run_calls()
        partitions = self._patiently(loop.begin)
        if partitions is None:
            return False
        if len(self.offsets) == log.newest:
            self.offsets.append(from_offset(log.offset).ref)
        self._background()
        rows = self._read(partitions)
        # A sink has the number of its newest batch, and takes none twice.
        if len(self.sink) == log.newest:
            self.sink.append(rows)
        loop.end()
        self.calls.run_calls()
        return True

    def _background(self) -> None:
        # While a batch is read, discovery goes on, and the next checkpoint may be cut.
        self.calls.run_calls()
        self.calls.tick()

    def _patiently(self, question: Callable[[], T]) -> T:
        for _ in range(_PATIENCE):
            try:
                return question()
            except WaitTimeoutError:
                self._background()
        message = f"the source has not discovered all existing data after {_PATIENCE} calls"
        raise AssertionError(message)

    def _read(self, partitions: Iterable[ReaderPartition]) -> list[Row]:
        rows: list[Row] = []
        for partition in partitions:
            outcome = None
            while outcome is None:
                outcome = self._attempt(partition)
                self._background()
            rows += outcome
        return rows

    def run_to_end(self) -> None:
        """Batch after batch until nothing new comes."""
        quiet = batches = 0
        while quiet < (1 if self._bounded else _QUIET):
            quiet, batches = (0, batches + 1) if self.step() else (quiet + 1, batches)
            assert batches < _MOST_BATCHES, f"the run does not end: {batches} batches"

    # The executors --------------------------------------------------------------------------

    def _attempt(self, partition: ReaderPartition) -> list[Row] | None:
        word = self.script.pop(0) if self.script else ""
        dying = self._store(self.objects)
        store, source = _once(dying), self._make_source()

        def make_reader(context: ReaderContext) -> SplitReader[Any]:
            if word == RETURNED and context.may_return:
                return _SendsBack()
            return source.create_reader(context)

        task = ReaderTask(
            make_reader,
            source.split_serializer,
            ReaderCommits(store),
            source.reader_event_types,
            may_return=True,
        )
        self._attempts += 1
        rows: list[Row] = []
        attempt = Attempt(self._attempts)
        batches = read_parts(task, source.split_serializer, store, partition, attempt)
        try:
            for batch in batches:
                assert batch.schema.equals(source.schema), (
                    f"a batch has the schema {batch.schema}; expected {source.schema}"
                )
                rows += batch.to_pylist()
                if word == KILLED:
                    # A process that has died writes nothing more, not even while its generators are
                    # closed.
                    dying.dead = True
                    raise SimulatedCrash
        except SimulatedCrash:
            with suppress(SimulatedCrash):
                getattr(batches, "close", lambda: None)()
            if word != KILLED:
                self._died()
            return None
        if word == LOST:
            self.meanwhile()
            return None
        return rows

    # What came of it ------------------------------------------------------------------------

    def commits(self) -> list[ReaderCommit]:
        """The reader commits of all batches in the sink."""
        commits = ReaderCommits(self.objects)
        return [
            commit
            for checkpoint in self.checkpoints()[: len(self.sink)]
            for commit in commits.of(checkpoint.identity)
        ]

    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints of all batches."""
        return [self.coordinator.history.load(ref) for ref in self.offsets]

    def check(self, landed: Iterable[Row], what: str = "") -> None:
        """Every landed row is in the sink exactly once, and nothing else is."""
        check_rows(self.rows, landed, what)


def _once(store: StateStore) -> RetryingStateStore:
    # One attempt: a fault is a death here, so there is no other try.
    return RetryingStateStore(store, attempts=1, sleep=lambda _: None)


def check_rows(rows: Iterable[Row], expected: Iterable[Row], what: str = "") -> None:
    """Raise unless both hold the same rows, in any order.

    Raises:
        AssertionError: names some of the rows that are lost, doubled or invented.
    """
    there, due = Counter(map(_key, rows)), Counter(map(_key, expected))
    lost, more = due - there, there - due
    prefix = f"{what}: " if what else ""
    assert not lost, f"{prefix}{lost.total()} rows lost: {_some(lost)}"
    assert not more, f"{prefix}{more.total()} rows doubled or invented: {_some(more)}"


def _key(row: Row) -> str:
    return repr(sorted(row.items()))


def _some(rows: Counter[str]) -> str:
    return ", ".join(sorted(rows)[:3])


class _SendsBack(SplitReader[Any]):
    """A reader that can read nothing."""

    @override
    def read(self, splits: Sequence[Any]) -> Iterator[pa.RecordBatch | Report]:
        for split in splits:
            yield SplitReturned(split.split_id, "the suite sends it back")
