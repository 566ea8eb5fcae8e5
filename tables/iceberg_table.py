"""Data files into an Iceberg table: one transaction a batch, recognized by its snapshot.

The summary of the snapshot has the mark, so a rollback takes back both. Snapshots expire, so table
properties have it as well, set in the same transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
from typing_extensions import override

from ..checkpoint_meta.documents.batch_mark import TableInput
from ..errors import TableError, first_line
from ..reader.direct_write.field_ids import to_text
from ..reader.direct_write.partitioning import paths_of
from ..reader.direct_write.statistics import Path, leaves
from ..reader.direct_write.table_fit import required, with_demands, with_promises
from ..reader.files.evolution.column_names import ColumnNames
from .batch_order import TableMark, inputs_by_files, mark_by_files, not_retained
from .iceberg_files import (
    NAME_MAPPING,
    columns_of,
    data_files,
    delete_rows,
    is_in_place,
    keep_names,
    path_in,
    written_name,
)
from .iceberg_history import (
    MARK,
    Snapshots,
    added_in,
    fork_property,
    input_property,
    inputs_in,
    mark_in,
    removals_property,
    snapshot_property,
    summary_of,
)
from .row_counts import Counts, counted
from .table_sink import TableSink
from .written_batch import WrittenBatch

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction


class IcebergSink(TableSink):
    """See `TableSink`."""

    format = "Iceberg"

    def __init__(self, table: Table, storage_options: Mapping[str, Any] | None = None) -> None:
        super().__init__(".".join(table.name()), storage_options or {})
        # A copy: its catalog is ours.
        self._table = copy(table)
        self._table.catalog = cast("Catalog", _PatientCatalog(table.catalog))

    @override
    def identity(self) -> str:
        return f"iceberg:{self.current().metadata.table_uuid}"

    @override
    def columns(self) -> str:
        return to_text(with_demands(columns_of(self.current().metadata), self._name))

    @override
    def _conflicts(self) -> tuple[type[Exception], ...]:
        return _conflicts()

    @override
    def opened(self) -> Table:
        self._table.refresh()
        if self._table.format_version > _NEWEST_VERSION:
            raise TableError(
                "pyiceberg cannot write to tables of this version",
                self._name,
                f"format-version {self._table.format_version}",
                f"format-version {_NEWEST_VERSION} or older",
                "Write into a table of version 2; tables.manifest lists the files for Spark.",
            )
        self._snapshots = Snapshots.of(self._table.metadata)
        # In this copy only. pyiceberg copies the metadata two dozen times in a commit, which needs
        # no older snapshots.
        current = [snapshot for snapshot in [self._table.current_snapshot()] if snapshot]
        shorter: dict[str, Any] = {"snapshots": current, "snapshot_log": []}
        deletes = self._table.properties.get("write.metadata.delete-after-commit.enabled", "false")
        if deletes.lower() == "false":
            shorter["metadata_log"] = []
        self._table.metadata = self._table.metadata.model_copy(update=shorter)
        # A conflict must not put the files on top of what the other writer
        # has added: that may have been this batch.
        properties = self._table.metadata.properties
        properties["commit.retry.num-retries"] = "0"
        # Iceberg's default; pyiceberg's own leaves a manifest per batch, which each commit lists.
        properties.setdefault("commit.manifest-merge.enabled", "true")
        # With Iceberg's 8 MiB, one batch in a hundred reads the manifests of 50,000 files again.
        properties.setdefault("commit.manifest.target-size-bytes", str(512 * 1024))
        return self._table

    @override
    def newest(self, table: Table, lineage: str) -> TableMark | None:
        try:
            return self._snapshots.mark(table.properties, lineage)
        except LookupError:
            paths = (task.file.file_path for task in table.scan().plan_files())
            return mark_by_files(map(written_name, paths), lineage)

    @override
    def _marks(self, table: Table, lineage: str) -> Iterator[tuple[TableMark, Sequence[str]]]:
        oldest = None
        for oldest in self._snapshots.ancestors():
            mark = mark_in(oldest.summary, lineage)
            if mark is not None:
                summary: Any = oldest.summary
                mark = replace(
                    mark,
                    has_removals=summary.get(removals_property(lineage)) is not None,
                    # See `remove`; a batch is an append.
                    takes_back=summary.operation.value != "append",
                )
                yield mark, [written_name(path) for path in added_in(oldest, table.io)]
        # pyiceberg says of a snapshot whose parent has expired that it has none.
        if oldest is not None and oldest.sequence_number != 1:
            raise not_retained(self._name, f"snapshot {oldest.snapshot_id} as the oldest one")

    @override
    def _fork_at(self, table: Table, end: str) -> str:
        return table.properties.get(fork_property(end), "")

    @override
    def _inputs(self, table: Table) -> Iterator[tuple[str, TableInput]]:
        known = dict(inputs_in(table.properties))
        yield from inputs_in(table.properties)
        yield from inputs_by_files(map(written_name, self.files(table)), known)

    @override
    def files(self, table: Table) -> Sequence[str]:
        return [task.file.file_path for task in table.scan().plan_files()]

    @override
    def rows_by(self, table: Table, column: str) -> Counts | None:
        is_there = column in table.schema().column_names
        return self._counts(table, column) if is_there else None

    def _counts(self, table: Table, column: str) -> Counts:
        for batch in table.scan(selected_fields=(column,)).to_arrow_batch_reader():
            yield counted(batch.column(0))

    @override
    def has_deletes(self, table: Table) -> bool:
        return any(task.delete_files for task in table.scan().plan_files())

    @override
    def remove(self, table: Table, paths: Sequence[str], lineage: str, newest: TableMark) -> None:
        chosen, summary = {*paths}, summary_of(lineage, newest)
        try:
            with table.transaction() as transaction:
                with transaction.update_snapshot(summary).overwrite() as overwrite:
                    for task in table.scan().plan_files():
                        if task.file.file_path in chosen:
                            overwrite.delete_data_file(task.file)
                _set_mark(transaction, summary, lineage, overwrite.snapshot_id)
        except self._conflicts() as error:
            raise TableError(
                "batches were not removed from the table",
                self._name,
                f"{type(error).__name__}: {error}",
                "a table that others do not change meanwhile",
                "Run the command again: it looks at the table first.",
            ) from error

    @override
    def check_removal(self, column: str) -> None:
        return

    @override
    def _commit(self, table: Table, batch: WrittenBatch) -> None:
        if any(file.partition for file in batch.files):
            raise TableError(
                "files with partition values cannot be added to an Iceberg table",
                batch.files[0].path,
                f"writePartitionBy={','.join(batch.files[0].partition)}",
                "no writePartitionBy",
            )
        self._check_new(table, batch)
        never_null = _never_null(columns_of(table.metadata), batch.schemas)
        batch.check_never_null(never_null, self._name)
        for schema in batch.schemas:
            self._check_columns(table, schema)
        summary = summary_of(batch.lineage, TableMark(batch.mark, batch.digest))
        names = table.properties.get(NAME_MAPPING)
        with table.transaction() as transaction:
            self._add_columns(transaction, batch, never_null)
            keep_names(transaction, names, batch)
            files = data_files(transaction, batch, self._name)
            of_snapshot = summary
            if batch.removals:
                # First: it must leave the new rows.
                delete_rows(transaction, batch.removals)
                of_snapshot = {**summary, removals_property(batch.lineage): "true"}
            # Not `add_files`: it looks through all files of the table, however many.
            with transaction.update_snapshot(of_snapshot).merge_append() as append:
                for file in files:
                    append.append_data_file(file)
            _set_mark(transaction, summary, batch.lineage, append.snapshot_id)
            if batch.continues:
                transaction.set_properties({fork_property(batch.continues): batch.lineage})
            recorded = [each for n, each in inputs_in(table.properties) if n == batch.lineage]
            reads = sorted({*map(str, recorded), str(batch.origin.reads)})
            transaction.set_properties({input_property(batch.lineage): json.dumps(reads)})

    def _check_new(self, table: Table, batch: WrittenBatch) -> None:
        """Refuse files of others that another query may have added; our own names are unique."""
        location = table.metadata.location
        paths = {path_in(location, file.path) for file in batch.files if is_in_place(file)}
        marks = {name for name in table.properties if name.startswith(MARK)}
        if paths and not all(name.startswith(f"{MARK}{batch.lineage}.") for name in marks):
            already_added = paths & {task.file.file_path for task in table.scan().plan_files()}
            if already_added:
                raise TableError(
                    "files of a batch are already in the table",
                    min(already_added),
                    f"it in {self._name}, added by another query",
                    "files that are not in the table",
                    "Continue that query from its checkpoint, or write into another table.",
                )

    def _add_columns(
        self, transaction: Transaction, batch: WrittenBatch, never_null: Sequence[Path]
    ) -> None:
        from pyiceberg.exceptions import ValidationError

        try:
            keys = [pa.schema([(each.column, pa.string())]) for each in batch.removals[:1]]
            for schema in [*batch.schemas, *keys]:
                with transaction.update_schema() as update:
                    # pyiceberg makes a required column optional for files that allow nulls.
                    update.union_by_name(with_promises(schema, never_null))
        except (ValueError, ValidationError) as error:
            raise TableError(
                "the columns of the files do not fit the table's",
                self._name,
                str(error),
                "columns of the same types, or of types that Iceberg promotes",
                "Nothing is lost. Rename the column in the table (update.rename_column), and start "
                "the query again: it adds this batch, with a new column of the type of the files. "
                "The old values stay in the renamed column.",
            ) from error

    def _check_columns(self, table: Table, columns: pa.Schema) -> None:
        """Refuse what pyiceberg does not: it would add a column that engines take for another."""
        schema = table.schema()
        column_names = ColumnNames(schema.column_names)
        paths = [leaf.path for leaf in leaves(columns) if leaf.path is not None]
        names = {".".join(path[: n + 1]) for path in paths for n in range(len(path))}
        names.update(columns.names)
        problems = [
            f"{name} is {column_names.find(name)} in the table"
            for name in sorted(names)
            if column_names.find(name) not in (name, None)
        ]
        if problems:
            raise TableError(
                "the columns of the files do not fit the table's",
                self._name,
                "; ".join(problems),
                "columns of the same names",
                "Name the columns as the table does.",
            )


def _never_null(columns: pa.Schema, schemas: Sequence[pa.Schema]) -> list[Path]:
    """Return required columns of the table that the files do not declare as such."""
    return [
        path
        for path in required(columns)
        if not all(_promises(schema, path, columns) for schema in schemas)
    ]


def _promises(schema: pa.Schema, path: Path, columns: pa.Schema) -> bool:
    if path[0] not in schema.names:
        # A column without values has no nested ones, either.
        return len(path) > 1 and bool(columns.field(path[0]).nullable)
    field = dict(paths_of(schema)).get(path)
    return field is not None and not field.nullable


class _PatientCatalog:
    """A catalog whose conflicts pyiceberg takes for a lost answer, so that it deletes no files.

    With `commit.retry.num-retries` 0 it deletes the files of a commit at the first conflict,
    without a look. But a request that a client or a gateway has sent twice meets the first copy,
    and its files are those of the current snapshot. The sink looks at the table by itself.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def load_table(self, identifier: Any) -> Any:
        """See `Catalog.load_table`."""
        with _refusals(".".join(identifier)):
            return self._catalog.load_table(identifier)

    def commit_table(self, table: Table, *arguments: Any) -> Any:
        """See `Catalog.commit_table`."""
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

        try:
            with _refusals(".".join(table.name())):
                return self._catalog.commit_table(table, *arguments)
        except CommitFailedException as error:
            raise CommitStateUnknownException(str(error)) from error


