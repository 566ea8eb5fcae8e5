"""What a listing has found, as columns of the ledger.

Not here: what is new in it (`ledger.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ....checkpoint_meta.documents.arrow_arrays import text_array
from ....checkpoint_meta.documents.file_columns import FILES, Flags, Numbers, numbers_array
from ....checkpoint_meta.index.fingerprints import Names
from ..discovery.api import FoundFiles


def etags_of(found: Sequence[FoundFiles]) -> list[str] | None:
    """The stores' marks; None for a file without one."""
    if all(files.etags is None for files in found):
        return None
    return [etag for files in found for etag in (files.etags or [""] * len(files))]


def once(rows: Numbers, names: Names) -> Numbers:
    """The last of several rows of one file: a listing may come upon it twice."""
    chosen = names.take(rows)
    order = np.lexsort((rows, chosen.low, chosen.high))
    high, low = chosen.high[order], chosen.low[order]
    twice = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
    if not twice.any():
        return rows
    return np.sort(rows[order[np.append(~twice, True)]])


def version_rows(
    paths: Sequence[str],
    sizes: Numbers,
    modified: Numbers,
    etags: Sequence[str] | None,
    rows: Numbers,
) -> pa.RecordBatch:
    """Some of what was found, as rows of `FILES`."""
    chosen = rows.tolist()
    marks = ["" if etags is None else etags[row] for row in chosen]
    columns = [
        text_array([paths[row] for row in chosen]),
        numbers_array(sizes[rows]),
        numbers_array(modified[rows]),
        text_array(marks),
    ]
    return pa.record_batch(columns, schema=FILES)


def where(batch: pa.RecordBatch, chosen: Flags) -> pa.RecordBatch:
    """The rows that are chosen."""
    if chosen.all():
        return batch
    return batch.take(pa.array(np.flatnonzero(chosen), pa.int64()))
