"""Batches in the order of event time: when one may be planned, what it spans, who comes too late.

The first batch waits for the end of the first listing, and each later one for the end of a listing
that has found something: a listing brings files in the order of their names, and the earliest may
come last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import numpy as np
from typing_extensions import override

from ...checkpoint_meta.files.file_columns import splits_in
from ...checkpoint_meta.files.file_split import FileSplit
from ...errors import SourceUnavailable
from ..api import SplitEnumeratorContext
from ..batch_budget import BatchBudget
from .discovery.selection.event_times import FileTimes
from .ledger.ledger import NewFiles
from .ledger.new_files import filter_rows

_NAMED: Final = 10
"""Late files, and those without a time, that are named in the progress and in the state: the
newest."""


class OnLateFile(Enum):
    """The treatment of a file that is found when its place in the order has passed."""

    READ = "read"
    """It comes next, in a batch of its own time."""

    QUARANTINE = "quarantine"
    """It is not read until a person orders it."""

    FAIL = "fail"
    """Stop the query with an error."""


class OnMissingTime(Enum):
    """The treatment of a file of which neither path nor statistics say a time."""

    FAIL = "fail"
    """Stop the query with an error."""

    MTIME = "mtime"
    """The modification time serves; no other file is late because of it."""


@dataclass(frozen=True)
class EventTimePolicy:
    """The times of files, and what they decide."""

    times: FileTimes
    skew: int
    """Most microseconds between the first and the last file of a batch."""

    on_late: OnLateFile = OnLateFile.READ


class BatchOrder:
    """For orders that may begin with any file; the base of the one that may not."""

    is_waiting = False
    """True while nothing may be planned, since something earlier may still be found."""

    is_cut_when_asked = False
    """True if no batch is decided before Spark asks for it."""

    @property
    def is_ready(self) -> bool:
        """False while a question of Spark's waits for what other sources say."""
        return True

    @property
    def wants_checkpoint(self) -> bool:
        """True to request an empty checkpoint."""
        return False

    def on_found(self, listing: NewFiles, *, ended: bool) -> NewFiles:
        """Called with all that a listing finds, before it becomes pending; what of it does.

        Args:
            listing: one portion.
            ended: it is the last one of its listing.
        """
        return listing

    def accepts(self, split: FileSplit, budget: BatchBudget) -> bool:
        """True if `split`, the next in order, may be in the batch that is being planned."""
        return True

    def on_taken(self, split: FileSplit) -> None:
        """`split` is in the batch that is being planned."""

    def cut(self, checkpoint_id: int) -> None:
        """Put what was planned into this checkpoint; another batch begins."""

    def aborted(self, checkpoint_id: int) -> None:
        """Put what was in this checkpoint, the newest, into the batch that is being planned."""

    def completed(self, checkpoint_id: int) -> None:
        """This checkpoint and those before it are never taken back."""

    def cursors(self) -> Mapping[str, Any]:
        """Return what has to survive a restart, as JSON values; may be empty."""
        return {}

    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        """Resume from what `cursors` gave at the checkpoint that was restored."""

    def report(self) -> Mapping[str, Any]:
        """For Spark's progress, as JSON values."""
        return {}


