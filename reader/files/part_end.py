"""Ends a split where the budget of the part is spent, or where an earlier attempt has ended it.

Formats of lines say where their batches begin in the content of a split, and decode them again in
smaller parts: so the end is at the border of a record, also where records are dropped or filtered.
In all other formats rows are counted: those that were read before are decoded again, and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from ...checkpoint_meta.documents.file_split import FileSplit
from ...errors import ReplayError
from ..budget import RemainingBudget
from .formats.api import Decoded, FileFormat

Step: TypeAlias = tuple[pa.RecordBatch, Decoded]
"""A batch in Spark's schema, and what it was made of."""

Finish: TypeAlias = Callable[[Decoded, int], pa.RecordBatch]
"""Adds columns, filters and fits a batch whose first row has this number in its file."""


class SplitEnd:
    """Reads one split up to its end, or to an earlier one."""

    def __init__(
        self,
        split: FileSplit,
        file_format: FileFormat,
        budget: RemainingBudget,
        until: FileSplit | None,
        *,
        may_break_off: bool = False,
    ) -> None:
        """`until` is the remainder that an earlier attempt has acknowledged.

        With `may_break_off` the caller may ask for what is left at any time.
        """
        self._split, self._format = split, file_format
        self._budget, self._until = budget, until
        self._may_break_off = may_break_off
        self.remainder: FileSplit | None = None
        """What is left of the split; None if it was read to its end."""
        self._rows = 0
        """Rows of the split that were decoded or passed over."""
        self._read_bytes = split.read_bytes
        self._at: int | None = None
        """Where the content of the last piece ends, where pieces say it."""

    @property
    def is_needed(self) -> bool:
        """False for a split that is simply read to its end."""
        return bool(
            self._split.skip
            or self._until is not None
            or self._budget.is_limited
            or self._may_break_off
        )

    def break_off(self) -> FileSplit | None:
        """End the split behind what was handed out, and return the rest; None if that is all."""
        if self._at is not None:
            self._end_at(self._at)
        elif self._rows > self._split.skip:
            self._end_behind(self._rows)
        return self.remainder

    def steps(self, pieces: Iterator[Decoded], row: int, finish: Finish) -> Iterator[Step]:
        """Finished batches of the pieces up to the end; `row` is the number of the first row."""
        stack, stop = list[Decoded](), self._until
        stop_at = None if stop is None else self._format.rows_before(self._split, stop)
        while self.remainder is None:
            piece = stack.pop() if stack else next(pieces, None)
            if piece is None:
                self._has_ended()
                return
            if piece.span is None:
                yield from self._counted(piece, row, stop_at, finish)
                continue
            begin, end = piece.span
            if stop is not None and begin >= stop.skip:
                self.remainder = stop
            elif stop is not None and end > stop.skip:
                stack += self._parts(piece, stop)
            elif stop is None and self._budget.is_spent:
                self._end_at(begin)
            else:
                batch = finish(piece, row)
                if stop is None and not self._budget.has_room(batch.num_rows, self._stored(piece)):
                    if piece.parts is not None:
                        stack += reversed(list(piece.parts()))
                        continue
                    if self._budget.has_begun:
                        self._end_at(begin)
                        return
                row += piece.batch.num_rows
                self._take(batch.num_rows, piece)
                self._at = end
                yield batch, piece

    def _parts(self, piece: Decoded, stop: FileSplit) -> list[Decoded]:
        if piece.parts is None:
            raise self._differs(stop, "a record where the earlier attempt ended")
        return list(piece.parts())[::-1]

    def _end_at(self, skip: int) -> None:
        if skip == self._split.skip:
            self.remainder = self._split
        else:
            most = max(0, self._split.end - self._split.start - 1)
            read = min(self._read_bytes, most)
            self.remainder = self._split._replace(skip=skip, read_bytes=read)

    def _take(self, rows: int, piece: Decoded) -> None:
        # Of a budget of bytes is taken what is known; the rest once the split has ended.
        self._budget.take(rows, self._stored(piece))
        if piece.read_bytes is not None:
            self._read_bytes = max(self._read_bytes, piece.read_bytes)
        elif piece.span is not None:
            # That most is read makes plans too large, which budgets allow.
            self._read_bytes = self._split.end - self._split.start

    def _stored(self, piece: Decoded) -> int:
        """The stored bytes of a piece, as far as they are known."""
        return 0 if piece.read_bytes is None else max(0, piece.read_bytes - self._read_bytes)

    def _counted(
        self, piece: Decoded, row: int, stop: int | None, finish: Finish
    ) -> Iterator[Step]:
        """The rows of a piece that are not read yet, as far as they may be read."""
        skip, count = self._split.skip, piece.batch.num_rows
        first = self._rows + piece.passed_over
        if first + count <= skip and count:
            self._rows = first + count
            return
        if stop is None and self._budget.is_spent:
            self._end_behind(max(first, skip))
            return
        if stop is not None and first >= stop:
            self.remainder = self._until
            return
        begin = max(0, skip - first)
        end = count if stop is None else min(count, stop - first)
        # Who read the rows before has counted what was dropped with them.
        if first < skip:
            piece = replace(piece, dropped_records=0, bad=())
        rows = replace(piece, batch=piece.batch.slice(begin, end - begin))
        batch = finish(rows, row + first + begin)
        if stop is None and not self._budget.has_room(batch.num_rows):
            fitting = self._budget.rows or 0
            if batch.num_rows < rows.batch.num_rows:
                fitting = self._rows_for(rows, row, finish)
            end = begin + fitting
            rows = replace(rows, batch=piece.batch.slice(begin, end - begin))
            batch = finish(rows, row + first + begin)
            self._end_behind(first + end)
        elif end < count:
            self.remainder = self._until
        self._rows = first + count
        self._take(batch.num_rows, rows)
        yield batch, rows

    def _rows_for(self, piece: Decoded, row: int, finish: Finish) -> int:
        """How many rows of a piece are read until the budget is spent."""
        # The filter may drop any of them: the number of those that are left grows with the rows.
        low, high, wanted = 1, piece.batch.num_rows, self._budget.rows
        assert wanted is not None
        while low < high:
            middle = (low + high) // 2
            part = replace(piece, batch=piece.batch.slice(0, middle))
            if finish(part, row).num_rows >= wanted:
                high = middle
            else:
                low = middle + 1
        return low

    def _end_behind(self, rows: int) -> None:
        self.remainder = self._format.remainder(self._split, rows)

    def _has_ended(self) -> None:
        if self._until is not None:
            raise self._differs(self._until, "the end of the split")
        # What of its bytes is not accounted for yet, such as those of a footer.
        self._budget.take(0, max(0, self._split.end - self._split.start - self._read_bytes))

    def _differs(self, stop: FileSplit, found: str) -> ReplayError:
        return ReplayError(
            "this attempt cannot end where an earlier attempt of the batch has ended",
            self._split.split_id,
            found,
            f"what is left of it: {stop.split_id}",
            "Put the file back as it was when the batch was first read, then restart the query.",
        )
