"""The executors' half of the source whose rows can be counted: reads what a script says.

Not here: the coordinator's half (`rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.files.file_split import FIGURES, FileSplit
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.api import (
    PartEnded,
    ReaderContext,
    ReaderEvent,
    Report,
    SplitFinished,
    SplitReader,
    SplitReturned,
    SplitUnfinished,
)

from .rows import Row, is_lane

SCHEMA = pa.schema([("file", pa.string()), ("row", pa.int64())])

READ = "read"
RETURN = "return"
FAIL = "fail"
PART = "part"


class RowReader(SplitReader[FileSplit]):
    """The executors' half: does with its splits what a script says, one word a split."""

    def __init__(
        self, context: ReaderContext, script: Sequence[str] = (), tell: str | None = None
    ) -> None:
        self._context = context
        self._script = list(script)
        self._tell = tell
        self._rows = self._files = 0

    def read(self, splits: Sequence[FileSplit]) -> Iterator[pa.RecordBatch | Report]:
        for index, split in enumerate(splits):
            if self._context.budget.is_spent or self._context.budget.files == 0:
                yield PartEnded(split.split_id)
                break
            read = self._read_lane if is_lane(split.file.path) else self._read
            yield from read(split, self._word(index))
        if self._context.budget.is_limited:
            figures = {"bytes": self._rows, "rows": self._rows, "files": self._files}
            yield ReaderEvent(FIGURES, {**figures, "microseconds": 1000 * self._rows})
        if self._tell is not None:
            yield ReaderEvent("told", self._tell)

    def _word(self, index: int) -> str:
        word = self._script[index] if index < len(self._script) else READ
        if word == FAIL or not self._context.must_finish:
            return word
        return READ

    def _read_lane(self, split: FileSplit, word: str) -> Iterator[pa.RecordBatch | Report]:
        name, end = split.file.path, split.end
        going_on = self._context.continued.get(split.split_id)
        if going_on is not None:
            # What the continuation grants, as far as its bound allows.
            bound = split.start + (going_on.rows or 0)
            end = max(split.start, min(going_on.stop, bound))
        stop = split.start + (end - split.start) // 2 if word == PART else end
        remainder = self._context.until.get(split.split_id, split._replace(start=stop, end=end))
        for row in range(split.start, remainder.start):
            yield batch_of([(name, row)])
        if word == FAIL:
            raise MalformedDataError("the disk crackles", split.split_id)
        yield SplitUnfinished(split.split_id, remainder.start - split.start, remainder)

    def _read(self, split: FileSplit, word: str) -> Iterator[pa.RecordBatch | Report]:
        if word == RETURN and self._context.may_return:
            yield SplitReturned(split.split_id, "the disk crackles")
            return
        end = split.end
        remainder = self._context.until.get(split.split_id)
        if remainder is not None:
            end = remainder.start
        elif word == PART:
            end = split.start + split.length // 2
            remainder = split._replace(start=end)
        budget = self._context.budget
        budget.begin_file()
        self._files += 1
        for row in range(split.start, end):
            yield batch_of([(split.file.path, row)])
            budget.take(1, 1)
            self._rows += 1
            if budget.is_spent and row + 1 < split.end:
                remainder, end = split._replace(start=row + 1), row + 1
                break
        if word == FAIL:
            raise MalformedDataError("the disk crackles", split.split_id)
        rows = end - split.start
        if remainder is not None:
            yield SplitUnfinished(split.split_id, rows, remainder)
        else:
            yield SplitFinished(split.split_id, rows)


def reader_maker(
    script: Sequence[str] = (), tell: str | None = None
) -> Callable[[ReaderContext], RowReader]:
    """What a ReaderTask builds its readers with."""
    return lambda context: RowReader(context, script, tell)


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array([file for file, _ in rows]), pa.array([row for _, row in rows], pa.int64())],
        schema=SCHEMA,
    )


def rows_in(batch: pa.RecordBatch) -> list[Row]:
    return list(zip(batch.column("file").to_pylist(), batch.column("row").to_pylist(), strict=True))
