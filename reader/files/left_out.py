"""Reports on records and files that are left out of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ...checkpoint_meta.files.file_split import REPLACED, FileSplit, FileVersion, replaced
from ..api import SCHEMA_LEFT_OUT, LeftOut, ReaderEvent, SplitFinished
from .formats.api import BadRecord

_REPLACED = "replaced before it was read; the current version is read separately"


def left_out(records: Sequence[BadRecord]) -> Iterator[LeftOut]:
    """Yield a report on malformed records, if there are any."""
    if records:
        columns = [[getattr(r, name) for r in records] for name in SCHEMA_LEFT_OUT.names]
        arrays = [pa.array(column, pa.string()) for column in columns]
        yield LeftOut("bad_records", pa.RecordBatch.from_arrays(arrays, schema=SCHEMA_LEFT_OUT))


def bad_file(file: FileVersion, reason: str) -> LeftOut:
    """Return the report on a file of which the rest is skipped."""
    row = {"path": file.path, "reason": reason}
    return LeftOut("bad_files", pa.RecordBatch.from_pylist([row], schema=SCHEMA_LEFT_OUT))


def report_replaced(
    version: FileVersion, split: FileSplit, rows: int
) -> Iterator[SplitFinished | ReaderEvent]:
    """Yield the reports on a split whose file now has this version, after some rows of the old."""
    yield SplitFinished(split.split_id, rows, skipped=_REPLACED)
    # A version without its time is for a listing to find.
    if version.modified >= 0:
        yield ReaderEvent(REPLACED, replaced(split.file, version))
