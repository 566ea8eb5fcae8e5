"""A query without Spark: from its options to batches in a table."""

from __future__ import annotations

import ctypes
import gc
import logging
import mmap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ...checkpoint_meta.documents.query_records import RunSummary
from ...checkpoint_meta.storage.storage_errors import may_pass
from ...checkpoint_meta.storage.urls import hadoop_path
from ...checkpoint_meta.stores.open_store import open_store
from ...enumerator.files.ledger.index_merge import release_free_memory
from ...errors import OptionError, QueryRunningError, SchemaEvolvedError, SluiceError
from ...reader.written_files import SCHEMA
from ...tables.table_sink import TableSink
from ...tables.written_batch import FileBatch
from ..options.model import SluiceOptions, parse_options
from ..query.driver import StreamDriver
from ..query.partitions import ReaderPartition
from ..query.start_check import USUAL_TERMS, StartCheck, StartTerms
from ..source.rehearsal import checked_schema
from ..source.schemas import canonical
from ..source.state_location import open_state
from ..views.amounts import run_text
from .batch_log import BatchLog, BatchLoop
from .run_record import BatchReport, RunRecord, report_batch, report_run
from .worker import Task
from .worker_pool import WorkerPool

_SMALL_BATCH: Final = 16 * 1024 * 1024
"""Bytes that the host reads itself sooner than a process would have started."""


log = logging.getLogger(__name__)

Sink = Callable[[FileBatch, int], None]


@dataclass(frozen=True)
class SinkTarget:
    """A sink, and the directory of its data files."""

    sink: Sink
    write_to: str = ""
    """Empty if the options say it."""

    def check_place(self) -> None:
        """See `TableSink.check_place`."""
        if isinstance(self.sink, TableSink):
            self.sink.check_place()

    def one_look(self) -> AbstractContextManager[None]:
        """See `TableSink.one_look`."""
        return self.sink.one_look() if isinstance(self.sink, TableSink) else nullcontext()

    def columns(self) -> str | None:
        """The columns of the table for the writers of data files; None without a table."""
        return self.sink.columns() if isinstance(self.sink, TableSink) else None

    def has_batch(self, lineage: str, checkpoint: int) -> bool:
        """True if the table has the batch of a query that ends with a checkpoint, or a later one.

        False for a function, which cannot be asked.
        """
        return isinstance(self.sink, TableSink) and self.sink.has(lineage, checkpoint)


