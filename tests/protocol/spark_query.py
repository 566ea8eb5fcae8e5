"""A model of Spark around the real coordinator, offsets, partitions and tasks.

An offset log and a commit log, of which asynchronous progress writes only some entries; a sink that
remembers the numbers of its batches; several sources; tasks with retries, speculation and
stragglers; `foreachBatch` that reads twice; limits downstream. All in threads of the scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash
from pyspark_sluice.connector.query.partitions import partitions_of
from pyspark_sluice.connector.query.spark_checkpoint import Offsets
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.reader.task import DirectWrite

from .row_reader import rows_in
from .rows import Row
from .scheduler import Process, Thread
from .shared_directory import Client, Directory
from .simulated_time import sleep, wall_clock
from .spark_tasks import Job

if TYPE_CHECKING:
    from .query_life import QueryLife

Offset = list[dict[str, Any]]
"""One of each source."""


class Concurrent(Exception):
    """Spark's own error where two drivers write one log."""


@dataclass
class Logs:
    """What Spark has written down of one query."""

    offsets: dict[int, Offset] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)
    query_id: str = ""
    events: dict[int, dict[tuple[int, int], list[Any]]] = field(default_factory=dict)
    """Batch -> (source, reader) -> what the source has sent."""

    def copy(self) -> Logs:
        return Logs(dict(self.offsets), set(self.commits), self.query_id, dict(self.events))

    def id_without_batches(self) -> str:
        """As the product finds it out of Spark's checkpoint."""
        return "" if self.offsets else self.query_id


@dataclass
class Sink:
    """Takes each batch number once."""

    rows: Counter[Row] = field(default_factory=Counter)
    taken: set[int] = field(default_factory=set)
    unread: set[Row] = field(default_factory=set)
    """What a limit downstream has left: there or not."""

    def copy(self) -> Sink:
        return Sink(Counter(self.rows), set(self.taken), set(self.unread))


@dataclass
class Setting:
    """What does not change with a restart."""

    settings: CoordinatorSettings
    is_async: bool = False
    is_bounded: bool = False


