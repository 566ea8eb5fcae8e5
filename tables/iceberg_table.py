"""Landed files into an Iceberg table: one transaction a batch, recognized by table properties.

The properties are set in the transaction that adds the files, so both are there or neither is.
Properties of snapshots would expire with them. Not here: the files (`landed_batch.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from ..errors import TableError
from ..reader.landing.statistics import leaves
from .landed_batch import LandedBatch
from .table_sink import TableSink

if TYPE_CHECKING:
    from pyiceberg.table import Table


class IcebergSink(TableSink):
    """See `TableSink`."""

    format = "Iceberg"

    def __init__(self, table: Table, storage_options: Mapping[str, Any] | None = None) -> None:
        if not table.spec().is_unpartitioned():
            raise TableError(
                "files cannot be added to a partitioned Iceberg table",
                str(table.name()),
                str(table.spec()),
                "a table without partitions",
                "Iceberg finds values of partitions in the files, which Hive's layout leaves out. "
                "landSortBy keeps the rows of a file together instead.",
            )
        super().__init__(str(table.name()), storage_options or {})
        self._table = table

    @override
    def _conflicts(self) -> tuple[type[Exception], ...]:
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

        # `CommitStateUnknownException` is a lost answer: the next look at the table says whether it
        # counts.
        return CommitFailedException, CommitStateUnknownException, OSError

    @override
    def opened(self) -> Table:
        self._table.refresh()
        # In this copy only. A conflict must not put the files on top of what the other writer
        # has added: that may have been this batch.
        self._table.metadata.properties["commit.retry.num-retries"] = "0"
        return self._table

    @override
    def newest(self, table: Table, lineage: str) -> int:
        return newest_checkpoint(table.properties, lineage)

    @override
    def _has_files(self, table: Table, batch: LandedBatch) -> bool:
        return table.properties.get(_files_of(batch)) == batch.digest

    @override
    def _version(self, table: Table) -> str:
        return ""

    @override
    def _commit(self, table: Table, batch: LandedBatch) -> None:
        if any(file.partition for file in batch.files):
            raise TableError(
                "files with partition values cannot be added to an Iceberg table",
                batch.files[0].path,
                f"landPartitionBy={','.join(batch.files[0].partition)}",
                "no landPartitionBy",
            )
        from pyiceberg.exceptions import ValidationError

        for found in batch.schemas:
            self._check_columns(table, found)
        properties = {
            _checkpoint_of(batch.lineage): str(batch.checkpoint),
            _files_of(batch): batch.digest,
        }
        with table.transaction() as transaction:
            try:
                # Before the files: `add_files` refuses a file with a column that the schema does
                # not have.
                with transaction.update_schema() as update:
                    for schema in batch.schemas:
                        update.union_by_name(schema)
            except (ValueError, ValidationError) as error:
                raise TableError(
                    "the columns of the files do not fit the table's",
                    self._name,
                    str(error),
                    "columns of the same types, or of types that Iceberg promotes",
                ) from error
            transaction.set_properties(properties)
            transaction.add_files([file.path for file in batch.files])

    def _check_columns(self, table: Table, found: pa.Schema) -> None:
        """Refuse what pyiceberg does not: it would change the table, or add nulls to it."""
        schema = table.schema()
        known = {name.lower(): name for name in schema.column_names}
        paths = [leaf.path for leaf in leaves(found) if leaf.path is not None]
        names = {".".join(path[: n + 1]) for path in paths for n in range(len(path))}
        names.update(found.names)
        problems = [
            f"{name} is {known[name.lower()]} in the table"
            for name in sorted(names)
            if known.get(name.lower(), name) != name
        ]
        problems += [
            f"{name} may be null, and is required in the table"
            for name in schema.column_names
            if schema.find_field(name).required and not _is_required(found, name)
        ]
        if problems:
            raise TableError(
                "the columns of the files do not fit the table's",
                self._name,
                "; ".join(problems),
                "columns of the same names; NOT NULL in landSchema where they are required",
                "Make the columns optional in the table, or name them as the table does.",
            )


def _is_required(found: pa.Schema, name: str) -> bool:
    top, *below = name.split(".")
    if top not in found.names:
        return False
    field = found.field(top)
    for part in below:
        # Within lists and maps names differ, and nothing is known.
        if not pa.types.is_struct(field.type) or field.type.get_field_index(part) < 0:
            return True
        field = field.type.field(part)
    return not field.nullable


def newest_checkpoint(properties: Mapping[str, str], lineage: str) -> int:
    """The id of the newest batch of a query in a table with these properties; 0 without one."""
    return int(properties.get(_checkpoint_of(lineage), 0))


def _checkpoint_of(lineage: str) -> str:
    return f"sluice.{lineage}.checkpoint"


def _files_of(batch: LandedBatch) -> str:
    return f"sluice.{batch.lineage}.files"
