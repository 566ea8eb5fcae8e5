"""Adds batches to a table that others write to as well: look, check, commit, and look again."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from ..checkpoint_meta.documents.batch_mark import NO_BATCH, BatchMark, BatchOrigin, TableInput
from ..checkpoint_meta.storage.storage_errors import PATIENCE, delays
from ..errors import TableError
from ..reader.direct_write.field_ids import TABLE_COLUMNS, from_text
from ..reader.direct_write.table_fit import check_fit
from ..reader.direct_write.write_options import WriteOptions
from ..reader.written_files import TABLE_LOOKS
from .batch_order import TableMark, batches_in, continued, has_batch
from .row_counts import Counts, counts_in
from .written_batch import FileBatch, WrittenBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TRIES: Final = 30
"""Most attempts at one commit: another writer may be first each time, or the answer may be lost."""


class TableSink(ABC):
    """Adds the files of each batch; call it with a batch, as `foreachBatch` does."""

    format: ClassVar[str]
    """What messages call the format of the table."""

    _final: ClassVar[tuple[str, ...]] = ()
    """Parts of messages of errors that no other try would resolve."""

    def __init__(self, name: str, storage_options: Mapping[str, Any]) -> None:
        self._name = name
        self._storage_options = storage_options
        self._looks: list[Any] | None = None

    @contextmanager
    def one_look(self) -> Iterator[None]:
        """Within it the table is opened once, for all that is asked of it; in one thread."""
        self._looks = []
        try:
            yield
        finally:
            self._looks = None

    def current(self) -> Any:
        """The table as it is now, or as `one_look` has found it."""
        if self._looks:
            return self._looks[0]
        table = self.opened()
        if self._looks is not None:
            self._looks.append(table)
        return table

    def check_place(self) -> None:
        """Check that of two writers only one can be first; a catalog decides that by itself.

        Raises:
            StateError: the store of the table lets both create the same object.
        """
        return

    @abstractmethod
    def identity(self) -> str:
        """What stays the same for the life of the table; empty without a table."""

    @abstractmethod
    def opened(self) -> Any:
        """The table as it is now."""

    def __call__(self, frame: DataFrame | FileBatch, _: int) -> None:
        """Make the files of a batch part of the table, unless they are.

        Raises:
            TableError: the table is ahead of the checkpoint or behind it, or does not fit.
        """
        self.check_place()
        # Spark Connect has no context on this side of the wire; its files have no field ids.
        # The embedded host passes the columns to its tasks by itself.
        context = getattr(getattr(frame, "sparkSession", None), "_sc", None)
        if context is not None:
            context.setLocalProperty(TABLE_COLUMNS, self.columns())
            context.setLocalProperty(TABLE_LOOKS, "true")
        try:
            # The readers run here, and write the files.
            batch = WrittenBatch.of(frame, self._storage_options)
        finally:
            if context is not None:
                context.setLocalProperty(TABLE_COLUMNS, None)
                context.setLocalProperty(TABLE_LOOKS, None)
        if batch is not None:
            self.add(batch)

    @abstractmethod
    def columns(self) -> str | None:
        """The columns of the table and what it demands, for `field_ids.from_text`; None: any."""

    def check_fit(self, schema: pa.Schema, options: WriteOptions) -> None:
        """Check that the table takes rows of this schema; asked before anything is read.

        Raises:
            TableError: names each column that does not fit, with both types.
            OptionError: such rows cannot be partitioned or sorted as the options say.
        """
        columns = self.columns()
        if columns is not None:
            check_fit(schema, from_text(columns), options)

    def check_places(self, places: Sequence[str]) -> None:  # noqa: ARG002 - see DeltaSink
        """Check that the table may have files below these directories.

        Raises:
            TableError: a directory is outside the table's.
        """
        return

    def check_removal(self, column: str) -> None:
        """Check that rows of files can be removed, which `column` names; asked before any batch.

        Raises:
            TableError: they cannot.
        """
        expected = f"a Delta or Iceberg table, which has the column {column}"
        raise self._not_replaced(self.format, expected, "Write into such a table")

    def _not_replaced(self, found: str, expected: str, remedy: str) -> TableError:
        return TableError(
            "rows of files cannot be replaced or removed in this table",
            self._name,
            found,
            expected,
            f"{remedy}, or leave onOverwrite and onDelete as they are by default.",
        )

    def add(self, batch: WrittenBatch) -> None:
        """See `__call__`."""
        batch = self._in_this_table(batch)
        if batch.before is not None and not self._has_newest(batch):
            self.add(batch.before)
        pauses, began = delays(0.05), time.monotonic()
        checked = False
        for tries in range(1, _TRIES + 1):  # noqa: B007 - the message has it
            try:
                # Again for each try: the transaction of the other writer may have been this very
                # batch.
                table = self.opened()
                if self._has(table, batch):
                    return
                if batch.is_empty:
                    return
                try:
                    # Only for a batch that is not in the table: once it is, its files may have been
                    # compacted and vacuumed.
                    if not checked:
                        batch.check_there()
                        checked = True
                    self._commit(table, self._with_end(table, batch))
                except TableError as error:
                    raise _may_be_given_back(error) from error
                return
            except self._conflicts() as error:
                if any(part in str(error) for part in self._final):
                    raise TableError(
                        f"the {self.format} table does not take the batch",
                        self._name,
                        f"{type(error).__name__}: {error}",
                        "a table that this sink can write to, and values of its types",
                        "Nothing is lost: change the table and start the query again, or write "
                        "into another table.",
                    ) from error
                conflict = error
                # Another writer may be first many times; a store that is away is given up sooner.
                if isinstance(error, OSError) and time.monotonic() - began > PATIENCE:
                    break
                time.sleep(next(pauses))
        raise TableError(
            f"a batch could not be added to the {self.format} table",
            self._name,
            f"{type(conflict).__name__}: {conflict}, after {tries} tries",
            "a commit without a conflict, or with one that a retry resolves",
            "Nothing is lost: the query adds the batch when you start it again.",
        ) from conflict

    def _has_newest(self, batch: WrittenBatch) -> bool:
        newest = self.newest(self.opened(), batch.lineage)
        return newest is not None and newest.batch == batch.mark

    def look(self, lineage: str, origin: BatchOrigin) -> None:
        """Check that the table has what comes before a query's next batch.

        Raises:
            TableError: the table is ahead of the checkpoint, or behind it.
        """
        batch = WrittenBatch.without_files(lineage, origin, self._storage_options)
        self._has(self.current(), self._in_this_table(batch))

    def _in_this_table(self, batch: WrittenBatch) -> WrittenBatch:
        """The batch; of a fork of a query that wrote into another table, as of any other query."""
        if batch.origin.forked is None or batch.origin.forked.table == self.identity():
            return batch
        return replace(batch, origin=replace(batch.origin, forked=None))

    def _has(self, table: Any, batch: WrittenBatch) -> bool:
        newest, forked = self.newest(table, batch.lineage), batch.origin.forked
        if forked is not None and (newest is None or newest.batch == NO_BATCH):
            self.check_end(table, forked.lineage, batch.lineage)
            origin = BatchOrigin(BatchMark.parse(forked.batch))
            last = WrittenBatch.without_files(forked.lineage, origin, self._storage_options)
            has_batch(self.newest(table, forked.lineage), last, self._name)
        if not batch.origin.any_table:
            self._check_end_at(table, batch.lineage, newest)
        return has_batch(newest, batch, self._name)

    def check_end(self, table: Any, lineage: str, fork: str = "") -> None:
        """Check that no query but `fork` continues this one in the table.

        The first batch of a fork says so. It counts as long as the table has batches of the fork,
        and none that this query has added since.

        Raises:
            TableError: another query does.
        """
        self._check_end_at(table, lineage, self.newest(table, lineage), fork)

    def _check_end_at(
        self, table: Any, lineage: str, newest: TableMark | None, fork: str = ""
    ) -> None:
        other = self._fork_at(table, _end_at(lineage, newest))
        if other not in ("", fork) and self.newest(table, other) is not None:
            states = (reads.state for name, reads in self._inputs(table) if name == other)
            raise continued(self._name, lineage, other, next(filter(None, states), ""))

    def _with_end(self, table: Any, batch: WrittenBatch) -> WrittenBatch:
        forked = batch.origin.forked
        if forked is None:
            return batch
        newest = self.newest(table, forked.lineage)
        return replace(batch, continues=_end_at(forked.lineage, newest))

    def has(self, lineage: str, checkpoint: int) -> bool:
        """True if the table has a query's batch that ends with this checkpoint, or a later one."""
        newest = self.newest(self.opened(), lineage)
        return newest is not None and newest.batch.checkpoint >= checkpoint

    @abstractmethod
    def newest(self, table: Any, lineage: str) -> TableMark | None:
        """The newest batch of a query in the table; None without one."""

    def inputs(self) -> Sequence[TableInput]:
        """The inputs of which the table has rows, by the marks of their queries."""
        table = self.current()
        return [
            reads
            for lineage, reads in self._inputs(table)
            # A RESTORE or a rollback may have taken back all batches of a query.
            if self.newest(table, lineage) is not None
        ]

    @abstractmethod
    def _fork_at(self, table: Any, end: str) -> str:
        """The lineage of the fork that continues a query at its end; empty without one."""

    @abstractmethod
    def _inputs(self, table: Any) -> Iterable[tuple[str, TableInput]]:
        """Return what each query reads, with its lineage; several times if that has changed."""

    def batches(self, table: Any, lineage: str) -> Iterator[tuple[TableMark, Sequence[str]]]:
        """The batches of a query in the table, newest first, with the names of files they added.

        Raises:
            TableError: the table's history does not go back further.
        """
        return batches_in(self._marks(table, lineage))

    @abstractmethod
    def _marks(self, table: Any, lineage: str) -> Iterator[tuple[TableMark, Sequence[str]]]:
        """Yield the marks of the commits of a query, as `batches` does."""

    @abstractmethod
    def files(self, table: Any) -> Sequence[str]:
        """The paths of all data files that the table names now."""

    def rows_by(self, table: Any, column: str) -> Counts | None:
        """Count the rows of each value of a column; None if the table has no such column.

        Rows that are deleted without a new file do not count.
        """
        return counts_in(self.files(table), column, self._storage_options)

    def has_deletes(self, table: Any) -> bool:  # noqa: ARG002 - most cannot
        """True if rows of data files may be deleted without a new file."""
        return False

    @abstractmethod
    def remove(self, table: Any, paths: Sequence[str], lineage: str, newest: TableMark) -> None:
        """Remove data files from the table, and make `newest` the query's mark, in one commit.

        Raises:
            TableError: the table cannot remove whole files, or was changed meanwhile.
        """

    @abstractmethod
    def _commit(self, table: Any, batch: WrittenBatch) -> None:
        """Add the files to the table as it was opened.

        Raises:
            TableError: the table does not fit the files.
        """

    @abstractmethod
    def _conflicts(self) -> tuple[type[Exception], ...]:
        """Return the errors that mean that another writer was first, or the answer was lost."""


def _may_be_given_back(error: TableError) -> TableError:
    """The error, with what helps if other options would: the readers have committed the rows."""
    what, where, found, expected, remedy = error.args
    more = (
        "If the rows should be others (schemaHints, writePartitionBy, filter, mode), or files are "
        "lost, run `sluice reread CHECKPOINT --yes`, and start the query with those options."
    )
    return TableError(what, where, found, expected, f"{remedy} {more}".strip())


def _end_at(lineage: str, newest: TableMark | None) -> str:
    """A query and its newest batch in the table, as a word."""
    return f"{lineage}-{NO_BATCH if newest is None else newest.batch}"
