"""What of found files is new: their columns, what of a changed one is read, where records end."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ....checkpoint_meta.files.file_columns import (
    FILES,
    Flags,
    Numbers,
    numbers_array,
    numbers_in,
)
from ....checkpoint_meta.files.file_split import GrowingMark
from ....checkpoint_meta.index.fingerprints import Names, Words
from ....errors import FileChangedError
from ..discovery.api import FoundFiles

WholeRecords: TypeAlias = Callable[[str, int, int, np.uint64], GrowingMark]
"""Path, first byte, size, version in which it was known -> the mark after the last whole record."""


class OnOverwrite(Enum):
    """The treatment of a changed file."""

    IGNORE = "ignore"
    """It is known by its path: nothing."""

    REPROCESS = "reprocess"
    """A new file: it is read whole again."""

    REPLACE = "replace"
    """Likewise, and in that commit the rows of its earlier versions leave the table."""

    FAIL = "fail"
    """Stop the query with an error."""

    APPEND_TAIL = "appendTail"
    """It has grown: what is new is read."""

    @property
    def reads_whole(self) -> bool:
        """True if a changed file is read from its start."""
        return self in {OnOverwrite.REPROCESS, OnOverwrite.REPLACE}


def first_unread(
    on_overwrite: OnOverwrite, changed: Numbers, listing: FoundFiles, ends: Numbers
) -> Numbers:
    """First byte to be read of each file: 0 but for what has grown.

    Args:
        on_overwrite: what a change means.
        changed: positions of the files that are known in another version.
        listing: all files, as they are now.
        ends: up to where each was taken when it was known before.

    Raises:
        FileChangedError: names a file that must not have changed, or has shrunk.
    """
    paths, sizes = listing.paths, listing.sizes
    starts = np.zeros(len(paths), np.int64)
    # Where changes are ignored, it is a file that was gone.
    if not len(changed) or on_overwrite.reads_whole or on_overwrite is OnOverwrite.IGNORE:
        return starts
    if on_overwrite is OnOverwrite.FAIL:
        raise _changed(paths[changed[0]], int(sizes[changed[0]]), int(ends[changed[0]]))
    shrunk = changed[sizes[changed] < ends[changed]]
    if len(shrunk):
        raise FileChangedError(
            "an append-only file was truncated or replaced",
            paths[shrunk[0]],
            f"{int(sizes[shrunk[0]])} bytes",
            f"at least the {int(ends[shrunk[0]])} bytes that were already read",
            "Rotate by moving the file away and creating a new name; to keep using this file, set "
            "onOverwrite=reprocess (reads it whole) or ignore (reads no more of it).",
        )
    starts[changed] = ends[changed]
    return starts


def _changed(path: str, size: int, end: int) -> FileChangedError:
    return FileChangedError(
        "a file that was read has changed",
        path,
        f"another version of {size} bytes, after {end} bytes were read",
        "files that do not change, since onOverwrite=fail",
        "Put the file back, or set onOverwrite to ignore, reprocess, replace or appendTail.",
    )


def up_to_whole_records(
    files: pa.RecordBatch, starts: Numbers, versions: Words, whole_records: WholeRecords
) -> tuple[pa.RecordBatch, Numbers]:
    """The files with their marks, and where their whole records end.

    Args:
        files: rows of `FILES`.
        starts: first byte to be read of each.
        versions: in which version each was known; 0 if it was not.
        whole_records: looks into a file.

    Raises:
        FileChangedError: one is not the file that was read up to its start.
    """
    paths, sizes = files.column("path").to_pylist(), numbers_in(files, "size").tolist()
    marks = list(map(whole_records, paths, starts.tolist(), sizes, versions))
    etags = pa.array([mark.etag for mark in marks], pa.string())
    columns = [*(files.column(name) for name in ("path", "size", "modified")), etags]
    ends = np.array([mark.end for mark in marks], np.int64)
    return pa.record_batch(columns, schema=FILES), ends


def drop_duplicates(rows: Numbers, names: Names) -> Numbers:
    """The last of several rows of one file: a listing may come upon it twice."""
    # By fingerprints in columns, since texts would be compared one by one.
    chosen = names.take(rows)
    order = np.lexsort((rows, chosen.low, chosen.high))
    high, low = chosen.high[order], chosen.low[order]
    twice = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
    if not twice.any():
        return rows
    # Rows are the last key of the order, so of equal names the last one was listed last.
    return np.sort(rows[order[np.append(~twice, True)]])


def version_rows(listing: FoundFiles, rows: Numbers) -> pa.RecordBatch:
    """Some of what was found, as rows of `FILES`."""
    chosen = rows.tolist()
    # Text is never null in a checkpoint: a store without marks gives empty ones.
    marks = ["" if listing.etags is None else listing.etags[row] for row in chosen]
    columns = [
        pa.array([listing.paths[row] for row in chosen], pa.string()),
        numbers_array(listing.sizes[rows]),
        numbers_array(listing.modified[rows]),
        pa.array(marks, pa.string()),
    ]
    return pa.record_batch(columns, schema=FILES)


def filter_rows(batch: pa.RecordBatch, chosen: Flags) -> pa.RecordBatch:
    """The rows that are chosen."""
    if chosen.all():
        return batch
    return batch.take(numbers_array(np.flatnonzero(chosen)))