class Query:
    """One driver's process, from its start to its end."""

    def __init__(
        self,
        process: Process,
        world: QueryLife,
        logs: Logs,
        sink: Sink,
        setting: Setting,
        directories: Sequence[Directory],
    ) -> None:
        self.process, self.world, self.logs, self.sink = process, world, logs, sink
        self.setting = setting
        self.directories = list(directories)
        self.error: BaseException | None = None
        self.began = world.scheduler.now
        self.batches = self.quiet = 0
        """Batches so far; questions in a row without news."""
        self.coordinators: list[Coordinator[Any, Any]] = []
        self.executors: list[Process] = []
        self._numbers = 0

    def writes(self, process: Process) -> DirectWrite[Any] | None:
        """Where tasks put their rows; None for Spark."""
        return None

    def rows_in(self, batch: pa.RecordBatch) -> list[Any]:
        """What a task gives to the host."""
        return rows_in(batch)

    def check_rows_of_batch(self, rows: int) -> None:
        """Limits on rows hold for each batch, of each source."""
        most = max(at or 1_000_000 for at in self.world.row_limits) * len(self.directories)
        if rows > most and not self.setting.is_async:
            self.world.found(f"too many rows in a batch: {rows}")

    def start(self) -> None:
        Thread(self._run, "spark", process=self.process).start()

    @property
    def is_over(self) -> bool:
        return self.process.dead or self.error is not None

    def _run(self) -> None:
        try:
            self._drive()
        except SimulatedCrash:
            raise
        except BaseException as error:  # noqa: BLE001 - it is judged later
            self.error = error
        # Spark kills the Python process of a query that has ended.
        self.process.dead = True

    # The micro-batches ------------------------------------------------------------------------

    def _drive(self) -> None:
        world = self.world
        find_id = self.logs.id_without_batches
        settings = replace(self.setting.settings, query_without_batches=find_id)
        for number, directory in enumerate(self.directories):
            client = Client(directory, self.process, world.scheduler, world.weather)
            source = world.make_source(number)
            coordinator = world.make_coordinator(source, client.retrying(), settings, wall_clock)
            self.coordinators.append(coordinator)
        offsets = [Offsets(c.history) for c in self.coordinators]
        if self.setting.is_bounded:
            for coordinator in self.coordinators:
                coordinator.prepare_available_now()
        nothing = [{"version": 1, "checkpoint": 0, "epoch": 0, "lineage": "", "checksum": ""}]
        nothing = nothing * len(offsets)
        batch, start, end = self._resume(nothing)
        while True:
            if end is None:
                refs = [o.ref(s) for o, s in zip(offsets, start, strict=True)]
                unlimited = world.scheduler.random.random() < world.habits.unlimited
                superseded = [*map(self._is_superseded, self.coordinators, self.directories)]
                pairs = zip(self.coordinators, refs, strict=True)
                asked = [coordinator.latest(ref, unlimited) for coordinator, ref in pairs]
                found = [o.offset(r) for o, r in zip(offsets, asked, strict=True)]
                if found == start:
                    self.quiet += 1
                    if self.setting.is_bounded:
                        return
                    # A trigger's interval, once nothing comes.
                    sleep(0.01 if self.quiet < 20 else 1.0)
                    continue
                news = [s != f for s, f in zip(start, found, strict=True)]
                world.handed_out(self, map(all, zip(superseded, news, strict=True)))
                self._log(batch, found)
                end = found
                before = [self.logs.offsets[b] for b in self.logs.offsets if b < batch]
                # What is not written down may be asked for again.
                if batch in self.logs.offsets and before:
                    self._commit_sources(offsets, before[-1])
            else:
                world.count("a batch is read again")
            self._batch(batch, start, end, offsets)
            self.batches += 1
            self.quiet = 0
            self._done(batch, end)
            batch, start, end = batch + 1, end, None

    def _is_superseded(self, coordinator: Coordinator[Any, Any], directory: Directory) -> bool:
        is_open = coordinator._opened is not None
        return is_open and directory.owner not in (None, self.process)

    def _resume(self, nothing: Offset) -> tuple[int, Offset, Offset | None]:
        logs = self.logs
        if not logs.offsets:
            return 0, nothing, None
        newest = max(logs.offsets)
        if newest in logs.commits:
            return newest + 1, logs.offsets[newest], None
        before = [batch for batch in logs.offsets if batch < newest]
        return newest, logs.offsets[max(before)] if before else nothing, logs.offsets[newest]

    def _writes(self, batch: int) -> bool:
        return not self.setting.is_async or batch % 3 == 2

    def _log(self, batch: int, found: Offset) -> None:
        self.world.scheduler.point()
        if not self._writes(batch):
            self.world.count("an offset is not written down (asynchronous progress)")
        elif self.logs.offsets.setdefault(batch, found) != found:
            raise Concurrent(batch)
        self.world.scheduler.point()

    def _done(self, batch: int, end: Offset) -> None:
        self.world.scheduler.point()
        if self._writes(batch):
            self.logs.commits.add(batch)
        self.world.scheduler.point()

    def _commit_sources(self, offsets: Sequence[Offsets], start: Offset) -> None:
        for coordinator, offset, at in zip(self.coordinators, offsets, start, strict=True):
            if at["checkpoint"]:
                coordinator.commit(offset.ref(at))

    def _batch(self, batch: int, start: Offset, end: Offset, offsets: Sequence[Offsets]) -> None:
        world, habits, chance = self.world, self.world.habits, self.world.scheduler.random.random
        jobs: list[Job] = []
        for number, (coordinator, of) in enumerate(zip(self.coordinators, offsets, strict=True)):
            known = of.ref(start[number]), of.ref(end[number])
            checkpoints = coordinator.assignments(*known)
            where = self.directories[number].location
            waived, claim = coordinator.waived, coordinator.claim_to_check
            partitions = partitions_of(checkpoints, where, "", waived, claim, coordinator.rereads)
            jobs += [Job(self, number, partition) for partition in partitions]
        world.planned(self.logs, batch, jobs)
        if batch in self.sink.taken and not self.setting.is_async:
            world.count("the sink skips a batch that it has")
            return
        if chance() < habits.empty:
            world.count("limit(0): no task runs")
            for job in jobs:
                job.is_cut_short = True
            self._take(batch, [(job, []) for job in jobs])
            return
        if chance() < habits.limits:
            world.count("a limit leaves rows")
            self._take(batch, [(job, job.run(at_most=chance() * 6)) for job in jobs])
            return
        outcomes = self._all(jobs)
        if chance() < habits.twice:
            world.count("foreachBatch reads twice")
            again = self._all(jobs)
            assert again == outcomes, "two readings of one batch differ"
        self._take(batch, list(zip(jobs, outcomes, strict=True)))

    def _all(self, jobs: Sequence[Job]) -> list[list[Row]]:
        return [job.run() for job in jobs]

    def _take(self, batch: int, outcomes: Sequence[tuple[Job, list[Row]]]) -> None:
        self.world.scheduler.point()
        if batch in self.sink.taken and not self.setting.is_async:
            raise Concurrent(batch)
        self.sink.taken.add(batch)
        self.check_rows_of_batch(sum(len(rows) for _, rows in outcomes))
        for job, rows in outcomes:
            self.sink.rows.update(rows)
            self.sink.unread.update(set(job.rows).difference(rows) if job.is_cut_short else ())
        self.world.count("a batch is in the sink")

    def executor(self) -> Process:
        self._numbers += 1
        machines = self.world.machines
        name, machine = f"{self.process.name}.{self._numbers}", self._numbers % len(machines)
        process = Process(name, machines[machine])
        process.offset = self.process.offset
        self.executors.append(process)
        return process