class EmbeddedQuery:
    """A query from its start to the next change of its schema.

    Each batch is in the log before a task of it runs, and its commit is there when the sink has
    it, as with Spark. After a kill at any moment the next host, either one, repeats at most one
    batch, whose reader commits say which data files it has.
    """

    def __init__(  # noqa: PLR0913 - what a run has, once for each of its queries
        self,
        texts: Mapping[str, str],
        target: SinkTarget,
        pool: WorkerPool,
        record: RunRecord,
        *,
        is_bounded: bool,
        terms: StartTerms,
        task_timeout: float | None,
        wait: Callable[[float], None],
    ) -> None:
        """`is_bounded`: the query ends with the files that are there at its start.

        The rest is as in `EmbeddedRun`.

        Raises:
            QueryRunningError: another run owns the state, and the `terms` are to leave it alone.
            SluiceError: the options, the log or the state are not usable.
        """
        self._texts, self._target, self._pool = texts, target, pool
        self._record, self._task_timeout = record, task_timeout
        options = parse_options(texts, streaming=True, names_format=True)
        _check(options)
        record.begin(options)
        target.check_place()
        self.options = options
        place = hadoop_path(options.checkpoint_location or "")
        # Before the log is read, which the owner writes, and before a schema is stored.
        self._start = StartCheck(open_state(options), options, terms, target.sink, wait=wait)
        self._start.await_end()
        with target.one_look():
            self._start.compare()
            # What the table refuses leaves no trace, either.
            schema, self._inferred = checked_schema(options, target.sink)
        self._schema = canonical(schema)
        self.log = BatchLog(open_store(place, options.storage_options))
        self._driver = StreamDriver(
            texts,
            self._schema,
            inferred=self._inferred,
            sink_has=target.has_batch,
            start=self._start,
        )
        self._loop = BatchLoop(self.log, self._driver)
        if is_bounded:
            self._driver.coordinator.prepare_available_now()

    def next_batch(self) -> BatchReport | None:
        """Run the next batch, or the one that a host began and did not finish; None without one."""
        started = time.monotonic()
        partitions = self._loop.begin()
        if partitions is None:
            return None
        self._start.record(in_table=False)
        rows = self._read(partitions)
        self._target.sink(self._batch(partitions, rows), self.log.newest)
        self._start.record(in_table=len(rows) > 0)
        self._loop.end()
        splits = [count for partition in partitions for count, _ in sizes_of(partition)]
        report = BatchReport(
            self.log.newest,
            sum(splits),
            sum(rows.column("rows").to_pylist()),
            # A row of a batch that only removes rows is about no file.
            sum(map(bool, rows.column("path").to_pylist())),
            sum(rows.column("bytes").to_pylist()),
            time.monotonic() - started,
        )
        self._record.add(report)
        report_batch(report, self.options)
        return report

    def figures(self) -> Mapping[str, Any]:
        """Return what a progress event of Spark says about the source."""
        report: Mapping[str, Any] = self._driver.coordinator.report()
        return report

    def close(self) -> None:
        """Stop the background threads."""
        coordinator = self._driver.coordinator
        self._record.look(coordinator.epoch, coordinator.report())
        coordinator.close()

    def _read(self, partitions: Sequence[ReaderPartition]) -> pa.Table:
        columns = self._target.columns()
        tasks = [
            Task(self._texts, self._schema, self._inferred, partition, columns)
            for partition in partitions
        ]
        if self._is_small(partitions):
            with self._pool.here:
                batches = self._counted((task.run() for task in tasks), len(tasks))
        else:
            on_death = self._record.dead_workers.append
            answers = self._pool.run(tasks, task_timeout=self._task_timeout, on_death=on_death)
            batches = self._counted(answers, len(tasks))
        return pa.Table.from_batches(batches, SCHEMA)

    def _counted(
        self, answers: Iterable[Sequence[pa.RecordBatch]], tasks: int
    ) -> Sequence[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        for done, answer in enumerate(answers):
            self._record.on_task(done, tasks)
            batches += answer
        self._record.on_task(tasks, tasks)
        return batches

    def _batch(self, partitions: Sequence[ReaderPartition], rows: pa.Table) -> FileBatch:
        # Each reader's part has them: a batch without rows looks at the table, too.
        lineage, origin = next(
            ((p.parts[0].checkpoint.lineage, p.origin) for p in partitions), ("", "")
        )
        return FileBatch(rows, self.options.storage_options, lineage, origin)

    def _is_small(self, partitions: Sequence[ReaderPartition]) -> bool:
        # With a bound every task is in a process, which can be ended.
        is_default = self._pool.is_default and self._task_timeout is None
        if not is_default or self._pool.is_running:
            return not partitions
        sizes = [size for partition in partitions for _, size in sizes_of(partition)]
        return all(size is not None for size in sizes) and (
            sum(size or 0 for size in sizes) < _SMALL_BATCH
        )


def sizes_of(partition: ReaderPartition) -> Iterator[tuple[int, int | None]]:
    """The number of splits of each part, and their bytes; None if the source is not of files."""
    for part in partition.parts:
        for batch in part.splits():
            size = None
            if {"start", "end"} <= set(batch.schema.names):
                ends, starts = (batch.column(name).to_pylist() for name in ("end", "start"))
                size = sum(ends) - sum(starts)
            yield batch.num_rows, size


def _check(options: SluiceOptions) -> None:
    if options.checkpoint_location is None or not options.write_to:
        raise OptionError(
            "a query without Spark needs a checkpoint and a place for data files",
            "",
            "no checkpointLocation" if options.checkpoint_location is None else "no writeTo",
            "checkpointLocation, and writeTo or a table to write to",
        )


@dataclass(frozen=True)
class RunReport:
    """The amounts that a run has read."""

    batches: Sequence[BatchReport]
    summary: RunSummary
    """What was left out, what waits, and the columns that the schema gained."""

    @property
    def rows(self) -> int:
        """Rows that were added to the table."""
        return sum(batch.rows for batch in self.batches)

    @property
    def files(self) -> int:
        """Data files that were added to the table."""
        return sum(batch.files for batch in self.batches)

    def _repr_html_(self) -> str:
        """For a notebook: the run in a line, and a table of its batches."""
        names = [field.name for field in fields(BatchReport)]
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            f"<tr>{''.join(f'<td>{getattr(batch, name):,}</td>' for name in names)}</tr>"
            for batch in self.batches
        )
        return f"<p>run {escape(run_text(self.summary))}</p><table><tr>{head}</tr>{rows}</table>"


class Stopped(Exception):
    """The run is to end before its next batch."""


