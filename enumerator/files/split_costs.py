"""What reading a split costs, in seconds: learned from reader commits, by kind of file.

Files are of one kind if they have the same format, and the same path but for numbers in it: so they
have the same codec, and, written by one producer, the same shape. A kind that is new costs what
files of the same ending cost, else what all files cost.

Not here: how long the whole batch takes (`coordinator/batch_duration.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...checkpoint_meta.documents.file_split import FileSplit
from ..api import SplitFigures

_FIRST_GUESS = 1e-7
"""Seconds a byte: slower than nearly everything, so that a first batch is rather too short."""

_KEPT = 0.5
"""How much of what was learned before counts when a batch has ended."""

_MOST_KINDS = 64
"""What was not seen for longest goes first."""

_NUMBER = re.compile(
    r"(?<![0-9A-Za-z])[0-9a-f]{4,}(?![0-9A-Za-z])"  # a word of hexadecimal digits
    r"|(?<!^s)[0-9][0-9A-Za-z]*"
)
_NUMBERS = re.compile(r"#(?:[-_.:]?#)+")


def kind_of(path: str) -> str:
    """The path with # in the place of numbers, dates and UUIDs."""
    return _NUMBERS.sub("#", _NUMBER.sub("#", path))


class SplitCosts:
    """Seconds a byte of each kind; opening a file counts as so many bytes more."""

    def __init__(self, file_format: str, open_cost_bytes: int) -> None:
        self._format = file_format
        self._open_cost = open_cost_bytes
        self._known: dict[str, tuple[float, float]] = {}
        """Kind -> (bytes, seconds), those seen last at the end."""
        self._batch: dict[str, tuple[float, float]] = {}
        """The same of the batch that is being read."""

    def seconds(self, split: FileSplit) -> float:
        """What reading `split` is expected to take one reader."""
        return self._bytes(split) * self.seconds_per_byte(split)

    def bytes_within(self, split: FileSplit, seconds: float) -> int:
        """How much of `split` is read in so many seconds."""
        return max(1, int(seconds / self.seconds_per_byte(split)) - self._open_cost)

    def seconds_per_byte(self, split: FileSplit) -> float:
        """What the narrowest kind says of which anything is known."""
        for kind in self._kinds(split):
            if kind in self._known:
                size, seconds = self._known[kind]
                return seconds / size
        return _FIRST_GUESS

    def learn(self, figures: Sequence[SplitFigures[FileSplit]]) -> None:
        """What one reader has read and how long that took."""
        for figure in figures:
            for kind in self._kinds(figure.split):
                size, seconds = self._batch.get(kind, (0.0, 0.0))
                # No measured time is zero; a clock may not see it.
                took = max(figure.seconds, 1e-6)
                self._batch[kind] = (size + self._bytes(figure.split), seconds + took)

    def end_batch(self) -> None:
        """All readers of a batch have said what they read."""
        for kind, (size, seconds) in self._batch.items():
            before, earlier = self._known.pop(kind, (0.0, 0.0))
            self._known[kind] = (size + _KEPT * before, seconds + _KEPT * earlier)
        self._batch = {}
        for kind in list(self._known)[:-_MOST_KINDS]:
            del self._known[kind]

    def _kinds(self, split: FileSplit) -> Iterator[str]:
        path = split.file.path
        yield f"{self._format}:{kind_of(path)}"
        ending = path.rpartition("/")[2].partition(".")[2].rpartition(".")[2]
        yield f"{self._format}:*.{ending}"
        yield f"{self._format}:*"

    def _bytes(self, split: FileSplit) -> int:
        return max(1, split.length + self._open_cost)

    def to_json(self) -> dict[str, list[float]]:
        """What a checkpoint holds of it."""
        return {kind: list(pair) for kind, pair in self._known.items()}

    def restore(self, found: Mapping[str, Sequence[float]]) -> None:
        """What `to_json` gave."""
        self._known = {kind: (float(size), float(took)) for kind, (size, took) in found.items()}

    def report(self) -> list[Mapping[str, Any]]:
        """The kinds seen last, slowest first, for Spark's progress."""
        exact = [kind for kind in self._known if "*" not in kind][-10:]
        speeds = {kind: self._known[kind][0] / self._known[kind][1] / 1e6 for kind in exact}
        return [
            {"files": kind, "megabytesPerSecond": round(speeds[kind], 3)}
            for kind in sorted(speeds, key=speeds.__getitem__)
        ]