class EventTimeBatches(BatchOrder):
    """Under the coordinator's lock."""

    def __init__(self, policy: EventTimePolicy, context: SplitEnumeratorContext[FileSplit]) -> None:
        self._policy = policy
        self._context = context
        self.is_waiting = True
        self._span: tuple[int, int] | None = None
        """First and last event time of the batch that is being planned."""
        self._ended: list[str] = []
        """Files of which the end is in the batch that is being planned."""
        self._cuts: dict[int, tuple[tuple[int, int] | None, list[str]]] = {}
        """The same two of checkpoints that may be taken back."""
        self._reached: int | None = None
        """The latest event time that was ever taken."""
        self._late = 0
        self._late_names: deque[str] = deque(maxlen=_NAMED)
        self._timeless = 0
        self._timeless_names: deque[str] = deque(maxlen=_NAMED)

    @override
    def on_found(self, listing: NewFiles, *, ended: bool) -> NewFiles:
        if ended:
            self.is_waiting = False
        # Listings go by name, so a later portion may bring an earlier time.
        elif listing.ranges.num_rows:
            self.is_waiting = True
        self._count_timeless(listing)
        by_row = self._late_in(listing)
        late = list(by_row.values())
        if not late:
            return listing
        self._late += len(late)
        self._late_names.extend(split.file.path for split in late)
        self._context.journal.warning(
            "discovery", "%d files arrived too late for their event time: %s",
            len(late), "; ".join(map(self._described, late[:_NAMED])),
        )  # fmt: skip
        if self._policy.on_late is OnLateFile.FAIL:
            raise self._too_late(late[0])
        if self._policy.on_late is OnLateFile.READ:
            return listing
        self._context.quarantine_splits({split.split_id: self._described(split) for split in late})
        in_time = np.ones(listing.ranges.num_rows, np.bool_)
        in_time[list(by_row)] = False
        return replace(listing, ranges=filter_rows(listing.ranges, in_time))

    def _count_timeless(self, listing: NewFiles) -> None:
        # Otherwise a file without a time has failed the query before.
        if not self._policy.times.may_be_missing:
            return
        files = (split.file for split in splits_in(listing.ranges))
        paths = [file.path for file in files if self._policy.times.find(file) is None]
        if paths:
            self._timeless += len(paths)
            self._timeless_names.extend(paths)
            self._context.journal.warning(
                "discovery", "%d files without an event time are ordered by modification time: %s",
                len(paths), "; ".join(paths[:_NAMED]),
            )  # fmt: skip

    def _late_in(self, listing: NewFiles) -> Mapping[int, FileSplit]:
        """Return files of `listing`, which is in order, that an earlier batch would have had.

        By their rows. What replaces rows comes when these are there: it is never late, and what it
        replaces would otherwise leave the table without it.
        """
        if self._reached is None:
            return {}
        late: dict[int, FileSplit] = {}
        for at in range(listing.ranges.num_rows):
            # One at a time: mostly the first file is in time, and no other has to be looked at.
            (split,) = splits_in(listing.ranges.slice(at, 1))
            if self._time(split) >= self._reached - self._policy.skew:
                break
            if not split.replaces:
                late[at] = split
        return late

    def _described(self, split: FileSplit) -> str:
        assert self._reached is not None
        return (
            f"a file of {shown_time(self._time(split))} came after files of "
            f"{shown_time(self._reached)} were taken: {split.file.path}"
        )

    def _too_late(self, split: FileSplit) -> SourceUnavailable:
        assert self._reached is not None
        return SourceUnavailable(
            "a file arrived too late for its event time",
            split.file.path,
            f"a file of {shown_time(self._time(split))}",
            f"none before {shown_time(self._reached - self._policy.skew)}: files of "
            f"{shown_time(self._reached)} were taken",
            "Move the file away, or set onLateFile to read (it comes next) or quarantine.",
        )

    def _time(self, split: FileSplit) -> int:
        time = self._policy.times.find(split.file)
        return split.file.modified if time is None else time

    @override
    def accepts(self, split: FileSplit, budget: BatchBudget) -> bool:
        # The first file of a batch is always in: any span begins with one.
        if self._span is None or budget.takes_everything:
            return True
        first, last = _widened(self._span, self._time(split))
        return last - first <= self._policy.skew

    @override
    def on_taken(self, split: FileSplit) -> None:
        time = self._time(split)
        self._span = _widened(self._span, time)
        # Once this checkpoint is complete, the time of the file is not needed again.
        if split.end == split.file.size:
            self._ended.append(split.file.path)
        # A modification time does not count, so that no other file is late because of it.
        if self._policy.times.find(split.file) is not None:
            self._reached = time if self._reached is None else max(self._reached, time)

    @override
    def cut(self, checkpoint_id: int) -> None:
        self._cuts[checkpoint_id] = self._span, self._ended
        self._span, self._ended = None, []

    @override
    def aborted(self, checkpoint_id: int) -> None:
        span, ended = self._cuts.pop(checkpoint_id, (None, []))
        self._ended += ended
        for time in span or ():
            self._span = _widened(self._span, time)

    @override
    def completed(self, checkpoint_id: int) -> None:
        for at in [at for at in self._cuts if at <= checkpoint_id]:
            self._policy.times.forget(self._cuts.pop(at)[1])

    @override
    def cursors(self) -> Mapping[str, Any]:
        if self._reached is None and not self._timeless:
            return {}
        position: dict[str, Any] = {"reached": self._reached, "late": self._late}
        position["lateFiles"] = list(self._late_names)
        if self._timeless:
            position |= {"timeless": self._timeless, "timelessFiles": list(self._timeless_names)}
        if self._policy.times.longest:
            position["longest"] = self._policy.times.longest
        return position

    @override
    def resume_from(self, cursors: Mapping[str, Any]) -> None:
        if cursors:
            self._reached, self._late = cursors["reached"], cursors["late"]
            self._late_names.extend(cursors["lateFiles"])
            # Written only where there were such files.
            self._timeless = cursors.get("timeless", 0)
            self._timeless_names.extend(cursors.get("timelessFiles", ()))
            times = self._policy.times
            times.longest = max(times.longest, cursors.get("longest", 0))

    @override
    def report(self) -> Mapping[str, Any]:
        cursors = self.cursors()
        return {"eventTime": event_time_figures(cursors)} if cursors else {}


def event_time_figures(cursors: Mapping[str, Any]) -> dict[str, Any]:
    """Return how far a query has come, from what its checkpoints say."""
    figures: dict[str, Any] = {
        "reached": None if cursors["reached"] is None else shown_time(cursors["reached"]),
        "lateFiles": cursors["late"],
        "newestLateFiles": list(cursors["lateFiles"]),
    }
    if "timeless" in cursors:
        figures["filesWithoutEventTime"] = cursors["timeless"]
        figures["newestFilesWithoutEventTime"] = list(cursors["timelessFiles"])
    if "longest" in cursors:
        figures["longestFileSeconds"] = cursors["longest"] / 1_000_000
    return figures


def _widened(span: tuple[int, int] | None, time: int) -> tuple[int, int]:
    return (time, time) if span is None else (min(span[0], time), max(span[1], time))


def shown_time(time: int) -> str:
    """An event time for people."""
    return f"{np.datetime_as_string(np.datetime64(time, 'us'), unit='s')}Z"
