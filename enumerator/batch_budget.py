"""The limits of one micro-batch, and how much of them is left for the next checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one micro-batch; None means no limit. The first one reached applies."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    seconds: float | None = None
    """After so many seconds each reader ends its part of the batch."""


UNLIMITED = BatchLimits()


class BatchBudget:
    """What is left of the limits of the checkpoint being planned."""

    def __init__(self, limits: BatchLimits) -> None:
        self.limits = limits
        self.bytes = 0
        """Bytes taken so far."""
        self.rows = 0
        """Rows taken so far, where they are known before reading."""
        self.takes_everything = False
        """True for a batch that contains everything, regardless of rules of the source."""
        # By name, since a file counts once, however many of its splits are taken.
        self._files: set[str] = set()
        self._continued: frozenset[str] = frozenset()
        self._only_continued = 0
        """Members of `_continued` that are not in `_files`; counted, since each split asks."""
        self.enough: int | None = None
        """Bytes with which the batch is full, by the source's own plan; None without one."""

    @property
    def files(self) -> int:
        """Files taken so far."""
        return len(self._files) + self._only_continued

    @property
    def is_empty(self) -> bool:
        """True as long as nothing has been taken."""
        return not self._files

    @property
    def is_full(self) -> bool:
        """True once any limit is reached: no other file fits.

        The rest of a file that is already in the batch may still fit: see `takes_more_of`.
        """
        return self._is_spent or self.files_left == 0

    @property
    def ended_by(self) -> str:
        """The limit that is reached, as a person would name it."""
        left = {
            "files": self.files_left,
            "bytes": self.bytes_left,
            "rows": self.rows_left,
            "bytes by its own plan": self.enough_left,
        }
        spent = [name for name, each in left.items() if each == 0]
        return f"its limit of {spent[0]}" if spent else "no limit"

    def takes_more_of(self, file: str) -> bool:
        """True as long as a split of `file` fits. A file counts once, with all its splits."""
        if self._is_spent:
            return False
        return self.files_left != 0 or file in self._files or file in self._continued

    @property
    def _is_spent(self) -> bool:
        return 0 in (self.bytes_left, self.rows_left, self.enough_left)

    @property
    def files_left(self) -> int | None:
        """Files that still fit, None without a limit."""
        return _left(self.limits.files, self.files)

    @property
    def bytes_left(self) -> int | None:
        """Bytes that still fit, None without a limit."""
        return _left(self.limits.bytes, self.bytes)

    @property
    def rows_left(self) -> int | None:
        """Rows that still fit, None without a limit."""
        return _left(self.limits.rows, self.rows)

    @property
    def enough_left(self) -> int | None:
        """Bytes until the batch is full by the source's own plan, None without one."""
        return _left(self.enough, self.bytes)

    def take(self, file: str, length: int, rows: int = 0) -> None:
        """Account for a split of `file`; several splits of a file count as one file.

        Args:
            file: the file that the limit on files counts.
            length: size of the split in bytes.
            rows: its number of rows, or 0 if that is unknown before reading.
        """
        if file not in self._files:
            self._files.add(file)
            self._only_continued -= file in self._continued
        self.bytes += length
        self.rows += rows

    def continue_files(self, files: Iterable[str]) -> None:
        """Account for files that the batch continues with, instead of those named before."""
        self._continued = frozenset(files)
        self._only_continued = len(self._continued - self._files)

    def add(self, other: BatchBudget) -> None:
        """Account for everything that `other` has taken."""
        self._files |= other._files
        self._only_continued = len(self._continued - self._files)
        self.bytes += other.bytes
        self.rows += other.rows

    def lift(self, limits: BatchLimits, *, everything: bool = False) -> None:
        """Change the limits, keeping what has been taken (Trigger.Once ignores every limit)."""
        self.limits = limits
        # Planning sets it again where these limits have a target.
        self.enough = None
        self.takes_everything = everything


def _left(limit: int | None, taken: int) -> int | None:
    return None if limit is None else max(0, limit - taken)
