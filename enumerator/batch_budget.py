"""How much the next checkpoint still takes: the limits of one micro-batch.

Not here: which splits fill it (the enumerator decides).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Upper bounds of one micro-batch; None is no bound. Whichever is reached first counts."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


UNLIMITED = BatchLimits()


class BatchRoom:
    """What is left of the limits of the checkpoint being planned."""

    def __init__(self, limits: BatchLimits) -> None:
        self.limits = limits
        self.bytes = 0
        """Bytes taken so far."""
        self.rows = 0
        """Rows taken so far, where they are known before reading."""
        self.takes_everything = False
        """True for a batch that is to hold all there is: no rule of the source ends it, either."""
        self._files: set[str] = set()

    @property
    def files(self) -> int:
        """Files taken so far."""
        return len(self._files)

    @property
    def is_empty(self) -> bool:
        """True as long as nothing has been taken."""
        return not self._files

    @property
    def is_full(self) -> bool:
        """True once any limit is reached: no other file fits.

        What is left of a file that has been begun may still: see `takes_more_of`.
        """
        return self.bytes_left == 0 or self.rows_left == 0 or self.files_left == 0

    def takes_more_of(self, file: str) -> bool:
        """True as long as a split of `file` may be taken: a file counts once, however it is cut."""
        if self.bytes_left == 0 or self.rows_left == 0:
            return False
        return self.files_left != 0 or file in self._files

    @property
    def files_left(self) -> int | None:
        """Files that still fit, None without a limit."""
        return _left(self.limits.files, len(self._files))

    @property
    def bytes_left(self) -> int | None:
        """Bytes that still fit, None without a limit."""
        return _left(self.limits.bytes, self.bytes)

    @property
    def rows_left(self) -> int | None:
        """Rows that still fit, None without a limit."""
        return _left(self.limits.rows, self.rows)

    def take(self, file: str, length: int, rows: int = 0) -> None:
        """Account for a split of `file`; several splits of a file count as one file."""
        self._files.add(file)
        self.bytes += length
        self.rows += rows

    def add(self, other: BatchRoom) -> None:
        """Account for all that `other` has taken, too."""
        self._files |= other._files
        self.bytes += other.bytes
        self.rows += other.rows

    def lift(self, limits: BatchLimits, *, everything: bool = False) -> None:
        """Change the limits, keeping what has been taken (Trigger.Once ignores every limit)."""
        self.limits = limits
        self.takes_everything = everything


def _left(limit: int | None, taken: int) -> int | None:
    return None if limit is None else max(0, limit - taken)
