"""Judges names that a local listing has found: known, left out or taken; a stat for the last two.

However many symbolic links lead to a file, it is read under one name.
"""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .....checkpoint_meta.storage.urls import written_path
from .....errors import OptionError, SourceUnavailable
from ..api import FoundFiles, KnownFiles, SkipCounter, SkippedFile
from ..selection.criteria import (
    CHANGED,
    OUTSIDE,
    REASONS,
    SETTLING,
    TAKEN,
    UNMARKED,
    FileRules,
    Scope,
)
from .listing_cache import Record, SkipCache, Trail, times_of

_STILL = 600_000_000_000
"""A file that was not touched for so long, in nanoseconds, is not about to be written."""

_NAMES_KEPT = 20


@dataclass(slots=True, eq=False)
class Visit:
    """One pass's knowledge of one directory."""

    path: str
    status: os.stat_result
    level: int
    is_base: bool = field(default=False, kw_only=True)
    """True where the loaded path is a file in it."""

    record_before: Record | None = field(default=None, kw_only=True)
    read_at: int = 0
    is_stable: bool = False
    """True as long as nothing was found that the next pass has to see again."""

    files: int = 0
    """Names in it that were looked at."""

    folders: list[tuple[str, Trail]] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    names: list[SkippedFile] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        """What the paths of its files begin with."""
        return self.path.rstrip("/") + "/"

    def leave_out(self, name: str, reason: str) -> None:
        """Permanently, or until the next pass that trusts nothing."""
        self.counts[reason] += 1
        if len(self.names) < _NAMES_KEPT:
            self.names.append(SkippedFile(written_path(os.path.join(self.path, name)), reason))

    def record(self) -> Record:
        """To be trusted next time."""
        counts, names = self.counts, tuple(self.names)
        return Record(times_of(self.status), tuple(self.folders), self.again, counts, names)


class Leaves(NamedTuple):
    """Some names in a directory that are no directories."""

    visit: Visit
    names: list[str]
    is_last: bool
    refused: Sequence[tuple[str, str]] = ()
    """Directories in it that are not entered, and why."""


class Links:
    """The symbolic links that are followed, as seen from all that is listed."""

    def __init__(self, scopes: Sequence[Scope], written: Sequence[str] = ()) -> None:
        """`written` are the resolved directories into which the query writes."""
        self._scopes, self._written = scopes, written

    def is_found_by_itself(self, target: str, *, file: bool) -> bool:
        """True if what a link leads to is come to anyway, under its own name."""
        for scope in self._scopes:
            # The loaded path may itself be reached by a link.
            base = os.path.realpath(scope.base)
            if is_within(target, base):
                named = os.path.join(scope.base, os.path.relpath(target, base))
                if scope.covers(os.path.normpath(named), file=file):
                    return True
        return False

    def trail_into(self, path: str, directory: str, base: str, trail: Trail) -> Trail | None:
        """The trail below the link `path` to a directory; None if it is not followed.

        Raises:
            SourceUnavailable: it leads in a circle.
        """
        target = os.path.realpath(path)
        above = (os.path.realpath(base), os.path.realpath(directory), *trail)
        if any(is_within(place, target) for place in above):
            raise SourceUnavailable(
                "symbolic links form a cycle",
                path,
                f"a link to {target}, which contains the link",
                "links to targets outside the directories that contain the links",
                "Remove the link, or give it a hidden name, such as one that begins with a dot.",
            )
        if self.is_found_by_itself(target, file=False):
            return None
        for place in self._written:
            if is_within(target, place) or is_within(place, target):
                raise OptionError(
                    "a link below the input path leads to a directory of the query's own files",
                    path,
                    f"a link to {target}, which overlaps {place}",
                    "links to other directories, since these files would be read as input",
                    "Remove the link, or give it a hidden name, such as one that begins with a "
                    "dot.",
                )
        return (*trail, target)


