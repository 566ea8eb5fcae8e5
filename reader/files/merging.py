"""Merges small batches, so that thousands of tiny files do not become thousands of batches.

Not here: parsing several files at once (`packing.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..api import Report

_ENOUGH_ROWS = 32_768
_SMALL_ROWS = 8_192
_MAX_REPORTS = 4_096


def merged(
    items: Iterable[pa.RecordBatch | Report], batch_bytes: int
) -> Iterator[pa.RecordBatch | Report]:
    """The same rows and reports in the same order, each report still after its rows."""
    batches, reports, rows, size = list[pa.RecordBatch](), list[Report](), 0, 0

    def flush() -> Iterator[pa.RecordBatch | Report]:
        nonlocal rows, size
        if batches:
            yield batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        yield from reports
        batches.clear()
        reports.clear()
        rows = size = 0

    for item in items:
        if not isinstance(item, pa.RecordBatch):
            reports.append(item)
        elif item.num_rows >= _SMALL_ROWS:
            yield from flush()
            yield item
            continue
        elif item.num_rows:
            batches.append(item)
            rows += item.num_rows
            size += item.nbytes
        if rows >= _ENOUGH_ROWS or size >= batch_bytes or len(reports) >= _MAX_REPORTS:
            yield from flush()
    yield from flush()
