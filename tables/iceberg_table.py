"""Landed files into an Iceberg table: one transaction a batch, recognized by table properties.

The properties are set in the transaction that adds the files, so both are there or neither is.
Properties of snapshots would expire with them. Not here: the files (`landed_batch.py`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ..checkpoint_meta.storage.retries import delays
from ..errors import TableError
from .landed_batch import LandedBatch, not_next

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TRIES: Final = 30


class IcebergSink:
    """Adds the files of each batch; call it with a batch, as `foreachBatch` does."""

    def __init__(self, table: Any) -> None:
        """`table` is a `pyiceberg.table.Table`."""
        if not table.spec().is_unpartitioned():
            raise TableError(
                "files cannot be added to a partitioned Iceberg table",
                str(table.name()),
                str(table.spec()),
                "a table without partitions",
                "Iceberg finds values of partitions in the files, which Hive's layout leaves out. "
                "landSortBy keeps the rows of a file together instead.",
            )
        self._table = table

    def __call__(self, frame: DataFrame, _: int) -> None:
        """Make the files of a batch part of the table, unless they are.

        Raises:
            TableError: the table has another batch in its place, or does not fit the files.
        """
        batch = LandedBatch.of(frame, {})
        if batch is not None:
            self.add(batch)

    def add(self, batch: LandedBatch) -> None:
        """See `__call__`."""
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

        pauses = delays(0.05)
        for attempt in range(1, _TRIES + 1):
            try:
                self._table.refresh()
                # In this copy only. A conflict must not put the files on top of whatever the other
                # writer has added: that may have been this batch.
                self._table.metadata.properties["commit.retry.num-retries"] = "0"
                if not self._has(batch):
                    self._commit(batch)
                return
            except (CommitFailedException, CommitStateUnknownException, OSError) as error:
                if attempt == _TRIES:
                    raise TableError(
                        "a batch could not be added to the Iceberg table",
                        str(self._table.name()),
                        f"{type(error).__name__}: {error}, after {attempt} tries",
                        "a commit, or another writer's to give way to",
                        "Nothing is lost: the query adds the batch when it is started again.",
                    ) from error
                time.sleep(next(pauses))

    def _has(self, batch: LandedBatch) -> bool:
        properties = self._table.properties
        known = int(properties.get(_checkpoint_of(batch), 0))
        if known < batch.checkpoint:
            return False
        if known == batch.checkpoint and properties.get(_files_of(batch)) == batch.digest:
            return True
        others = ", with other files" if known == batch.checkpoint else ""
        raise not_next(batch, str(self._table.name()), f"checkpoint {known} of the query{others}")

    def _commit(self, batch: LandedBatch) -> None:
        if any(file.partition for file in batch.files):
            raise TableError(
                "files with partition values cannot be added to an Iceberg table",
                batch.files[0].path,
                f"landPartitionBy={','.join(batch.files[0].partition)}",
                "no landPartitionBy",
            )
        from pyiceberg.exceptions import ValidationError

        batch.check_there()
        properties = {_checkpoint_of(batch): str(batch.checkpoint), _files_of(batch): batch.digest}
        with self._table.transaction() as transaction:
            try:
                with transaction.update_schema() as update:
                    for schema in batch.schemas:
                        update.union_by_name(schema)
            except (ValueError, ValidationError) as error:
                raise TableError(
                    "the columns of the files do not fit the table's",
                    str(self._table.name()),
                    str(error),
                    "columns of the same types, or of types that Iceberg promotes",
                ) from error
            transaction.set_properties(properties)
            transaction.add_files([file.path for file in batch.files])


def _checkpoint_of(batch: LandedBatch) -> str:
    return f"sluice.{batch.lineage}.checkpoint"


def _files_of(batch: LandedBatch) -> str:
    return f"sluice.{batch.lineage}.files"
