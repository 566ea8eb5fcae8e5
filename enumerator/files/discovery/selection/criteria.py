"""What is chosen of all that lies below the loaded paths: by place, then by size and times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .....checkpoint_meta.storage.written_values import glob_pattern
from .....errors import OptionError, SourceUnavailable
from .event_times import EventTimes
from .name_patterns import IGNORED, NameRule, ReadyMarker

TAKEN = ""
OUTSIDE = "outside"
"""Not what the path names, hence neither taken nor skipped."""


@dataclass(frozen=True, slots=True)
class PlaceBounds:
    """The start is taken, the end is not. None does not restrict.

    A number is an event time in microseconds; text is compared with the path below the loaded path.
    """

    start: int | str | None
    end: int | str | None
    times: EventTimes

    def classify(self, paths: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For each file whether it is before the start, and whether it is at or after the end.

        Raises:
            SourceUnavailable: a path names no time, and a bound is one.
        """
        start, end = self.start, self.end
        before = [start is not None and self._is_before(path, start) for path in paths]
        after = [end is not None and not self._is_before(path, end) for path in paths]
        return np.array(before, np.bool_), np.array(after, np.bool_)

    def excludes(self, directory: str) -> str:
        """The option that leaves out all files that can be below a directory; else empty."""
        below = f"{self.times.below(directory)}/"
        span = self.times.span_below(below)
        start, end = self.start, self.end
        if isinstance(start, str):
            is_before = below < start and not start.startswith(below)
        else:
            # A directory that does not say its time may hold any.
            is_before = start is not None and span is not None and span[1] < start
        if isinstance(end, str):
            is_after = below >= end
        else:
            is_after = end is not None and span is not None and span[0] >= end
        return "startAt" if is_before else "endAt" if is_after else ""

    def names_below(self, base: str) -> tuple[str, str]:
        """The start and the end as names below `base`, empty without one.

        Only where names below `base`, as paths of files begin, are what is compared.
        """
        if self.times.below(f"{base}/a") != "a":
            return "", ""
        start, end = (one if isinstance(one, str) else "" for one in (self.start, self.end))
        return start, end

    def takes(self, path: str) -> bool:
        """True for a file between the bounds.

        Raises:
            SourceUnavailable: the path names no time, and a bound is one.
        """
        before, after = self.classify([path])
        return not (before[0] or after[0])

    def _is_before(self, path: str, bound: int | str) -> bool:
        if isinstance(bound, str):
            return self.times.below(path) < bound
        return self.times.of(path) < bound


SINK_LOG: Final = "_spark_metadata"
"""The directory in which Spark's file sink lists the files that it has committed."""


def _listed_by_a_log(base: str) -> OptionError:
    return OptionError(
        "a directory that Spark's file sink writes to is not read",
        base,
        f"{SINK_LOG}, the list of the files that count; others are left by attempts that failed",
        "a directory in which each file counts",
        "Let the query write a table, or forward its rows otherwise. If it has ended, delete the "
        f"files that {SINK_LOG} does not list, and then {SINK_LOG}.",
    )


class Scope:
    """Decides by names alone. A level counts the directories between the base and a name."""

    def __init__(
        self,
        base: str,
        wildcards: Sequence[str],
        names: NameRule,
        *,
        nested: bool,
        place: PlaceBounds | None = None,
    ) -> None:
        """`nested` False enters no directories but partitions (`key=value`)."""
        self.base = base
        self.place = place
        self.names = names
        self._nested = nested
        self._wildcards = [glob_pattern(part) for part in wildcards]
        self.depth = len(self._wildcards)
        """Levels that wildcards cover; below them is a whole tree."""
        self.fixed_start = re.split(r"[*?\[{\\]", wildcards[-1])[0] if wildcards else ""
        """How every name begins that the last wildcard matches."""

    def enters(self, name: str, level: int, path: str = "") -> str:
        """`TAKEN`, or why what lies below a directory of this name is not looked at.

        With its `path`, as the paths of files begin, also if all below is out of bounds.
        """
        if level < self.depth and not self._wildcards[level].fullmatch(name):
            return OUTSIDE
        # As in Spark, the log counts in the directory that is loaded.
        if name == SINK_LOG and not level and not self.depth:
            raise _listed_by_a_log(self.base)
        if not self.names.enters(name):
            return "ignoredPathSegmentRegex"
        # As in Spark, partitions are entered anyway.
        if level >= self.depth and not self._nested and "=" not in name:
            return "recursiveFileLookup"
        return self.place.excludes(path) if path and self.place is not None else TAKEN

    def reads(self, name: str, level: int) -> str:
        """`TAKEN`, or why a file of this name is not data."""
        if level < self.depth and not (
            # The last wildcard may name files; those before it name directories.
            level == self.depth - 1 and self._wildcards[level].fullmatch(name)
        ):
            return OUTSIDE
        return self.names.refusal(name)

    def covers(self, path: str, *, file: bool) -> bool:
        """True if a pass over this scope comes to `path` (or to all below it) by itself."""
        if path == self.base:
            return not self.depth
        if not path.startswith(self.base.rstrip("/") + "/"):
            return False
        *folders, leaf = path[len(self.base) :].strip("/").split("/")
        # Without their paths: each file is held against the bounds by itself.
        if any(self.enters(name, level) for level, name in enumerate(folders)):
            return False
        if file:
            return self.reads(leaf, len(folders)) == TAKEN
        return self.enters(leaf, len(folders)) == TAKEN and len(folders) + 1 >= self.depth