class EmbeddedRun:
    """A run of a query: batches until it ends, with a new query whenever the schema has grown."""

    def __init__(
        self,
        texts: Mapping[str, str],
        target: SinkTarget,
        pool: WorkerPool,
        *,
        every: float | None,
        on_task: Callable[[int, int], None] = lambda *_: None,
        terms: StartTerms = USUAL_TERMS,
        task_timeout: float | None = None,
    ) -> None:
        """`every`: seconds between two looks for new files; None to end with what is there.

        Others may use the pool, which the caller closes.

        `on_task` gets the number of finished tasks of a batch, and of all of them. A process that
        has had a task for `task_timeout` seconds is ended, and the task is tried again.
        """
        self._terms, self._task_timeout = terms, task_timeout
        self._texts, self._target, self._every = dict(texts), target, every
        names = {name.lower() for name in texts}
        if every is not None and "discoveryInterval".lower() not in names:
            self._texts["discoveryInterval"] = f"{max(int(every * 1000), 1)}ms"
        self._record = RunRecord(on_task)
        self.summary: RunSummary | None = None
        """The record of the run, once it has ended; None if another one is at work."""
        self._pool = pool
        self._current: EmbeddedQuery | None = None
        self._options: SluiceOptions | None = None
        self.last_look = time.time()
        """Time at which the query last ended a batch, or found nothing new; at first its start."""

    @property
    def checkpoint(self) -> str:
        """The `checkpointLocation`."""
        name = "checkpointLocation".lower()
        return next((text for key, text in self._texts.items() if key.lower() == name), "")

    def figures(self) -> Mapping[str, Any]:
        """Return what a progress event of Spark would say; the newest figures, once it ended."""
        query = self._current
        return self._record.figures if query is None else query.figures()

    def batches(self, wait: Callable[[float], None] = time.sleep) -> Iterator[BatchReport]:
        """Run the query; a report of each batch that is in the table.

        Args:
            wait: waits some seconds, or raises `Stopped`.
        """
        failure: BaseException | None = None
        is_stopped = False
        try:
            yield from self._queries(wait)
        except (Stopped, GeneratorExit):
            is_stopped = True
        except BaseException as error:
            failure = error
            if isinstance(error, SluiceError):
                error.may_pass = may_pass(error)
            raise
        finally:
            if not isinstance(failure, QueryRunningError):
                self.summary = self._record.end(failure, is_stopped=is_stopped)
                if self._options is not None:
                    report_run(self.summary, self._options, self._options.write_to or "")

    def _queries(self, wait: Callable[[float], None]) -> Iterator[BatchReport]:
        last, waits_until = "", time.monotonic() + self._terms.patience
        while True:
            patience = max(0.0, waits_until - time.monotonic())
            try:
                query = EmbeddedQuery(
                    self._texts,
                    self._target,
                    self._pool,
                    self._record,
                    is_bounded=self._every is None,
                    terms=replace(self._terms, patience=patience),
                    task_timeout=self._task_timeout,
                    wait=wait,
                )
            except OptionError as error:
                if not error.lacks_input:
                    raise
                # As usual at the first start of a timer: this is not the caller's to mend.
                log.warning("%s: no file with content is there yet", error.where)
                self.last_look = time.time()
                if self._every is None:
                    return
                wait(self._every)
                continue
            self._current, self._options = query, query.options
            try:
                yield from self._until_evolved(query, wait)
                return
            except SchemaEvolvedError as error:
                # The same change twice would come again and again.
                if error.found == last:
                    raise
                last = error.found
            except QueryRunningError:
                # It has come between the look and the claim.
                if time.monotonic() >= waits_until:
                    raise
            finally:
                self._current = None
                query.close()

    def _until_evolved(
        self, query: EmbeddedQuery, wait: Callable[[float], None]
    ) -> Iterator[BatchReport]:
        idle = 0.0
        while True:
            wait(0.0)
            report = query.next_batch()
            self.last_look = time.time()
            if report is not None:
                idle = 0.0
                yield report
            elif self._every is None:
                return
            else:
                pause = min(self._every, _POLL)
                idle += pause
                if idle - pause <= _IDLE < idle and self._pool.rest(_IDLE):
                    gc.collect()
                    release_free_memory()
                    _drop_clean_pages()
                wait(pause)


_POLL: Final = 1.0
"""Seconds between two questions for the next batch, which are answered from memory."""

_IDLE: Final = 10.0
"""Seconds without a batch after which the processes of tasks end, and free their memory."""


def _drop_clean_pages() -> None:
    """Unmap the pages of libraries (on Linux): a call brings those back that it needs."""
    with suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int
        for start, end in _clean_mappings(Path("/proc/self/smaps").read_text()):
            advise(start, end - start, mmap.MADV_DONTNEED)


def _clean_mappings(smaps: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of mappings of files without a page of their own (/proc/PID/smaps)."""
    start = end = 0
    for line in smaps.splitlines():
        key, *values = line.split()
        if not key.endswith(":"):
            start, end = (int(bound, 16) for bound in key.split("-"))
            # Pages of a writable mapping are the file's, and may change at any moment.
            is_code = values[0] in {"r-xp", "r--p"} and len(values) > 4 and values[4][0] == "/"
        elif key == "Anonymous:" and is_code and values[0] == "0":
            yield start, end
