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
    seconds: float | None = None
    """How long the whole batch is meant to take. A target, not a bound: the size that follows from
    it is learned, and what comes nearest to it is taken."""


UNLIMITED = BatchLimits()

_ENOUGH = 0.99
"""A batch that has this part of its work has all of it: the rest would be a split of its own."""


class BatchBudget:
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
        self.work = 0.0
        """What was taken so far: bytes, weighted by what they cost where the source knows."""
        self.work_limit: float | None = None
        """How much it may be by `limits.seconds`; None without a target, or before planning."""

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
        return self._is_spent or self.files_left == 0

    def takes_more_of(self, file: str) -> bool:
        """True as long as a split of `file` may be taken: a file counts once, however it is cut."""
        if self._is_spent:
            return False
        return self.files_left != 0 or file in self._files

    @property
    def _is_spent(self) -> bool:
        if self.work_limit is not None and self.work >= _ENOUGH * self.work_limit > 0:
            return True
        return self.bytes_left == 0 or self.rows_left == 0

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

    @property
    def work_left(self) -> float | None:
        """Work that still fits, None without a target."""
        return None if self.work_limit is None else max(0.0, self.work_limit - self.work)

    def is_nearer_with(self, work: float) -> bool:
        """True unless `work` more leads further beyond the target than it is away now.

        The first split of a batch always comes.
        """
        left = self.work_left
        return left is None or self.is_empty or work / 2 <= left

    def take(self, file: str, length: int, rows: int = 0, work: float | None = None) -> None:
        """Account for a split of `file`; several splits of a file count as one file.

        Args:
            file: what the limit on files counts.
            length: bytes.
            rows: where they are known before reading, else 0.
            work: bytes, weighted by what they cost to read; `length` if the source does not say.
        """
        self._files.add(file)
        self.bytes += length
        self.rows += rows
        self.work += length if work is None else work

    def add(self, other: BatchBudget) -> None:
        """Account for all that `other` has taken, too."""
        self._files |= other._files
        self.bytes += other.bytes
        self.rows += other.rows
        self.work += other.work

    def lift(self, limits: BatchLimits, *, everything: bool = False) -> None:
        """Change the limits, keeping what has been taken (Trigger.Once ignores every limit)."""
        self.limits = limits
        self.work_limit = None
        self.takes_everything = everything


def _left(limit: int | None, taken: int) -> int | None:
    return None if limit is None else max(0, limit - taken)