REASONS = (
    "",
    "empty",
    "minFileSize",
    "modifiedAfter",
    "modifiedBefore",
    "maxFileAge",
    "settleTime",
    "readyMarker",
    "startAt",
    "endAt",
)
"""By code; 0 is taken."""

FROM_FUTURE = "modifiedInFuture"
"""A file that settles only when its time has come, since its store knows no other time."""

CHANGED = "onOverwrite"
"""A known file that is there in another version, which is not read."""

UNFINISHED = ("settleTime", "readyMarker", FROM_FUTURE)
"""Reasons for which a file is not taken yet."""

EMPTY, SETTLING, UNMARKED = 1, REASONS.index("settleTime"), REASONS.index("readyMarker")


@dataclass(frozen=True, slots=True)
class Criteria:
    """Sizes in bytes, times and ages in microseconds; None does not restrict."""

    min_size: int = 0
    modified_after: int | None = None
    """Files that were modified later are taken, as in Spark."""

    modified_before: int | None = None
    max_age: int | None = None
    settle_time: int = 0
    """Age at which a file is believed to be finished."""

    place: PlaceBounds | None = None
    """Files between these bounds are taken."""

    def classify(
        self,
        paths: Sequence[str],
        sizes: NDArray[np.int64],
        modified: NDArray[np.int64],
        now: int,
        changed: NDArray[np.int64] | None = None,
    ) -> NDArray[np.uint8]:
        """For each file the code of the first reason to leave it out.

        Args:
            paths: of the files.
            sizes: in bytes.
            modified: microseconds since the epoch.
            now: microseconds since the epoch.
            changed: when the file system last changed each file, which no program can set.

        Raises:
            SourceUnavailable: times are asked for that the file system or a path does not have.
        """
        if self._asks_time and bool((modified < 0).any()):
            raise SourceUnavailable(
                "files cannot be selected by modification time",
                "",
                "a file system without modification times",
                "no modifiedAfter, modifiedBefore, maxFileAge or settleTime there",
                "Select files by name, with pathGlobFilter or wildcards in the path.",
            )
        rules = [(sizes == 0, EMPTY)]
        if self.min_size > 1:
            rules.append((sizes < self.min_size, REASONS.index("minFileSize")))
        if self.modified_after is not None:
            rules.append((modified <= self.modified_after, REASONS.index("modifiedAfter")))
        if self.modified_before is not None:
            rules.append((modified >= self.modified_before, REASONS.index("modifiedBefore")))
        if self.place is not None:
            before, after = self.place.classify(paths)
            rules += [(before, REASONS.index("startAt")), (after, REASONS.index("endAt"))]
        if self.max_age is not None:
            rules.append((now - modified > self.max_age, REASONS.index("maxFileAge")))
        if self.settle_time:
            settling = now - modified < self.settle_time
            if changed is not None:
                # A modification time in the future says nothing of when a writer was at work.
                settling &= (modified <= now) | (now - changed < self.settle_time)
            rules.append((settling, SETTLING))
        codes = np.zeros(len(sizes), np.uint8)
        # Backwards, so that the first reason overwrites the others.
        for applies, code in reversed(rules):
            codes[applies] = code
        return codes

    @property
    def _asks_time(self) -> bool:
        bounds = (self.modified_after, self.modified_before, self.max_age)
        return any(bound is not None for bound in bounds) or self.settle_time > 0


@dataclass(frozen=True, slots=True)
class FileRules:
    """All rules that decide whether a file below one loaded path is taken."""

    scope: Scope
    others: Sequence[Scope]
    """Scopes that are listed before this one: what they cover is theirs."""

    criteria: Criteria
    marker: ReadyMarker | None
    wants_versions: bool
    """True if known files are taken as well, in any version."""

    def refusal(self, name: str, level: int, *, is_base: bool) -> str:
        """Return why a file is left out by its name; one loaded by its path may be hidden."""
        if is_base:
            return TAKEN if self.scope.names.matches(name) else "pathGlobFilter"
        if self.marker is not None and self.marker.is_marker(name):
            return "isMarker"
        return self.scope.reads(name, level)

    def is_of_another(self, path: str) -> bool:
        """Return True if the file comes with a path that is listed before."""
        return any(other.covers(path, file=True) for other in self.others)


@dataclass(frozen=True, slots=True)
class FileSelection:
    """By default all files that are not hidden and not empty."""

    ignored: str = IGNORED
    """Expression found in names to be passed over."""

    glob: str | None = None
    """Pattern that a file's name has to match."""

    nested: bool = True
    """False enters no directories but partitions."""

    criteria: Criteria = field(default_factory=Criteria)
    ready_marker: str = ""
    """See `ReadyMarker`; empty takes files without."""

    written: Sequence[str] = field(default=(), repr=False)
    """Resolved local directories into which the query writes: no link may lead there. They do not
    decide which files are found."""
