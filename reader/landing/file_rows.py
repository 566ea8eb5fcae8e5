"""The rows that a stream has where rows are landed: one for each data file.

Not here: the files (`file_writer.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.landed_file import LandedFile
from .landing_options import LandingOptions

SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("statistics", pa.string()),
        ("checkpoint", pa.int64()),
        ("reader", pa.int32()),
    ]
)
SCHEMA_IN_PLACE: Final = SCHEMA.append(pa.field("lineage", pa.string()))
"""Columns of files that a reader has not written: their names do not say whose they are."""


def rows_schema(options: LandingOptions) -> pa.Schema:
    """The columns of the stream."""
    return SCHEMA_IN_PLACE if options.land_copy == "never" else SCHEMA


_AT_ONCE = 10_000


def rows_about(
    files: Sequence[LandedFile], ref: CheckpointRef, reader: int, schema: pa.Schema, lineage: str
) -> Iterator[pa.RecordBatch]:
    """The rows about the files of one reader commit, in their order."""
    for start in range(0, len(files), _AT_ONCE):
        some = files[start : start + _AT_ONCE]
        columns = {
            "path": [file.path for file in some],
            "rows": [file.rows for file in some],
            "bytes": [file.bytes for file in some],
            "partition": [list(file.partition.items()) for file in some],
            "statistics": [file.statistics for file in some],
            "checkpoint": [ref.checkpoint] * len(some),
            "reader": [reader] * len(some),
            "lineage": [lineage] * len(some),
        }
        chosen = {name: columns[name] for name in schema.names}
        yield pa.RecordBatch.from_pydict(chosen, schema=schema)
