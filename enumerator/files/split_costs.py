"""What reading a split costs: learned from reader commits, by kind of file.

Files are of one kind if they have the same format, and the same path but for numbers in it: so they
have the same codec, and, written by one producer, the same shape. A kind that is new costs what
files of the same ending cost, else what all files cost.

Costs are in weighted bytes: a byte of a slow kind counts for several. If all kinds become faster
or slower at once, weights stay as they are: how long a weighted byte takes is seen from whole
batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...checkpoint_meta.documents.file_split import FileSplit
from ..api import SplitFigures

_KEPT = 0.5
"""How much of what was learned before counts when a batch has ended."""

_MOST_KINDS = 64
"""What was not seen for longest goes first."""

_NUMBER = re.compile(
    r"(?<![0-9A-Za-z])[0-9a-f]{4,}(?![0-9A-Za-z])"  # a word of hexadecimal digits
    # The 3 of s3:// belongs to the scheme.
    r"|(?<!^s)[0-9][0-9A-Za-z]*"
)
_NUMBERS = re.compile(r"#(?:[-_.:]?#)+")


def kind_of(path: str) -> str:
    """The path with # in the place of numbers, dates and UUIDs."""
    return _NUMBERS.sub("#", _NUMBER.sub("#", path))


class SplitCosts:
    """Seconds a byte of each kind, against a scale; opening a file counts as so many bytes more."""

    def __init__(self, file_format: str, open_cost_bytes: int) -> None:
        self._format = file_format
        self._open_cost = open_cost_bytes
        self._scale = 1.0
        """Seconds a byte of what has the weight 1."""
        self._known: dict[str, tuple[float, float]] = {}
        """Kind -> (bytes, seconds), those seen last at the end."""
        self._batch: dict[tuple[str, ...], tuple[float, float]] = {}
        """The same of the batch that is being read, by all kinds that a file is of."""
        self.batch_work = 0.0
        """Weighted bytes of the batch that ended last, by what is known since."""

    def work(self, split: FileSplit) -> float:
        """Bytes of `split`, weighted by what its kind of file costs to read."""
        return self._bytes(split) * self._weight(self._kinds(split))

    def bytes_within(self, split: FileSplit, work: float) -> int:
        """How much of `split` has so many weighted bytes."""
        return max(1, int(work / self._weight(self._kinds(split))) - self._open_cost)

    def _weight(self, kinds: Sequence[str]) -> float:
        # The narrowest kind comes first.
        known = (self._known[kind] for kind in kinds if kind in self._known)
        size, seconds = next(known, (1.0, self._scale))
        return seconds / size / self._scale

    def learn(self, figures: Sequence[SplitFigures[FileSplit]]) -> None:
        """What one reader has read and how long that took."""
        for figure in figures:
            kinds = self._kinds(figure.split)
            size, seconds = self._batch.get(kinds, (0.0, 0.0))
            # No time is zero; a clock may not see it.
            took = max(figure.seconds, 1e-6)
            self._batch[kinds] = (size + self._bytes(figure.split), seconds + took)

    def end_batch(self) -> None:
        """All readers of a batch have said what they read."""
        # Those of which something was known, or all if nothing was, weigh the same as before.
        same = {kinds for kinds in self._batch if kinds[0] in self._known or not self._known}
        before = self._work_of(same)
        sums: dict[str, tuple[float, float]] = {}
        for kinds, (size, seconds) in self._batch.items():
            for kind in kinds:
                sizes, took = sums.get(kind, (0.0, 0.0))
                sums[kind] = (sizes + size, took + seconds)
        for kind, (size, seconds) in sums.items():
            earlier_size, earlier = self._known.pop(kind, (0.0, 0.0))
            # Removed and put in again: the order of the dictionary says which kind was seen last.
            self._known[kind] = (size + _KEPT * earlier_size, seconds + _KEPT * earlier)
        if same:
            # So weights change only between kinds: that all became slower shows in the time of a
            # batch.
            self._scale *= self._work_of(same) / before
        self.batch_work = self._work_of(self._batch)
        self._batch = {}
        for kind in list(self._known)[:-_MOST_KINDS]:
            del self._known[kind]

    def _work_of(self, which: Iterable[tuple[str, ...]]) -> float:
        return sum(self._batch[kinds][0] * self._weight(kinds) for kinds in which)

    def _kinds(self, split: FileSplit) -> tuple[str, str, str]:
        path = split.file.path
        # A name that has no dot has no ending, and is of one kind with all such names.
        ending = path.rpartition("/")[2].partition(".")[2].rpartition(".")[2]
        of_format = f"{self._format}:"
        return of_format + kind_of(path), f"{of_format}*.{ending}", f"{of_format}*"

    def _bytes(self, split: FileSplit) -> int:
        return max(1, split.length + self._open_cost)

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint holds of it."""
        kinds = {kind: list(pair) for kind, pair in self._known.items()}
        return {"kinds": kinds, "scale": self._scale}

    def restore(self, found: Mapping[str, Any]) -> None:
        """Resume with the costs that `to_json` wrote into a checkpoint."""
        kinds = found.get("kinds", {})
        self._scale = float(found.get("scale", 1.0))
        self._known = {kind: (float(size), float(took)) for kind, (size, took) in kinds.items()}

    def report(self) -> list[Mapping[str, Any]]:
        """The kinds seen last, slowest first, for Spark's progress."""
        exact = [kind for kind in self._known if "*" not in kind][-10:]
        speeds = {kind: self._known[kind][0] / self._known[kind][1] / 1e6 for kind in exact}
        return [
            {"files": kind, "megabytesPerSecond": round(speeds[kind], 3)}
            for kind in sorted(speeds, key=speeds.__getitem__)
        ]
