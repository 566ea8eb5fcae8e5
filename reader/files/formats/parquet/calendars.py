"""Which columns of a Parquet file are of the hybrid calendar, and their rebasing."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from ...options import ReaderOptions
from ..leaves import Change, Path, on_leaves
from ..spark_notes import calendar_of


def rebasing(parquet: pq.ParquetFile, options: ReaderOptions, path: str) -> dict[str, Change]:
    """What is to be done with which column: nothing, for almost all files.

    As Spark decides it, by the notes in the footer, else by the options.

    Raises:
        SchemaMismatchError: the old calendar in a zone that is not known.
    """
    calendar = calendar_of(parquet.metadata.metadata or {}, options, path)
    if calendar is None:
        return {}
    return calendar.changes(parquet.schema_arrow, set(_int96(parquet)))


def _int96(parquet: pq.ParquetFile) -> Iterator[Path]:
    """Paths of the leaves that Arrow shows as timestamps without a zone, from INT96."""
    paths: list[Path] = []

    def note(found: pa.DataType, path: Path) -> None:
        del found
        paths.append(path)

    for field in parquet.schema_arrow:
        on_leaves(field.type, note, (field.name,))
    for number, path in enumerate(paths):
        if parquet.schema.column(number).physical_type == "INT96":
            yield path
