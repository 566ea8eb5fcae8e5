"""The view `quarantine`: what was given up on, and the file that the id of a split names."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa

from ...checkpoint_meta.documents.checkpoint import QuarantinedSplit, quarantined_in
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from ...checkpoint_meta.files.file_split import FileSplit, FileVersion
from .state_view import TIME, StateView, fields

FILE_OF_SPLIT: Final = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("modified", TIME), ("etag", pa.string())]
)

QUARANTINE: Final = pa.schema(
    [
        *FILE_OF_SPLIT,
        *fields(pa.int64(), "start", "end"),
        *fields(pa.string(), "split_id", "reason"),
        ("attempts", pa.int32()),
        ("checkpoint", pa.int64()),
    ]
)

# Greedy for the path, which may have any of the signs that follow it, and line ends.
_SPLIT_ID = re.compile(r"(.*)@(\d+)-(-?\d+)-(.*?):(\d+)-(\d+)(?:\+(\d+))?", re.DOTALL)


def file_of(split_id: str) -> dict[str, Any]:
    """Path, size, modified, etag, start and end; empty where another source made the id."""
    split = split_of(split_id)
    if split is None:
        return {}
    file = split.file
    # -1 means that the file system has no times.
    modified = pa.scalar(file.modified if file.modified >= 0 else None, TIME)
    return {**file._asdict(), "modified": modified, "start": split.start, "end": split.end}


def split_of(split_id: str) -> FileSplit | None:
    """The split that an id names; None where another source made it."""
    match = _SPLIT_ID.fullmatch(split_id)
    if match is None:
        return None
    size, modified, start, end = (int(match[at]) for at in (2, 3, 5, 6))
    file = FileVersion(match[1], size, modified, match[4])
    return FileSplit(file, start, end, int(match[7] or 0))


def quarantined_splits(view: StateView) -> list[QuarantinedSplit]:
    """All that were given up on, up to the newest checkpoint; of any source."""
    chain = [] if view.head == NO_CHECKPOINT else view.history.chain(view.head)
    return quarantined_in(chain)


def quarantine(view: StateView) -> pa.Table:
    """Rows of `QUARANTINE`."""
    rows = [{**file_of(s.split_id), **s.model_dump()} for s in quarantined_splits(view)]
    return pa.Table.from_pylist(rows, schema=QUARANTINE)