@contextmanager
def _refusals(table: str) -> Iterator[None]:
    """Name the table where a catalog refuses a request, such as after a key has expired."""
    try:
        yield
    except _conflicts():
        raise
    except Exception as error:
        raise TableError(
            "the catalog refuses the table",
            table,
            f"{type(error).__name__}: {first_line(error)}",
            "a catalog that has the table, and lets this program read and change it",
            "Nothing is lost. Restore the table, or the access to it, and start the query again.",
        ) from error


def _conflicts() -> tuple[type[Exception], ...]:
    """Errors after which the table is looked at again."""
    from pyiceberg.exceptions import (
        CommitFailedException,
        CommitStateUnknownException,
        ServerError,
        ServiceUnavailableError,
        TooManyRequestsError,
        ValidationException,
    )

    # `CommitStateUnknownException` is a lost answer: the next look at the table says whether it
    # counts.
    # A catalog that is overloaded or away (429, 503, 500) is asked again.
    away = ServerError, ServiceUnavailableError, TooManyRequestsError
    conflicts = CommitFailedException, CommitStateUnknownException, ValidationException
    return *conflicts, *away, OSError


def _set_mark(
    transaction: Transaction, summary: Mapping[str, str], lineage: str, snapshot: int
) -> None:
    # Tables of version 1 have none.
    number = getattr(transaction.table_metadata, "last_sequence_number", 0)
    transaction.set_properties({**summary, snapshot_property(lineage): f"{snapshot}-{number}"})


_NEWEST_VERSION: Final = 2
