"""Reports what a task has read of files in all, as one event."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.file_split import FIGURES
from ..api import ReaderEvent, Report, SplitFinished, SplitReader, SplitT, SplitUnfinished
from ..budget import RemainingBudget


class FigureReader(SplitReader[SplitT]):
    """Reads through another reader and sends what was read in all as one event at the end."""

    def __init__(self, inner: SplitReader[SplitT], budget: RemainingBudget) -> None:
        self._inner, self._budget = inner, budget

    @override
    def read(self, splits: Sequence[SplitT]) -> Iterator[pa.RecordBatch | Report]:
        sums = dict.fromkeys(("rows", "bytes", "droppedRecords", "skippedFiles"), 0)
        began = time.monotonic()
        for item in self._inner.read(splits):
            if isinstance(item, SplitFinished | SplitUnfinished):
                sums["rows"] += item.rows
                sums["bytes"] += item.bytes
                sums["droppedRecords"] += item.dropped_records
            if isinstance(item, SplitFinished):
                sums["skippedFiles"] += bool(item.skipped)
            yield item
        sums["files"] = self._budget.begun_files
        # With the time in which the sink takes the rows: a limit on seconds contains it.
        sums["microseconds"] = int((time.monotonic() - began) * 1_000_000)
        yield ReaderEvent(FIGURES, sums)

    @override
    def close(self) -> None:
        self._inner.close()
