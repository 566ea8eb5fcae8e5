"""What the file enumerator knows: every file ever seen, and what of it is not yet assigned.

The state is a list of ranges: a range with bytes in it is pending, an empty one says only that its
file has been seen. Changes are the ranges that became pending; what became of them since follows
from the splits assigned.

Not here: the columns of a range in a checkpoint (`checkpoint_meta/serializer.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...checkpoint_meta.splits import FileSplit

FileState = Sequence[FileSplit]


def seen_only(split: FileSplit) -> FileSplit:
    """The empty range that stands for a file with nothing pending."""
    return FileSplit(split.file, split.file.size, split.file.size)


def advance(
    state: FileState | None, changes: FileState, assigned: Iterable[FileSplit]
) -> FileState:
    """Pending ranges after one checkpoint: those before, plus changes, minus assigned."""
    pending: dict[str, list[FileSplit]] = {}
    for split in [*(state or ()), *changes]:
        ranges = pending.setdefault(split.file.path, [])
        if split.start < split.end or not ranges:
            ranges.append(split)
    for split in assigned:
        ranges = pending.get(split.file.path, [])
        left = [part for known in ranges for part in _without(known, split)]
        pending[split.file.path] = left or [seen_only(split)]
    return [split for ranges in pending.values() for split in _tidy(ranges)]


def _without(known: FileSplit, taken: FileSplit) -> list[FileSplit]:
    if known.file != taken.file or taken.end <= known.start or known.end <= taken.start:
        return [known] if known.start < known.end else []
    parts = [
        FileSplit(known.file, known.start, taken.start),
        FileSplit(known.file, taken.end, known.end),
    ]
    return [part for part in parts if part.start < part.end]


def _tidy(ranges: list[FileSplit]) -> list[FileSplit]:
    full = [split for split in ranges if split.start < split.end]
    return full or ranges[:1]
