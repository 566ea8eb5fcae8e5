"""A table of the simulator: commits with marks, data files, and the product's rule between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
from typing_extensions import override

from pyspark_sluice.checkpoint_meta.documents.batch_mark import TableInput
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName, WrittenFile
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.stores.testing import SimulatedCrash
from pyspark_sluice.errors import TableError
from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.reader.task import Assignment
from pyspark_sluice.tables.batch_order import TableMark
from pyspark_sluice.tables.table_sink import TableSink
from pyspark_sluice.tables.written_batch import WrittenBatch

from .row_reader import SCHEMA, rows_in
from .rows import Row
from .scheduler import Process, Scheduler
from .shared_directory import LOST_COMMIT, REFUSED_COMMIT, Weather

REFUSED = "the table does not take the batch"

PLACE = "sim://table/"


@dataclass(frozen=True)
class Commit:
    """One transaction of a query."""

    lineage: str
    mark: TableMark
    added: Sequence[str]
    removed: Sequence[str] = ()
    continues: str = ""


@dataclass
class Table:
    """What outlives all processes; takes the place of a sink that remembers batch numbers."""

    commits: list[Commit] = field(default_factory=list)
    data: dict[str, Sequence[Row]] = field(default_factory=dict)
    """All data files, those in no commit included."""
    ever: set[str] = field(default_factory=set)
    """Data files that were in the table at any time."""
    taken: set[int] = field(default_factory=set)
    unread: set[Row] = field(default_factory=set)
    """Both empty: see `Sink`."""

    def live(self) -> list[str]:
        """The paths of the files that the table has; one that was added twice is there twice."""
        paths: list[str] = []
        for commit in self.commits:
            paths = [path for path in paths if path not in commit.removed] + [*commit.added]
        return paths

    @property
    def rows(self) -> Counter[Row]:
        """The rows of those files."""
        return Counter(row for path in self.live() for row in self.data.get(path, ()))

    def copy(self) -> Table:
        return Table(list(self.commits), dict(self.data), self.ever)


class _Conflict(Exception):
    """Another writer was first, or the answer was lost."""


class _Batch(WrittenBatch):
    """A batch whose files are those of a simulated table."""

    table: Table

    @override
    def check_there(self) -> None:
        gone = [file.path for file in self.files if file.path not in self.table.data]
        if gone:
            raise TableError("data files of a batch are missing", gone[0], str(len(gone)), "all")


class SimulatedTable(TableSink):
    """One process's view of a table: other processes come between a look and a commit."""

    format = "simulated"

    def __init__(
        self, table: Table, process: Process, scheduler: Scheduler, weather: Weather
    ) -> None:
        super().__init__("sim://table", {})
        self.table, self._process = table, process
        self._scheduler, self._weather = scheduler, weather

    def _point(self) -> None:
        self._scheduler.point()
        if self._process.dead:
            raise SimulatedCrash

    @override
    def identity(self) -> str:
        return self._name

    @override
    def opened(self) -> Sequence[Commit]:
        self._point()
        return tuple(self.table.commits)

    @override
    def columns(self) -> None:
        return None

    @override
    def add(self, batch: WrittenBatch) -> None:
        simulated = _Batch(*(getattr(batch, each.name) for each in fields(batch)))
        object.__setattr__(simulated, "table", self.table)
        super().add(simulated)

    @override
    def newest(self, table: Sequence[Commit], lineage: str) -> TableMark | None:
        return next((c.mark for c in reversed(table) if c.lineage == lineage), None)

    @override
    def _marks(
        self, table: Sequence[Commit], lineage: str
    ) -> Iterator[tuple[TableMark, Sequence[str]]]:
        mine = [commit for commit in reversed(table) if commit.lineage == lineage]
        marks = (replace(commit.mark, takes_back=not commit.added) for commit in mine)
        return zip(marks, (commit.added for commit in mine), strict=True)

    @override
    def _fork_at(self, table: Sequence[Commit], end: str) -> str:
        return next((c.lineage for c in table if end and c.continues == end), "")

    @override
    def _inputs(self, table: Sequence[Commit]) -> Iterator[tuple[str, TableInput]]:
        return iter(())

    @override
    def files(self, table: Sequence[Commit]) -> Sequence[str]:
        return Table(list(table)).live()

    @override
    def remove(
        self, table: Sequence[Commit], paths: Sequence[str], lineage: str, newest: TableMark
    ) -> None:
        try:
            self._append(table, Commit(lineage, newest, (), paths))
        except _Conflict as error:
            raise TableError("batches were not removed from the table", self._name) from error

    @override
    def _commit(self, table: Sequence[Commit], batch: WrittenBatch) -> None:
        mark = TableMark(batch.mark, batch.digest)
        added = [file.path for file in batch.files]
        self._append(table, Commit(batch.lineage, mark, added, continues=batch.continues))

    def _append(self, table: Sequence[Commit], commit: Commit) -> None:
        self._point()
        if REFUSED_COMMIT in self._weather.due:
            self._weather.fire(REFUSED_COMMIT)
            self._process.hurt_at = self._scheduler.now
            raise TableError(REFUSED, self._name)
        if len(table) != len(self.table.commits):
            raise _Conflict("another transaction was first")
        self.table.commits.append(commit)
        self.table.ever.update(commit.added)
        self._point()
        if LOST_COMMIT in self._weather.due:
            self._weather.fire(LOST_COMMIT)
            raise _Conflict("the answer was lost")

    @override
    def _conflicts(self) -> tuple[type[Exception], ...]:
        return (_Conflict,)


class DataFiles(Place):
    """The directory of the data files."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @override
    def files(self, below: str = "") -> Iterator[str]:
        return iter(list(self.table.data))

    @override
    def delete(self, path: str) -> None:
        self.table.data.pop(path, None)


class FileWriter:
    """Writes the rows of one assignment into one data file."""

    schema = SCHEMA

    def __init__(
        self, sink: SimulatedTable, assignment: Assignment[FileSplit], process: Process
    ) -> None:
        self._sink, self._assignment, self._process = sink, assignment, process
        self._rows: list[Row] = []
        self._path = ""

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += rows_in(batch)

    def finish(self) -> Sequence[WrittenFile]:
        """Create the file, if there is any row."""
        scheduler = self._sink._scheduler
        scheduler.point()
        if self._process.dead:
            raise SimulatedCrash
        if not self._rows:
            return []
        token = f"{scheduler.random.getrandbits(48):012x}"
        of = self._assignment
        self._path = f"{PLACE}{FileName(of.checkpoint, of.reader, token)}"
        self._sink.table.data[self._path] = tuple(self._rows)
        count = len(self._rows)
        return [WrittenFile(path=self._path, rows=count, bytes=count, statistics="{}")]

    def discard(self) -> None:
        """Remove the file again."""
        if not self._process.dead:
            self._sink.table.data.pop(self._path, None)


def described(schema: pa.Schema) -> Mapping[str, Any]:
    """What a reader commit says of the columns."""
    return {"type": "struct", "fields": schema.names}
