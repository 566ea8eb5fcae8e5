"""The order of pending ranges by the event times of their files.

Not here: the other orders (`pending.py`), and what may be in one batch
(`../event_time_batches.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ....checkpoint_meta.documents.file_columns import numbers_array
from ....checkpoint_meta.documents.file_split import FileSplit
from ..discovery.selection.event_times import EventTimes


class EventTimeOrder:
    """Earliest event time first; of one time what was modified first, then by path."""

    def __init__(self, times: EventTimes) -> None:
        self._times = times

    @property
    def key(self) -> Callable[[FileSplit], Any]:
        """What ranges are compared by.

        Raises:
            SourceUnavailable: when called; the path names no event time.
        """
        return self._key

    def _key(self, split: FileSplit) -> tuple[int, int, str, int]:
        file = split.file
        return self._times.of(file.path), file.modified, file.path, split.start

    def indices(self, ranges: pa.RecordBatch) -> pa.Array:
        """The rows of `ranges` in order."""
        import pyarrow.compute as pc

        paths = ranges.column("path").to_pylist()
        times = numbers_array(np.fromiter(map(self._times.of, paths), np.int64, len(paths)))
        names = ["time", "modified", "path", "start"]
        columns = [times, *(ranges.column(name) for name in names[1:])]
        keys = [(name, "ascending") for name in names]
        return pc.sort_indices(pa.record_batch(columns, names=names), sort_keys=keys)
