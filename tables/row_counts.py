"""The rows that a table has, counted in its data files: by file of the input, and of one query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..checkpoint_meta.documents.written_file import FileName
from ..checkpoint_meta.files.file_split import FileVersion
from ..checkpoint_meta.storage.contract import Storage
from ..checkpoint_meta.storage.open_storage import open_storage
from ..errors import FileVanishedError
from ..reader.files.io.source_file import SourceFile
from .delta_table import DeltaSink
from .iceberg_table import IcebergSink
from .table_sink import TableSink

if TYPE_CHECKING:
    from pyiceberg.table import Table

Counts = Iterator[tuple[pa.Array, pa.Array]]
"""Pairs of columns: values of the column of files, which may repeat, and the rows of each."""


def rows_by_file(sink: TableSink, column: str, storage_options: Mapping[str, Any]) -> Counts | None:
    """Count the rows of each value of a column; None if the table has no such column.

    Deletion vectors and position deletes are applied.
    """
    table = sink.opened()
    if isinstance(sink, DeltaSink) and table is not None:
        names = [field.name for field in table.schema().fields]
        return _in_delta(table, column) if column in names else None
    if isinstance(sink, IcebergSink):
        return _in_iceberg(table, column) if column in table.schema().column_names else None
    counts = [_in_file(path, column, storage_options) for path in sink.files(table)]
    return None if None in counts else filter(None, counts)


def _in_delta(table: Any, column: str) -> Counts:
    from deltalake import QueryBuilder

    name = '"' + column.replace('"', '""') + '"'
    sql = f"SELECT {name} AS f, count(*) AS n FROM t GROUP BY {name}"  # noqa: S608 - a quoted name
    for batch in QueryBuilder().register("t", table).execute(sql):
        counts = pa.record_batch(batch)
        yield counts.column(0).cast(pa.string()), counts.column(1)


def _in_iceberg(table: Table, column: str) -> Counts:
    for batch in table.scan(selected_fields=(column,)).to_arrow_batch_reader():
        counts = batch.column(0).cast(pa.string()).value_counts()
        yield counts.field("values"), counts.field("counts")


def _in_file(
    path: str, column: str, storage_options: Mapping[str, Any]
) -> tuple[pa.Array, pa.Array] | None:
    with _opened(path, storage_options) as source:
        file = pq.ParquetFile(source)
        if column not in file.schema_arrow.names:
            return None
        counts = file.read([column]).column(0).cast(pa.string()).combine_chunks().value_counts()
        return counts.field("values"), counts.field("counts")


@contextmanager
def _opened(path: str, storage_options: Mapping[str, Any]) -> Iterator[pa.NativeFile]:
    storage, name = open_storage(path, storage_options)
    file = SourceFile(FileVersion(storage.url(name), 0, -1), storage_options).present_version()
    with SourceFile(file, storage_options).native() as source:
        yield source


@dataclass(frozen=True)
class RowsOfQuery:
    """The rows of the data files that a query has written and that the table has."""

    rows: int
    """By the footers of these files."""

    by_others: int
    """Data files that others have written, such as a compaction: their rows may be the query's."""

    has_deletes: bool
    """True if rows of data files are deleted, without a new file."""

    missing: tuple[str, ...] = ()
    """Data files that the table names and that are gone."""

    @property
    def is_inexact(self) -> bool:
        """True if the table may have another number of the query's rows."""
        return bool(self.by_others) or self.has_deletes

    @classmethod
    def of(cls, sink: TableSink, lineage: str, storage_options: Mapping[str, Any]) -> RowsOfQuery:
        """Reads the footer of each file."""
        table = sink.opened()
        paths = sink.files(table)

        def count(path: str) -> int | None:
            try:
                with _opened(path, storage_options) as source:
                    return int(pq.read_metadata(source).num_rows)
            except FileVanishedError:
                return None

        with ThreadPoolExecutor(Storage.requests) as pool:
            counts = list(zip(paths, pool.map(count, paths), strict=True))
        gone = tuple(path for path, rows in counts if rows is None)
        own = [rows or 0 for path, rows in counts if _lineage_of(path) == lineage]
        return cls(sum(own), len(paths) - len(own), _has_deletes(sink, table), gone)


def _lineage_of(path: str) -> str:
    name = FileName.parse(path)
    return "" if name is None else name.checkpoint.lineage


def _has_deletes(sink: TableSink, table: Any) -> bool:
    if isinstance(sink, IcebergSink):
        return any(task.delete_files for task in table.scan().plan_files())
    if not isinstance(sink, DeltaSink) or table is None:
        return False
    return "deletionVectors" in {*(table.protocol().reader_features or ())}
