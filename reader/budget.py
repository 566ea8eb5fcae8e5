"""Counts what a task has spent of the budget of its part."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..checkpoint_meta.documents.checkpoint import PartBudget


class RemainingBudget:
    """The rest of one part's budget. Shared by all readers of one task."""

    def __init__(
        self, budget: PartBudget | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Without a budget nothing is ever spent."""
        limits = budget or PartBudget()
        self.rows, self.bytes, self.files = limits.rows, limits.bytes, limits.files
        """Rows, stored bytes and files that may still be read; None means no limit."""
        self.begun_files = 0
        """Files, and members of archives, that were begun."""
        self.is_limited = budget is not None
        self._clock = clock
        self.seconds = limits.seconds
        self._end = None if limits.seconds is None else clock() + limits.seconds
        self._has_begun = False
        self._rows_read = self._records_read = 0

    def take(self, rows: int, stored: int = 0, records: int | None = None) -> None:
        """Account for records that were read.

        `records` is the number of records that these rows were filtered from.
        """
        self._has_begun = True
        self._rows_read += rows
        self._records_read += rows if records is None else records
        self.rows = None if self.rows is None else self.rows - rows
        self.bytes = None if self.bytes is None else self.bytes - stored

    def begin_file(self, files: int = 1) -> None:
        """Account for a file or a member of an archive, before anything of it is read."""
        self.begun_files += files
        self.files = None if self.files is None else max(0, self.files - files)

    def has_room(self, rows: int, stored: int = 0) -> bool:
        """True if so many rows more fit, and so many stored bytes."""
        return (self.rows is None or rows <= self.rows) and (
            self.bytes is None or stored <= self.bytes
        )

    @property
    def records_left(self) -> int | None:
        """Return about how many records give the rows that may still be read; None: no limit."""
        if self.rows is None:
            return None
        # After the last one, the first that is not read any more says where the rest begins.
        if self._records_read == self._rows_read:
            return max(1, self.rows)
        if not self._rows_read:
            return max(self.rows, self._records_read)
        # A little less than by their share so far: what is too much would be decoded twice.
        return max(1, self.rows * self._records_read * 9 // (self._rows_read * 10))

    @property
    def has_begun(self) -> bool:
        """True once a record was read."""
        return self._has_begun

    @property
    def is_spent(self) -> bool:
        """True if the part ends at the next record border."""
        if not (self.is_limited and self._has_begun):
            return False
        is_late = self._end is not None and self._clock() >= self._end
        return (
            is_late
            or (self.rows is not None and self.rows <= 0)
            or (self.bytes is not None and self.bytes <= 0)
        )
