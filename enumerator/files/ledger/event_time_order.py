"""The order of pending ranges by the event times of their files.

Not here: the other orders (`pending.py`), and what may be in one batch
(`../event_time_batches.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ....checkpoint_meta.documents.file_columns import numbers_array, splits_in
from ....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ..discovery.selection.event_times import FileTimes


class EventTimeOrder:
    """Earliest event time first; of one time what was modified first, then by path.

    Where there is no event time, the modification time serves.
    """

    def __init__(self, times: FileTimes) -> None:
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
        return self._time(file), file.modified, file.path, split.start

    def _time(self, file: FileVersion) -> int:
        time = self._times.find(file)
        return file.modified if time is None else time

    def indices(self, ranges: pa.RecordBatch) -> pa.Array:
        """The rows of `ranges` in order."""
        import pyarrow.compute as pc

        files = (split.file for split in splits_in(ranges))
        times = numbers_array(np.fromiter(map(self._time, files), np.int64, ranges.num_rows))
        names = ["time", "modified", "path", "start"]
        columns = [times, *(ranges.column(name) for name in names[1:])]
        keys = [(name, "ascending") for name in names]
        return pc.sort_indices(pa.record_batch(columns, names=names), sort_keys=keys)