def is_within(path: str, directory: str) -> bool:
    """True if `path` is `directory` or below it."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


class LocalFiles:
    """The judge of one loaded path."""

    def __init__(self, rules: FileRules, links: Links) -> None:
        self._rules = rules
        self._links = links
        self._left_out = SkipCache()

    def forget(self) -> None:
        """Look at everything again."""
        self._left_out = SkipCache()

    def classify(
        self,
        pieces: Iterable[Leaves],
        ledger: KnownFiles,
        skips: SkipCounter,
        *,
        counts_changed: bool = False,
    ) -> FoundFiles:
        """The files that are taken; the others are counted, known ones if they have changed."""
        paths: list[str] = []
        leaves: list[str] = []
        visits: list[Visit] = []
        ends: list[int] = []
        for visit, names, _, refused in pieces:
            paths += _written(visit.prefix, names)
            leaves += names
            visits.append(visit)
            visit.files += len(names)
            ends.append(len(leaves))
            for name, reason in refused:
                visit.leave_out(name, reason)
                skips.add(os.path.join(written_path(visit.path), name), reason)

        def found(at: int) -> tuple[str, Visit, str]:
            # Most are known, and an object for each takes longer than to look for all of them.
            return paths[at], visits[bisect_right(ends, at)], leaves[at]

        mask = ledger.are_known(paths)
        if counts_changed and not self._rules.wants_versions:
            again = map(found, np.flatnonzero(mask).tolist())
            self._count_changed(again, ledger, skips)
        wanted = range(len(paths)) if self._rules.wants_versions else np.flatnonzero(~mask).tolist()
        entries = [
            _Found(*one, is_known=bool(mask[at]), status=status)
            for at, one in zip(wanted, map(found, wanted), strict=True)
            if self._is_wanted(*one, skips) and (status := self._status(*one[1:])) is not None
        ]
        files = self._taken(entries, skips)
        skips.saw(paths, mask, files.paths)
        return files

    def _count_changed(
        self, again: Iterable[tuple[str, Visit, str]], ledger: KnownFiles, skips: SkipCounter
    ) -> None:
        files = [
            _Found(path, visit, name, is_known=True, status=status)
            for path, visit, name in again
            if (status := self._status(visit, name)) is not None
        ]
        sizes, modified = _sizes_and_times(files)
        _, changed = ledger.compare(FoundFiles([one.path for one in files], sizes, modified))
        for at in np.flatnonzero(changed).tolist():
            one = files[at]
            one.visit.leave_out(one.name, CHANGED)
            skips.add(one.path, CHANGED)

    def _is_wanted(self, path: str, visit: Visit, name: str, skips: SkipCounter) -> bool:
        reason = self._rules.refusal(name, visit.level, is_base=visit.is_base)
        if reason == TAKEN and self._rules.is_of_another(path):
            reason = OUTSIDE
        if reason == TAKEN and len(self._left_out):
            reason = REASONS[self._left_out.get(path)]
        if reason == TAKEN:
            return True
        if reason != OUTSIDE:
            visit.leave_out(name, reason)
            skips.add(path, reason)
        return False

    def _status(self, visit: Visit, name: str) -> os.stat_result | None:
        path = visit.prefix + name
        try:
            # One call for what is no link: on a network file system each call is a round trip.
            status = os.lstat(path)
            if not stat.S_ISLNK(status.st_mode) or visit.is_base:
                # A loaded path may be a link itself, and its target is what is read.
                return os.stat(path) if visit.is_base else status
            if self._links.is_found_by_itself(os.path.realpath(path), file=True):
                return None
            return os.stat(path)
        except FileNotFoundError:
            # Renamed or deleted since, or a link that leads nowhere yet.
            visit.is_stable = False
            return None

    def _taken(self, entries: Sequence[_Found], skips: SkipCounter) -> FoundFiles:
        sizes, modified = _sizes_and_times(entries)
        changed = np.fromiter((one.status.st_ctime_ns // 1000 for one in entries), np.int64)
        now = time.time_ns()
        paths = [one.path for one in entries]
        codes = self._rules.criteria.classify(paths, sizes, modified, now // 1000, changed)
        keep: list[int] = []
        for at, (one, code) in enumerate(zip(entries, codes.tolist(), strict=True)):
            # What is known is not judged again, but a version that is still being written has to
            # wait.
            if one.is_known and code != SETTLING:
                keep.append(at)
            elif code or not self._is_ready(one):
                self._leave_out(one, code or UNMARKED, now, skips)
            else:
                # The pass may fail before the file is known: then the next one must find it again.
                one.visit.is_stable = False
                keep.append(at)
        return FoundFiles([entries[at].path for at in keep], sizes[keep], modified[keep])

    def _is_ready(self, one: _Found) -> bool:
        marker = self._rules.marker
        return marker is None or os.path.lexists(os.path.join(one.visit.path, marker.of(one.name)))

    def _leave_out(self, one: _Found, code: int, now: int, skips: SkipCounter) -> None:
        skips.add(one.path, REASONS[code])
        # Tools that copy set the modification time back, which moves the change time.
        touched = max(one.status.st_mtime_ns, one.status.st_ctime_ns)
        if code == SETTLING or (code != UNMARKED and now - touched < _STILL):
            skips.waits(one.path)
            one.visit.again.append(one.name)
            return
        # A marker cannot come without a trace in its directory.
        one.visit.leave_out(one.name, REASONS[code])
        if code == UNMARKED:
            skips.waits(one.path)
        else:
            self._left_out.add(one.path, code)


class _Found(NamedTuple):
    path: str
    visit: Visit
    name: str
    is_known: bool
    status: os.stat_result


def _sizes_and_times(entries: Sequence[_Found]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes = np.fromiter((one.status.st_size for one in entries), np.int64)
    return sizes, np.fromiter((one.status.st_mtime_ns // 1000 for one in entries), np.int64)


def _written(directory: str, names: Sequence[str]) -> list[str]:
    paths = [directory + name for name in names]
    try:
        # One attempt for thousands of paths: names that are not UTF-8 are rare.
        "".join(paths).encode()
    except UnicodeEncodeError:
        return [written_path(path) for path in paths]
    return paths
