"""Ends a split where the budget of the part is spent, or where an earlier attempt has ended it.

Formats of text say where their batches begin in the content of a split; in all other formats rows
are counted. A batch that does not fit comes again in smaller parts: so the end is at the border of
a record, also where records are dropped or filtered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa

from ...checkpoint_meta.files.file_split import FileSplit, SampledFile, sampled
from ...errors import ReplayError
from ..api import RemainingBudget
from .formats.api import Decoded, FileFormat
from .formats.archives import with_spans

Step: TypeAlias = tuple[pa.RecordBatch, Decoded]
"""A batch in Spark's schema, and what it was made of."""

Finish: TypeAlias = Callable[[Decoded, int], pa.RecordBatch]
"""Adds columns, filters and fits a batch whose first row has this number in its file."""


def with_sample(split: FileSplit, until: FileSplit | None, *, may_end: bool) -> FileSplit:
    """Return the split with a sample of its file, so that what is left comes from the same content.

    Args:
        split: to be read.
        until: the remainder that an earlier attempt has acknowledged.
        may_end: whether this attempt may end before the end of the split.
    """
    if until is not None:
        return split._replace(file=SampledFile.of(split.file, until.file.sample))
    if may_end and split.is_whole_file:
        return split._replace(file=sampled(split.file))
    return split


class SplitEnd:
    """Reads one split up to its end, or to an earlier one."""

    def __init__(
        self,
        split: FileSplit,
        file_format: FileFormat,
        budget: RemainingBudget,
        until: FileSplit | None,
    ) -> None:
        """`until` is the remainder that an earlier attempt has acknowledged."""
        self._split, self._format = split, file_format
        self._budget, self._until = budget, until
        self.remainder: FileSplit | None = None
        """What is left of the split; None if it was read to its end."""
        self._read_bytes: int | None = None
        """Stored bytes that were read; None where pieces do not say it."""
        self._at: int | None = None
        """Where the content of the last piece ends."""
        self.filtered_rows = 0
        """Rows before the end that the filter dropped, or left undecoded."""

    def break_off(self) -> FileSplit | None:
        """End the split behind what was handed out, and return the rest; None if that is all."""
        if self._at is not None:
            self._end_at(self._at)
        return self.remainder

    def steps(self, pieces: Iterator[Decoded], row: int, finish: Finish) -> Iterator[Step]:
        """Finished batches of the pieces up to the end; `row` is the number of the first row."""
        stack, stop = list[Decoded](), self._until
        stop_at = None if stop is None else self._format.position_of(self._split, stop)
        pieces = with_spans(pieces, self._split.skip)
        # Where rows are counted, those before the split are passed over with its first piece.
        before = self._split.skip
        while True:
            piece = stack.pop() if stack else next(pieces, None)
            if piece is None:
                self._has_ended()
                return
            assert piece.span is not None
            begin, end = piece.span
            passed_over = max(0, piece.passed_over - before)
            if self._ends_before(piece, stop_at):
                self.filtered_rows += passed_over
                return
            if stop_at is not None and end > stop_at:
                stack += self._parts(piece)
            elif piece.begins_member:
                self._budget.begin_file()
            else:
                batch = finish(piece, row + piece.passed_over)
                if stop is None and not self._fits(piece, batch.num_rows):
                    if piece.parts is not None:
                        stack += reversed(list(piece.parts()))
                        continue
                    if self._budget.has_begun:
                        self._end_at(begin)
                        self.filtered_rows += passed_over
                        return
                before = 0
                self.filtered_rows += passed_over + piece.batch.num_rows - batch.num_rows
                row += piece.passed_over + piece.batch.num_rows
                self._take(batch.num_rows, piece, end)
                yield batch, piece

    def _fits(self, piece: Decoded, rows: int) -> bool:
        files = self._budget.files
        has_files = files is None or piece.more_members <= files
        return has_files and self._budget.has_room(rows, self._stored(piece))

    def _take(self, rows: int, piece: Decoded, end: int) -> None:
        # Of a budget of bytes is taken what is known; the rest once the split has ended.
        records = piece.batch.num_rows + piece.dropped_records
        self._budget.take(rows, self._stored(piece), records)
        self._budget.begin_file(piece.more_members)
        if piece.read_bytes is not None:
            self._read_bytes = max(self._read_so_far, piece.read_bytes)
        self._at = end
        piece.parts = None  # Frees the bytes of the block while the next one is parsed.

    def _ends_before(self, piece: Decoded, stop_at: int | None) -> bool:
        assert piece.span is not None
        begin, _ = piece.span
        if stop_at is not None:
            self.remainder = self._until if begin >= stop_at else None
        elif self._budget.is_spent or (piece.begins_member and self._budget.files == 0):
            self._end_at(begin)
        return self.remainder is not None

    def _parts(self, piece: Decoded) -> list[Decoded]:
        if piece.parts is None:
            raise self._differs("a record where the earlier attempt ended")
        return list(piece.parts())[::-1]

    def _end_at(self, position: int) -> None:
        if position == self._split.skip:
            self.remainder = self._split
            return
        left = self._format.remainder(self._split, position)
        if self._read_bytes is not None:
            most = max(0, left.end - left.start - 1)
            left = left._replace(read_bytes=min(self._read_bytes, most))
        self.remainder = left

    @property
    def _read_so_far(self) -> int:
        return self._split.read_bytes if self._read_bytes is None else self._read_bytes

    def _stored(self, piece: Decoded) -> int:
        """The stored bytes of a piece, as far as they are known."""
        return 0 if piece.read_bytes is None else max(0, piece.read_bytes - self._read_so_far)

    def _has_ended(self) -> None:
        if self._until is not None:
            raise self._differs("the end of the split")
        self.filtered_rows += self._format.passed_over
        # What of its bytes is not accounted for yet, such as those of a footer.
        self._budget.take(0, max(0, self._split.end - self._split.start - self._read_so_far))

    def _differs(self, found: str) -> ReplayError:
        assert self._until is not None
        return ReplayError(
            "this attempt cannot end where an earlier attempt of the batch has ended",
            self._split.split_id,
            found,
            f"what is left of it: {self._until.split_id}",
            "Put the file back as it was when the batch was first read, then restart the query.",
        )
