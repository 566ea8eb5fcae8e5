"""The rows that a table has, counted in its data files: by file of the input, and of one query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..checkpoint_meta.documents.written_file import FileName
from ..checkpoint_meta.files.file_split import FileVersion
from ..checkpoint_meta.storage.contract import at_once
from ..checkpoint_meta.storage.open_storage import open_storage
from ..errors import FileVanishedError
from ..reader.files.io.source_file import SourceFile

Counts = Iterator[tuple[pa.Array, pa.Array]]
"""Pairs of columns: values of the column of files, which may repeat, and the rows of each."""


def counts_in(
    paths: Iterable[str], column: str, storage_options: Mapping[str, Any]
) -> Counts | None:
    """Count the rows of each value of a column of Parquet files; None if one does not have it."""

    def count(path: str) -> list[tuple[pa.Array, pa.Array]] | None:
        with _opened(path, storage_options) as source:
            metadata = pq.read_metadata(source)
            if column not in metadata.schema.to_arrow_schema().names:
                return None
            # A file of the input has many rows one after the other: their codes are counted.
            file = pq.ParquetFile(source, metadata=metadata, read_dictionary=[column])
            groups = (file.read_row_group(at, [column]) for at in range(file.num_row_groups))
            return [counted(values) for group in groups for values in group.column(0).chunks]

    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        counts = list(pool.map(count, paths))
    if any(each is None for each in counts):
        return None
    return chain.from_iterable(each or () for each in counts)


def counted(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The different values, as text, and how often each comes."""
    codes = values.dictionary_encode()
    counts = codes.indices.value_counts()
    texts = codes.dictionary.take(counts.field("values"))
    return texts.cast(pa.string()), counts.field("counts")


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

        counts = list(zip(paths, at_once(count, paths), strict=True))
        gone = tuple(path for path, rows in counts if rows is None)
        own = [rows or 0 for path, rows in counts if _lineage_of(path) in lineages]
        return cls(sum(own), len(paths) - len(own), has_deletes, gone)


def _lineage_of(path: str) -> str:
    name = FileName.parse(path)
    return "" if name is None else name.checkpoint.lineage
