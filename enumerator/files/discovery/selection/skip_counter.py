"""Counts what a pass leaves out, by reason, and keeps some of the names.

Not here: the reasons (`scope.py`, `criteria.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..api import Skipped, SkippedFile

_SAMPLE = 1_000
"""Names kept with a pass."""


class SkipCounter:
    """The counts and names of one pass."""

    def __init__(self, *, keeps_all: bool = False, marks_names: bool = False) -> None:
        """`marks_names` for the incremental mode, which goes by them."""
        self.greatest = ""
        """Greatest path of a file that is taken or known: others may be of another kind."""
        self.waiting = ""
        """Least path that is to be looked at again."""
        self._marks_names = marks_names
        self._counts: Counter[str] = Counter()
        self._names: list[SkippedFile] = []
        self._most = None if keeps_all else _SAMPLE

    def add(self, path: str, reason: str) -> None:
        """Count a file or directory that is left out for `reason`."""
        self._counts[reason] += 1
        if self._most is None or len(self._names) < self._most:
            self._names.append(SkippedFile(path, reason))

    def repeat(self, counts: Mapping[str, int], names: Iterable[SkippedFile]) -> None:
        """Add the result of an earlier pass for a directory that did not change."""
        self._counts.update(counts)
        if self._most is None or len(self._names) < self._most:
            self._names.extend(names)

    def saw(self, paths: Sequence[str], known: NDArray[np.bool_], taken: Sequence[str]) -> None:
        """Note the names that the pass reached: the ones in `known`, and `taken`."""
        if self._marks_names:
            kept = [paths[at] for at in np.flatnonzero(known).tolist()]
            self.greatest = max(self.greatest, *kept, *taken, "")

    def waits(self, path: str) -> None:
        """Note a file that a later pass has to look at again."""
        if self._marks_names:
            self.waiting = min(self.waiting or path, path)

    def taken_names(self) -> list[SkippedFile]:
        """Return the names since the last call, and drop them."""
        names, self._names = self._names, []
        return names

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of files left out, by reason."""
        return self._counts

    def skipped(self) -> Skipped:
        """Return counts and sample in the form that discovery reports."""
        return Skipped(dict(sorted(self._counts.items())), tuple(self._names[: self._most]))
