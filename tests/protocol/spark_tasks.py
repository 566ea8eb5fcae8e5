"""Tasks of a simulated Spark: retries, speculation, stragglers, and limits downstream."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.files.file_split import FIGURES, FileSplit
from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash
from pyspark_sluice.connector.query.partitions import ReaderPartition
from pyspark_sluice.errors import MalformedDataError, SluiceError
from pyspark_sluice.reader.api import ReaderContext, Report, SplitReturned
from pyspark_sluice.reader.task import Assignment, Attempt, ReaderTask

from .row_reader import FAIL, PART, RETURN, RowReader
from .rows import is_lane
from .scheduler import Thread
from .shared_directory import Client

if TYPE_CHECKING:
    from .spark_query import Query

ATTEMPTS = 4
"""Failures of one task after which Spark gives up on the query."""


@dataclass
class Habits:
    """What this Spark does, from now on; shares out of 1."""

    fails: float = 0.0
    """Tasks fail in the middle."""
    dies: float = 0.0
    """Executors are killed, at any operation."""
    speculates: float = 0.0
    straggles: float = 0.0
    """What has lost goes on, beyond the end of its batch."""
    returns: float = 0.0
    parts: float = 0.0
    twice: float = 0.0
    limits: float = 0.0
    empty: float = 0.0
    """limit(0): no task runs."""
    unlimited: float = 0.0
    """Questions for all that there is."""


class Job:
    """One task of one batch."""

    def __init__(self, query: Query, source: int, partition: ReaderPartition) -> None:
        self.query, self.source, self.partition = query, source, partition
        self.failed = self.attempts = 0
        self.is_cut_short = False
        read = FileSplitSerializer().read
        splits = [s for p in partition.parts for b in p.splits() for s in read(p.version, b)]
        self.has_lanes = any(is_lane(s.file.path) for s in splits) or any(
            getattr(sent, "origin", None) for p in partition.parts for sent in p.sent
        )
        self.rows = [
            (s.file.path, i) for s in splits for i in range(s.start, s.end)
            if not is_lane(s.file.path)
        ]  # fmt: skip

    def run(self, at_most: float | None = None) -> list[Any]:
        """The rows of the first attempt that ends well; with `at_most`, what it has by then."""
        world = self.query.world
        if at_most is not None:
            self.is_cut_short = True
            if self.has_lanes:
                # What a limit takes of an unbounded split is read again.
                return []
        running: list[_Attempt] = []
        while True:
            habits, chance = world.habits, world.scheduler.random.random
            running = [a for a in running if not a.is_over]
            if not running or (len(running) == 1 and chance() < habits.speculates):
                if running:
                    world.count("a task is speculated on")
                running.append(_Attempt(self, at_most))
                running[-1].start()
            world.scheduler.wait(partial(_some_are_over, tuple(running)), 3.0)
            for attempt in running:
                if attempt.rows is not None:
                    self._end([other for other in running if other is not attempt])
                    world.acknowledged(self, attempt.told)
                    return attempt.rows
                if attempt.is_over:
                    self._fail(attempt)

    def _end(self, losers: Sequence[_Attempt]) -> None:
        world = self.query.world
        for attempt in losers:
            if world.scheduler.random.random() < world.habits.straggles:
                world.count("an attempt goes on beyond its batch")
            else:
                world.count("an attempt that lost is killed")
                attempt.process.dead = True

    def _fail(self, attempt: _Attempt) -> None:
        self.failed += 1
        self.query.world.count("an attempt fails")
        if self.failed >= ATTEMPTS * (2 if attempt.error is None else 1):
            raise attempt.error or MalformedDataError("executors die", "here")


class _Attempt:
    def __init__(self, job: Job, at_most: float | None) -> None:
        job.attempts += 1
        self.job, self.at_most = job, at_most
        self.process = job.query.executor()
        self.number = job.attempts
        self.rows: list[Any] | None = None
        self.error: BaseException | None = None
        self.told: list[str] = []
        """Events in the commits of this attempt, one a part."""
        self._event = ""
        world = job.query.world
        chance = world.scheduler.random.random
        if job.failed < ATTEMPTS - 1 and at_most is None:
            if chance() < world.habits.dies:
                self.process.crash_in = world.scheduler.random.randrange(1, 8)
                self.process.crash_kind = world.scheduler.random.choice(["before", "after"])
            words = {FAIL: world.habits.fails, RETURN: world.habits.returns}
            words[PART] = world.habits.parts
            self.script = [
                next((w for w, share in words.items() if chance() < share), "read")
                for _ in range(4)
            ]
        else:
            self.script = []

    @property
    def is_over(self) -> bool:
        return self.rows is not None or self.error is not None or self.process.dead

    def start(self) -> None:
        Thread(self._run, "task", process=self.process).start()

    def _run(self) -> None:
        try:
            self.rows = self._read()
        except SluiceError as error:
            self.error = error
        except SimulatedCrash:
            raise
        except BaseException as error:  # noqa: BLE001 - it is looked at
            self.error = error
            self.job.query.world.unnamed(error)

    def _reader(self, context: ReaderContext) -> RowReader:
        return _Reader(context, self.job, self.script, self._event)

    def _read(self) -> list[Any]:
        job, world = self.job, self.job.query.world
        directory = job.query.directories[job.source]
        store = Client(directory, self.process, world.scheduler, world.weather).retrying()
        task = ReaderTask(
            self._reader,
            FileSplitSerializer(),
            ReaderCommits(store),
            frozenset({"told", FIGURES}),
            may_return=True,
            writes=job.query.writes(self.process),
        )
        rows: list[Any] = []
        for part in job.partition.parts:
            # As a task of Spark does it.
            if part.visibility is not None:
                part.visibility.check(store)
            splits = [s for b in part.splits() for s in FileSplitSerializer().read(part.version, b)]
            assignment = Assignment(
                part.checkpoint, job.partition.reader, splits, part.sent, part.waived,
                job.partition.claim, part.budget, job.partition.batch_start,
                job.partition.origin,
            )  # fmt: skip
            name = f"{part.checkpoint.ref.name}/{job.partition.reader}"
            self._event = f"{directory.location}/{name}"
            batches = task.read(assignment, Attempt(self.number, job.query.logs.query_id))
            try:
                for batch in batches:
                    rows += job.query.rows_in(batch)
                    world.scheduler.point()
                    if self.at_most is not None and len(rows) >= self.at_most:
                        return rows
            finally:
                # As an executor closes a generator, of which nobody may die.
                with contextlib.suppress(SimulatedCrash):
                    getattr(batches, "close", lambda: None)()
            self.told.append(self._event)
            if part.visibility is not None:
                part.visibility.check_retained(store)
        return rows


def _some_are_over(attempts: Sequence[_Attempt]) -> bool:
    return any(attempt.is_over for attempt in attempts)


class _Reader(RowReader):
    def __init__(self, context: ReaderContext, job: Job, script: Sequence[str], event: str) -> None:
        super().__init__(context, script, event)
        self._job, self._event = job, event

    def _read(self, split: FileSplit, word: str) -> Iterator[pa.RecordBatch | Report]:
        world = self._job.query.world
        if split.file.path in world.files[self._job.source].poisoned:
            word = FAIL
        for item in super()._read(split, word):
            if isinstance(item, SplitReturned):
                world.returned(self._job, split, self._event)
            yield item
