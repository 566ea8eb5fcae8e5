"""Plans the parts of readers under limits that only they keep: rows, seconds, files in archives.

A batch gets about twice the bytes that a limit takes by what readers have reported, so that each
reader has more than it may read: its budget ends the part. What it leaves counts in the next plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...checkpoint_meta.documents.checkpoint import PartBudget
from ...checkpoint_meta.files.file_split import FileSplit, FileVersion
from ..batch_budget import UNLIMITED, BatchBudget, BatchLimits

_GENEROUS = 2.0
"""Times as many bytes as a limit is expected to take."""

_FIRST_BYTES, _FIRST_SPEED = {"rows": 32.0, "files": 65_536.0}, 10_000_000.0
"""Bytes of a row and of a file, and bytes that one reader reads in a second, before the first
report."""

_KEPT, _LEAST_SECONDS = 0.25, 1.0
"""What was known counts for a quarter of the seconds of a new batch, but for one second at least: a
batch of one small file says little of the speed."""

_FIGURES = ("bytes", "rows", "files", "microseconds")


@dataclass(frozen=True)
class _Part:
    """One reader's part of one checkpoint."""

    rest: Mapping[str, float]
    """Path -> bytes that its budget is expected to leave, in the order in which they are read."""

    has_archives: bool


class PartPlans:
    """The parts of readers, and what they are expected to leave. Under the coordinator's lock."""

    def __init__(
        self, cores: int, is_archive: Callable[[FileVersion], bool], *, whole_files: bool = False
    ) -> None:
        """`cores`: how many tasks run at once, as far as is known."""
        self._cores, self._is_archive = cores, is_archive
        self._whole_files = whole_files
        self._earlier = dict.fromkeys(_FIGURES, 0.0)
        """What readers of complete batches have reported, most of it from the last one."""
        self._newest = dict.fromkeys(_FIGURES, 0.0)
        """What was reported since."""
        self._limits = UNLIMITED
        """Those that readers keep: that on files as long as there are archives, or else we do."""
        self._most_files: int | None = None
        """The limit on files, also where the plan keeps it."""
        self._has_archives = False
        """An archive was taken since the last cut, or comes next."""
        self._open: dict[int, list[FileSplit]] = {}
        """What was sent since the last cut."""
        self._cut: dict[int, dict[int, _Part]] = {}
        """Checkpoint -> reader -> its part."""

    # What readers report --------------------------------------------------------------------

    def learn(self, figures: Mapping[str, Any]) -> None:
        """One reader has read so much."""
        for name in _FIGURES:
            self._newest[name] += float(figures.get(name, 0))

    def _forget(self) -> None:
        """A batch has ended: what came before it counts for less from now on."""
        earlier, newest = self._earlier, self._newest
        if newest["bytes"] or newest["rows"]:
            weight = max(_KEPT * newest["microseconds"], _LEAST_SECONDS * 1_000_000)
            kept = min(1.0, weight / max(1.0, earlier["microseconds"]))
            self._earlier = {name: kept * earlier[name] + newest[name] for name in _FIGURES}
            self._newest = dict.fromkeys(_FIGURES, 0.0)

    def _reported(self, name: str) -> float:
        return self._earlier[name] + self._newest[name]

    def to_json(self) -> Mapping[str, float]:
        """Return what was learned, for a checkpoint; empty before anything was."""
        learned = {name: self._reported(name) for name in _FIGURES}
        return learned if learned["bytes"] else {}

    def restore(self, learned: Mapping[str, float]) -> None:
        """Continue with what `to_json` gave."""
        self._earlier |= {name: float(learned.get(name, 0.0)) for name in _FIGURES}

    def _bytes_of_one(self, name: str) -> float:
        """Bytes of a row, or of a file."""
        size, count = self._reported("bytes"), self._reported(name)
        return size / count if size and count else _FIRST_BYTES[name]

    # Plans ----------------------------------------------------------------------------------

    def limit(
        self,
        budget: BatchBudget,
        continuing: Collection[int],
        readers: int,
        first: FileSplit | None = None,
    ) -> bool:
        """Limit the bytes to be planned, `first` of all; False if nothing more is to be now."""
        self._most_files = budget.limits.files
        in_flight = (part for parts in self._cut.values() for part in parts.values())
        if self._has_archives or any(part.has_archives for part in in_flight):
            self._limits = budget.limits
        else:
            self._limits = replace(budget.limits, files=None)
            if first is not None:
                self._look_at(first, budget)
        budget.continue_files(file for reader in continuing for file in self._rest_of(reader))
        if not self.are_limited:
            return True
        # Before the first reports there is only a guess, and one batch made with it is enough.
        if self._cut and not self._reported("bytes"):
            return False
        wanted = _GENEROUS * self._expected(self._limits, readers) - self.left(continuing)
        budget.enough = max(1, math.ceil(wanted))
        # Where no reader continues, the next batch has something in any case.
        return (wanted > 0 or not continuing) and not budget.is_full

    @property
    def are_limited(self) -> bool:
        """True under limits that only readers can keep."""
        limits = self._limits
        return any(limit is not None for limit in (limits.rows, limits.seconds, limits.files))

    def _look_at(self, split: FileSplit, budget: BatchBudget) -> None:
        # Only readers can count the members of an archive.
        if budget.limits.files is not None and self._is_archive(split.file):
            self._limits, self._has_archives = budget.limits, True

    def _expected(self, limits: BatchLimits | PartBudget, readers: int) -> float:
        """Bytes that so many readers take under the limits."""
        size, seconds = self._reported("bytes"), self._reported("microseconds") / 1_000_000
        speed = size / seconds if size and seconds else _FIRST_SPEED
        return min(
            math.inf if limits.rows is None else limits.rows * self._bytes_of_one("rows"),
            math.inf if limits.files is None else limits.files * self._bytes_of_one("files"),
            math.inf if limits.seconds is None else limits.seconds * speed * readers,
            math.inf if limits.bytes is None else limits.bytes,
        )

    def is_enough(self, continuing: Collection[int], readers: int) -> bool:
        """True if what readers leave is expected to fill a batch."""
        is_known = bool(continuing) and self._reported("bytes") > 0
        return is_known and self.left(continuing) >= self._expected(self._limits, readers)

    def left(self, readers: Collection[int]) -> float:
        """Bytes that these are expected to leave, as far as each has time for them."""
        return sum(min(self._most_of_one, self.left_by(reader)) for reader in readers)

    @property
    def _most_of_one(self) -> float:
        return _GENEROUS * self._expected(BatchLimits(seconds=self._limits.seconds), 1)

    def took(self, split: FileSplit, budget: BatchBudget) -> None:
        """Note what one reader took: what it has no time for does not starve others."""
        self._look_at(split, budget)
        if budget.enough is not None:
            budget.enough += math.ceil(max(0.0, split.length - self._most_of_one))

    def left_by(self, reader: int) -> float:
        """Bytes that this reader is expected to leave."""
        return sum(self._rest_of(reader).values())

    def _rest_of(self, reader: int) -> Mapping[str, float]:
        part = self._newest_part(reader)
        return {} if part is None else part.rest

    def _newest_part(self, reader: int) -> _Part | None:
        parts = (self._cut[ref].get(reader) for ref in sorted(self._cut, reverse=True))
        return next((part for part in parts if part is not None), None)

    def _may_have_archives(self, reader: int) -> bool:
        part = self._newest_part(reader)
        return part is None or part.has_archives

    def readers_wanted(self, readers: int) -> int:
        """Return how many to ask for instead: each wave of tasks takes all of the seconds."""
        return readers if self._limits.seconds is None else min(readers, self._cores)

    def most_readers(self, readers: int) -> int:
        """Return how many of so many readers may have a part: each reads at least a row or file."""
        if self._limits.rows is not None and self._whole_files:
            return 1
        counted = (self._limits.rows, self._limits.files)
        return min([readers, *(limit for limit in counted if limit is not None)])

    def sent(self, assignment: Mapping[int, Sequence[FileSplit]]) -> None:
        """These are assigned."""
        for reader, splits in assignment.items():
            self._open.setdefault(reader, []).extend(splits)

    # Checkpoints ----------------------------------------------------------------------------

    def cut(
        self, checkpoint: int, readers: Sequence[int], continuing: Collection[int]
    ) -> dict[int, PartBudget]:
        """The budgets of these readers, which have parts in the checkpoint that is cut."""
        sent, self._open = self._open, {}
        files_of = {r: dict(self._rest_of(r) if r in continuing else {}) for r in readers}
        splits_of = {r: len(files_of[r]) + len(sent.get(r, ())) for r in readers}
        for reader, lengths in files_of.items():
            for split in sent.get(reader, ()):
                lengths[split.file.path] = lengths.get(split.file.path, 0.0) + split.length
        need = {r: sum(lengths.values()) for r, lengths in files_of.items()}
        with_archives = {r for r in continuing if self._may_have_archives(r)}
        if self._has_archives:
            with_archives |= {
                r for r, splits in sent.items() if any(self._is_archive(s.file) for s in splits)
            }
        limits = self._limits
        # Whole files may be longer than what was left of the limit.
        is_too_long = limits.bytes is not None and sum(need.values()) > limits.bytes
        # More may be left than is expected.
        may_be_too_many = self._most_files is not None and bool(continuing)
        budgets: dict[int, PartBudget] = {}
        if self.are_limited or is_too_long or may_be_too_many:
            each = self._bytes_of_one("rows"), self._bytes_of_one("files")
            rows = _shares(limits.rows, {r: size / each[0] for r, size in need.items()})
            # How many members an archive has is an estimate.
            counts = {
                r: max(splits_of[r], need[r] / each[1] if r in with_archives else 0) for r in need
            }
            files = _shares(limits.files, counts, exact=need.keys() - with_archives)
            sizes = _shares(limits.bytes, need)
            budgets = {
                r: PartBudget(
                    files=files.get(r), rows=rows.get(r), bytes=sizes.get(r), seconds=limits.seconds
                )
                for r in readers
            }
        self._cut[checkpoint] = {
            r: _Part(
                _left_after(self._expected(budgets[r], 1), files_of[r]) if budgets else {},
                r in with_archives,
            )
            for r in readers
        }
        self._has_archives = False
        if limits.files is not None or self._most_files is None:
            return budgets
        # What is left is an estimate: those that continue begin no more files than were planned.
        spare = max(0, self._most_files - len(set[str]().union(*files_of.values())))
        more = spare // max(1, len(continuing))
        most = {r: max(1, more + splits_of[r]) for r in budgets if r in continuing}
        return budgets | {r: budgets[r].model_copy(update={"files": n}) for r, n in most.items()}

    def completed(self, checkpoint: int) -> None:
        """All commits of the checkpoint are counted."""
        self._forget()
        self._cut = {ref: parts for ref, parts in self._cut.items() if ref > checkpoint}

    def aborted(self, checkpoint: int) -> None:
        """The checkpoint was taken back."""
        parts = self._cut.pop(checkpoint, {}).values()
        self._has_archives = self._has_archives or any(part.has_archives for part in parts)


def _left_after(read: float, lengths: Mapping[str, float]) -> dict[str, float]:
    """Return the bytes left of files that are read in this order."""
    left: dict[str, float] = {}
    for path, length in lengths.items():
        if length > read:
            left[path] = length - read
        read = max(0.0, read - length)
    return left


def _shares(
    limit: int | None, needs: Mapping[int, float], exact: Collection[int] = ()
) -> dict[int, int]:
    """Return a limit in parts of at least 1, by need: what one does not need another one gets.

    Needs are estimates, but for the readers in `exact`.
    """
    shares: dict[int, int] = {}
    if limit is None:
        return shares
    left = limit
    for at, reader in enumerate(sorted(needs, key=needs.__getitem__)):
        most = left // (len(needs) - at)
        wanted = needs[reader] * (1 if reader in exact else 1.5)
        shares[reader] = max(1, min(most, math.ceil(min(wanted, limit))))
        left -= shares[reader]
    # What is left over may be needed after all, where the need is an estimate.
    others = shares.keys() - set(exact) or shares.keys()
    more = max(0, left) // max(1, len(others))
    return {r: share + more * (r in others) for r, share in shares.items()}
