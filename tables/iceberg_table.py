"""Data files into an Iceberg table: one transaction a batch, recognized by table properties.

The properties are set in the transaction that adds the files, so both are there or neither is.
Properties of snapshots would expire with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from typing_extensions import override

from ..errors import TableError
from ..reader.direct_write.field_ids import to_text
from ..reader.direct_write.partition_spec import paths_of
from ..reader.direct_write.statistics import Path, leaves
from ..reader.direct_write.table_fit import required, with_demands, with_promises
from .iceberg_files import NAME_MAPPING, columns_of, data_files, is_in_place, keep_names, path_in
from .table_sink import TableSink
from .written_batch import WrittenBatch

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction


class IcebergSink(TableSink):
    """See `TableSink`."""

    format = "Iceberg"

    def __init__(self, table: Table, storage_options: Mapping[str, Any] | None = None) -> None:
        super().__init__(str(table.name()), storage_options or {})
        self._table = table

    @override
    def identity(self) -> str:
        return f"iceberg:{self.opened().metadata.table_uuid}"

    @override
    def columns(self) -> str:
        return to_text(with_demands(columns_of(self.opened().metadata), self._name))

    @override
    def _conflicts(self) -> tuple[type[Exception], ...]:
        from pyiceberg.exceptions import (
            CommitFailedException,
            CommitStateUnknownException,
            ServerError,
            ServiceUnavailableError,
            TooManyRequestsError,
        )

        # `CommitStateUnknownException` is a lost answer: the next look at the table says whether it
        # counts.
        # A catalog that is overloaded or away (429, 503, 500) is asked again.
        away = ServerError, ServiceUnavailableError, TooManyRequestsError
        return CommitFailedException, CommitStateUnknownException, *away, OSError

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
    def newest(self, table: Table, lineage: str) -> int:
        return newest_checkpoint(table.properties, lineage)

    @override
    def _has_files(self, table: Table, batch: WrittenBatch) -> bool:
        return table.properties.get(_files_of(batch)) == batch.digest

    @override
    def _version(self, table: Table) -> str:
        return ""

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
        properties = {
            _checkpoint_of(batch.lineage): str(batch.checkpoint),
            _files_of(batch): batch.digest,
        }
        names = table.properties.get(NAME_MAPPING)
        with table.transaction() as transaction:
            self._add_columns(transaction, batch, never_null)
            transaction.set_properties(properties)
            keep_names(transaction, names, batch)
            files = data_files(transaction, batch, self._name)
            # Not `add_files`: it looks through all files of the table, however many.
            with transaction.update_snapshot().merge_append() as append:
                for file in files:
                    append.append_data_file(file)

    def _check_new(self, table: Table, batch: WrittenBatch) -> None:
        """Refuse files of others that another query may have added; our own names are unique."""
        location = table.metadata.location
        paths = {path_in(location, file.path) for file in batch.files if is_in_place(file)}
        marks = {name for name in table.properties if name.startswith(_MARK)}
        if paths and marks != {_checkpoint_of(batch.lineage), _files_of(batch)}:
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
            for schema in batch.schemas:
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
        column_names = {name.lower(): name for name in schema.column_names}
        paths = [leaf.path for leaf in leaves(columns) if leaf.path is not None]
        names = {".".join(path[: n + 1]) for path in paths for n in range(len(path))}
        names.update(columns.names)
        problems = [
            f"{name} is {column_names[name.lower()]} in the table"
            for name in sorted(names)
            if column_names.get(name.lower(), name) != name
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


def newest_checkpoint(properties: Mapping[str, str], lineage: str) -> int:
    """The id of the newest batch of a query in a table with these properties; 0 without one."""
    return int(properties.get(_checkpoint_of(lineage), 0))


_MARK: Final = "sluice."
_NEWEST_VERSION: Final = 2


def _checkpoint_of(lineage: str) -> str:
    return f"{_MARK}{lineage}.checkpoint"


def _files_of(batch: WrittenBatch) -> str:
    return f"{_MARK}{batch.lineage}.files"
