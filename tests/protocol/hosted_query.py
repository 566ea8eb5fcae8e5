"""The embedded host of a simulated query: its loop and its log are the product's.

Next to the log and the state there is a table with marks. What people do after table or checkpoint
was restored are the product's commands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from pyspark_sluice.checkpoint_meta.checkpoint_snapshot import forked_from, newest_written
from pyspark_sluice.checkpoint_meta.documents.batch_mark import BatchOrigin, TableInput
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    NO_IDENTITY,
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.documents.layout import checkpoint_object
from pyspark_sluice.checkpoint_meta.documents.query_records import QueryEnds, find_seed, record_ends
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.contract import StateStore
from pyspark_sluice.connector.cli.commands.repair import _Comparison
from pyspark_sluice.connector.host.batch_log import BatchLog, BatchLoop
from pyspark_sluice.connector.host.embedded_query import EmbeddedQuery, SinkTarget
from pyspark_sluice.connector.query.driver import BatchDriver
from pyspark_sluice.connector.query.partitions import ReaderPartition
from pyspark_sluice.connector.query.spark_checkpoint import from_offset
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.reader.direct_write.unreferenced_files import sweep
from pyspark_sluice.reader.task import DirectWrite
from pyspark_sluice.reader.written_files import SCHEMA

from .scheduler import Process
from .shared_directory import Client
from .simulated_table import DataFiles, FileWriter, SimulatedTable, described
from .simulated_time import sleep, wall_clock
from .spark_query import Query
from .spark_tasks import Job

if TYPE_CHECKING:
    from pyspark_sluice.tables.table_sink import TableSink


class _Driver(BatchDriver):
    """As `StreamDriver` does it with `writeTo`."""

    store: StateStore

    @override
    def _origin(self, start: CheckpointRef) -> str:
        return str(_origin(self.store, self.coordinator.history, start))


def _origin(store: StateStore, history: CheckpointHistory, start: CheckpointRef) -> BatchOrigin:
    """As `StartCheck` does it."""
    newest = newest_written(history, ReaderCommits(store), start)
    forked = None if newest.checkpoint else forked_from(store)
    return BatchOrigin(newest, TableInput(), forked)


class Host(EmbeddedQuery):
    """The product's loop, with the tasks of the simulator in the place of its processes."""

    def __init__(self, query: HostedQuery, log: BatchLog, driver: BatchDriver) -> None:
        self._query, self.log = query, log
        self._loop, self._target = BatchLoop(log, driver), SinkTarget(query.sink_of_table)
        nowhere: Any = SimpleNamespace(record=_nothing, add=_nothing)
        self._record = self._start = nowhere
        self.options = SimpleNamespace(storage_options={}, checkpoint_location="", write_to="")  # type: ignore[assignment]

    @override
    def _read(self, partitions: Sequence[ReaderPartition]) -> pa.Table:
        query, number = self._query, self.log.newest
        query.logs.offsets[number] = [dict(self.log.offset or {})]
        jobs = [Job(query, 0, partition) for partition in partitions]
        query.world.planned(query.logs, number, jobs)
        rows = [row for job in jobs for row in job.run()]
        query.check_rows_of_batch(sum(row["rows"] for row in rows))
        return pa.Table.from_pylist(rows, SCHEMA)


def _nothing(*_: Any, **__: Any) -> None:
    """Not of interest."""


class HostedQuery(Query):
    """One process of the embedded host, from its start to its end."""

    sink_of_table: SimulatedTable
    _knows_its_table = False

    @override
    def _drive(self) -> None:
        world, (directory,) = self.world, self.directories
        store = Client(directory, self.process, world.scheduler, world.weather).retrying()
        made = world.make_coordinator
        self.sink_of_table = world.make_table(self.process)
        assert directory.above is not None
        above = Client(directory.above, self.process, world.scheduler, world.weather)
        log = BatchLog(above.retrying())
        # Before the state is claimed, as `StartCheck` does it.
        self._look(store, log)
        self._record(store)
        settings = replace(
            self.setting.settings,
            query_without_batches=self.logs.id_without_batches,
            sink_has=self.sink_of_table.has,
            commits_go=partial(self._swept, store),
        )
        coordinator = made(world.make_source(0), store, settings, wall_clock)
        self.coordinators.append(coordinator)
        driver = _Driver(coordinator, directory.location)
        driver.store = store
        host = getattr(made, "Host", Host)(self, log, driver)
        if self.setting.is_bounded:
            coordinator.prepare_available_now()
        while True:
            world.scheduler.point()
            if host.next_batch() is not None:
                world.count("a batch is in the table")
                self.batches, self.quiet = self.batches + 1, 0
                world.mended = 0
                self._record(store)
                continue
            self.quiet += 1
            if self.setting.is_bounded:
                return
            sleep(0.01 if self.quiet < 20 else 1.0)

    def _look(self, store: StateStore, log: BatchLog) -> None:
        # A batch that was begun will be repeated, and looks by itself.
        if log.newest != log.committed:
            return
        if log.committed < 0:
            seed = find_seed(store)
            identity = NO_IDENTITY if seed is None else seed.identity
        else:
            identity = from_offset(log.offset)
        if identity.ref != NO_CHECKPOINT:
            origin = _origin(store, StateView(store).history, identity.ref)
            self.sink_of_table.look(identity.lineage, origin)

    def _record(self, store: StateStore) -> None:
        """The state knows its table when that has a batch."""
        if not self._knows_its_table and self.sink_of_table.table.commits:
            record_ends(store, QueryEnds(input=[], table=self.sink_of_table.identity()))
            self._knows_its_table = True

    def _swept(
        self, store: StateStore, checkpoints: Collection[CheckpointIdentity]
    ) -> Collection[CheckpointIdentity]:
        place, sink = _Watched(self), self.sink_of_table
        remove = getattr(self.world.make_coordinator, "sweep", sweep)
        in_table = lambda: sink.table.live().__contains__  # noqa: E731 - short
        remove(place, store, checkpoints, in_table=in_table, delete=True)
        return checkpoints

    @override
    def writes(self, process: Process) -> DirectWrite[Any]:
        return DirectWrite(
            lambda assignment: FileWriter(self.sink_of_table, assignment, process), described
        )

    @override
    def rows_in(self, batch: pa.RecordBatch) -> list[Any]:
        return batch.to_pylist()


class _Watched(DataFiles):
    """What the table names is never swept, nor what it named in another history.

    A file of this very checkpoint that lost may go, though it was in the table of an older backup.
    """

    def __init__(self, query: HostedQuery) -> None:
        super().__init__(query.sink_of_table.table)
        self._query = query

    @override
    def delete(self, path: str) -> None:
        world = self._query.world
        world.scheduler.point()
        world.count("a data file is swept")
        name = FileName.parse(path)
        assert name is not None
        data = self._query.directories[0].objects.get(checkpoint_object(name.checkpoint.ref))
        own = data is not None and world._header(path, data).identity == name.checkpoint
        if path in self.table.live() or (path in self.table.ever and not own):
            world.found(f"a file of the table is deleted: {path}")
        super().delete(path)


def comparison(store: StateStore, sink: TableSink) -> _Comparison:
    """As `_Comparison.of`, with a table that is open."""
    view = StateView(store)
    nothing = _Comparison(sink, sink.opened(), "sim://table", {}, "", (), TableInput(), None, None)
    return nothing.up_to(view, view.head)
