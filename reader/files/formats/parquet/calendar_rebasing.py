"""Which columns of a Parquet file are of the hybrid calendar, and their rebasing."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow.parquet as pq

from ...options import ReaderOptions
from ...values.map_nested import Change, Path
from ...values.spark_metadata import calendar_of


def rebasing(
    parquet: pq.ParquetFile, int96: Collection[Path], options: ReaderOptions, path: str
) -> dict[str, Change]:
    """What is to be done with which column: nothing, for almost all files.

    As Spark decides it, by the notes in the footer, else by the options.

    Raises:
        SchemaMismatchError: the old calendar in a zone that is not known.
    """
    calendar = calendar_of(parquet.metadata.metadata or {}, options, path)
    return {} if calendar is None else calendar.changes(parquet.schema_arrow, int96)
