"""A function that a test applies to rows on their way into data files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Twice the id of each row."""
    return pa.record_batch({"twice": pc.multiply(batch.column("id"), 2)})
