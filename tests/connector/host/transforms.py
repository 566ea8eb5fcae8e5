"""Functions for `writeTransform`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The ids, each twice as large."""
    return pa.RecordBatch.from_arrays([pc.multiply(batch["id"], 2)], names=["id"])


def with_file(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Twice the id of each row, and the key of its file."""
    twice = pc.multiply(batch["id"], 2)
    return pa.RecordBatch.from_arrays([twice, batch["file"]], names=["twice", "file"])
