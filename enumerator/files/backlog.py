"""What discovery has found: how much is in no batch yet, how old it is, and how the passes went."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ...checkpoint_meta.files.file_columns import numbers_in
from ...checkpoint_meta.storage.storage_errors import PATIENCE, delays, is_final
from ...errors import FileChangedError, SluiceError, SourceUnavailable
from ..api import Journal
from .ledger.pending import PendingRanges

_EVERY = 1.0
"""Seconds for which the oldest file is taken for known: finding it costs a look at all."""

_FIRST_DELAY, _BACK_OFF_LIMIT = 0.6, 30.0
"""Shortest and longest delay between two tries of a failing listing, in seconds."""


class BacklogFigures:
    """The size and age of what is in no batch yet. Call it under the coordinator's lock."""

    def __init__(self, pending: PendingRanges, clock: Callable[[], float]) -> None:
        self._pending = pending
        self._clock = clock
        self._looked_at = (-_EVERY, -1)
        """When, and how many ranges there were."""
        self._files = 0
        self._oldest: int | None = None

    def report(self) -> Mapping[str, Any]:
        """Return what Spark's progress events show of it; at most a second old."""
        count, now = len(self._pending), time.monotonic()
        then, before = self._looked_at
        # Figures may be a second old, but not the answer whether there is a backlog at all.
        if now - then >= _EVERY or (count == 0) != (before == 0):
            self._look()
            self._looked_at = (now, count)
        report: dict[str, Any] = {
            # Counted up to a second ago, and there are never more files than ranges.
            "backlogFiles": min(self._files, count),
            "backlogSplits": count,
            "backlogBytes": self._pending.bytes,
        }
        if count and self._oldest is not None:
            age = max(0.0, self._clock() - self._oldest / 1_000_000)
            report["backlogOldestSeconds"] = round(age, 1)
        return report

    def _look(self) -> None:
        ranges = self._pending.frozen()
        oldest = [int(times.min()) for batch in ranges if len(times := _known_times(batch))]
        self._oldest = min(oldest, default=None)
        self._files = sum(map(_files_in, ranges))


def _known_times(ranges: pa.RecordBatch) -> Any:
    # A file system without modification times gives -1.
    modified = numbers_in(ranges, "modified")
    return modified[modified >= 0]


def _files_in(ranges: pa.RecordBatch) -> int:
    """Files, of which several ranges may have been sent back."""
    whole = (numbers_in(ranges, "start") == 0) & (
        numbers_in(ranges, "end") == numbers_in(ranges, "size")
    )
    parts = ranges.filter(pa.array(~whole))
    return int(whole.sum()) + len(parts.column("path").unique())


class ListingStats:
    """The durations and failures of listings. Call it under the coordinator's lock."""

    def __init__(self, journal: Journal, clock: Callable[[], float]) -> None:
        self._journal = journal
        self._clock = clock
        self._new = 0
        self._last: Mapping[str, Any] = {}
        self._failed = ""
        self._failures = self._in_a_row = 0
        self._began = time.monotonic()
        self._delays = delays(_FIRST_DELAY, _BACK_OFF_LIMIT)

    def found(self, new: int) -> None:
        """A part of a pass has brought so many files that were not known."""
        self._new += new

    def ended(self, seconds: float, skipped: Mapping[str, int]) -> None:
        """The pass has ended after so many seconds of work."""
        new, self._new = self._new, 0
        self._in_a_row, self._failed = 0, ""
        self._delays = delays(_FIRST_DELAY, _BACK_OFF_LIMIT)
        self._last = {"endedAt": int(self._clock()), "seconds": round(seconds, 3), "new": new}
        # An idle query lists all the time: only what has found something is worth a line.
        log = self._journal.info if new else self._journal.debug
        log(
            "discovery", "a listing found %d new files in %.3f s, and skipped %d",
            new, seconds, sum(skipped.values()),
        )  # fmt: skip
        for reason, count in skipped.items():
            self._journal.debug("discovery", "skipped %d: %s", count, reason)

    def failed(self, error: BaseException | None, attempts: int, *, has_worked: bool) -> float:
        """The pass failed; seconds after which it is tried again.

        Args:
            error: what it failed with.
            attempts: failures in a row that are too many.
            has_worked: an error that is final at the first try may pass.

        Raises:
            SluiceError: it is not tried again; the error itself, or says what it was.
        """
        self._in_a_row += 1
        # Permissions and names are not repaired by waiting, unless they were right a moment ago.
        final = isinstance(error, FileChangedError) or (is_final(error) and not has_worked)
        # Who starts a query learns within a minute that the input is away.
        is_away = not has_worked and time.monotonic() - self._began > PATIENCE
        if error is not None and (final or is_away or self._in_a_row >= attempts):
            if isinstance(error, SluiceError):
                raise error
            raise SourceUnavailable(
                "discovery failed" + ("" if final else f" {self._in_a_row} times in a row"),
                "",
                f"{type(error).__name__}: {error}",
                "a listing of the path",
                "Fix the cause and restart the query: it resumes from the same point.",
            ) from error
        delay = next(self._delays)
        self._new = 0
        self._failures += 1
        self._failed = f"{type(error).__name__}: {error}"
        self._journal.warning(
            "discovery", "a listing failed and will be retried in %.1f s: %s", delay, self._failed
        )
        return delay

    def report(self) -> Mapping[str, Any]:
        """Return what Spark's progress events show of the newest listing and of failed ones."""
        report: dict[str, Any] = {"lastListing": dict(self._last)} if self._last else {}
        if self._failed:
            report["listingError"] = self._failed
        return {**report, "failedListings": self._failures}
