"""Event times that are read from files: once for each file, and remembered while it is pending.

A time is a pure function of one version of a file, so what is not remembered is read again with the
same result. A checkpoint holds the times of the ranges that become pending in it, a base those of
all that are pending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.files.file_columns import TIMES, splits_in
from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....checkpoint_meta.storage.contract import at_once
from ..discovery.selection.event_times import FileTimes

ReadTimes: TypeAlias = Callable[[FileVersion], tuple[int, int] | None]
"""The earliest and the latest time in a file, in microseconds; None if it has none."""

_NONE: Final = -(2**63)
"""Remembered of a file that has no time."""


class StatisticsTimes(FileTimes):
    """Knows the times of pending files by their paths."""

    def __init__(self, column: str, read: ReadTimes) -> None:
        """`column` names what `read` reads: what was remembered of something else is not used.

        What `read` raises comes out of what needs the time.
        """
        self._of = column
        self._read = read
        self._known: dict[str, int] = {}
        self._lock = threading.Lock()
        self.may_be_missing = True
        self.longest = 0

    @override
    def find(self, file: FileVersion) -> int | None:
        time = self._known.get(file.path)
        if time is None:
            time = self._learn_one(file)
        return None if time == _NONE else time

    def knows(self, file: FileVersion) -> bool:
        """True if `find` need not read the file."""
        return file.path in self._known

    def learn(self, splits: Sequence[FileSplit]) -> None:
        """Read the times of the files of `splits`, some of them at the same time."""
        files = list({split.file for split in splits})
        if len(files) > 1:
            # The query fails with the first error: thousands of footers need not be read before.
            at_once(self._learn_one, files)
        elif files:
            self._learn_one(files[0])

    def _learn_one(self, file: FileVersion) -> int:
        times_of_file = self._read(file)
        first, last = (_NONE, _NONE) if times_of_file is None else times_of_file
        span = last - first
        with self._lock:
            # Threads of a pool learn at the same time. The assignment below is one step, and needs
            # no lock.
            self.longest = max(self.longest, span)
        self._known[file.path] = first
        return first

    @override
    def forget(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._known.pop(path, None)

    # Checkpoints ----------------------------------------------------------------------------

    def columns(self, ranges: pa.RecordBatch) -> list[pa.Array]:
        """Return what is remembered of some ranges: the columns of `TIMES`."""
        times = [self._known.get(path) for path in ranges.column("path").to_pylist()]
        marks = [None if time is None else self._of for time in times]
        return [pa.array(times, TIMES.field(0).type), pa.array(marks, TIMES.field(1).type)]

    def restore(
        self, remembered: Sequence[pa.RecordBatch], pending: Sequence[pa.RecordBatch]
    ) -> None:
        """Take the times of `pending` from rows of `TIMED_CHANGES`; read those that are not there.

        Of several rows of one path the last one counts.
        """
        times_by_path: dict[str, int] = {}
        for batch in remembered:
            rows = zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)
            # Times of another column, or in another unit, would order files wrongly.
            times_by_path.update((path, time) for path, time, column in rows if column == self._of)
        unknown: list[FileSplit] = []
        for ranges in pending:
            for split in splits_in(ranges):
                if split.file.path in times_by_path:
                    self._known[split.file.path] = times_by_path[split.file.path]
                else:
                    unknown.append(split)
        self.learn(unknown)


_COLUMNS = ("path", *TIMES.names)
