"""The rows that a table has, counted in its data files: by file of the input, and of one query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..checkpoint_meta.documents.written_file import FileName
from ..checkpoint_meta.files.file_split import FileVersion
from ..checkpoint_meta.storage.contract import Storage
from ..checkpoint_meta.storage.open_storage import open_storage
from ..errors import FileVanishedError
from ..reader.files.io.source_file import SourceFile

Counts = Iterator[tuple[pa.Array, pa.Array]]
"""Pairs of columns: values of the column of files, which may repeat, and the rows of each."""


def counts_in(
    paths: Iterable[str], column: str, storage_options: Mapping[str, Any]
) -> Counts | None:
    """Count the rows of each value of a column of Parquet files; None if one does not have it."""
    counts = []
    for path in paths:
        with _opened(path, storage_options) as source:
            file = pq.ParquetFile(source)
            if column not in file.schema_arrow.names:
                return None
            values = file.read([column]).column(0).cast(pa.string()).combine_chunks()
            counts.append(counted(values))
    return iter(counts)


def counted(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The different values, and how often each comes."""
    counts = values.value_counts()
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
    def of(
        cls,
        paths: Sequence[str],
        lineages: Collection[str],
        storage_options: Mapping[str, Any],
        *,
        has_deletes: bool,
    ) -> RowsOfQuery:
        """Read the footer of each data file of a table."""

        def count(path: str) -> int | None:
            try:
                with _opened(path, storage_options) as source:
                    return int(pq.read_metadata(source).num_rows)
            except FileVanishedError:
                return None

        with ThreadPoolExecutor(Storage.requests) as pool:
            counts = list(zip(paths, pool.map(count, paths), strict=True))
        gone = tuple(path for path, rows in counts if rows is None)
        own = [rows or 0 for path, rows in counts if _lineage_of(path) in lineages]
        return cls(sum(own), len(paths) - len(own), has_deletes, gone)


def _lineage_of(path: str) -> str:
    name = FileName.parse(path)
    return "" if name is None else name.checkpoint.lineage
