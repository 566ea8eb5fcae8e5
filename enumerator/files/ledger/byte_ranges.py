"""Ranges of files as sets of bytes: joined, and one without another.

Not here: what is pending (`pending.py`), in columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ....checkpoint_meta.documents.file_split import FileSplit, FileVersion

Stretch: TypeAlias = tuple[int, int]

Stretches: TypeAlias = Mapping[FileVersion, Sequence[Stretch]]
"""Of each file, in order, none of them empty, none touching the next."""


def stretches_of(splits: Iterable[FileSplit]) -> dict[FileVersion, list[Stretch]]:
    """The bytes that are in any of `splits`."""
    found: dict[FileVersion, list[Stretch]] = {}
    for split in splits:
        found.setdefault(split.file, []).append((split.start, split.end))
    return {file: joined(stretches) for file, stretches in found.items()}


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same bytes in as few stretches as there can be, in order."""
    made: list[Stretch] = []
    for start, end in sorted(stretches):
        if start >= end:
            continue
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((start, end))
    return made


def without(stretches: Iterable[Stretch], others: Iterable[Stretch]) -> list[Stretch]:
    """The bytes of the first that are not in the second."""
    left = list(stretches)
    for first, last in others:
        cut: list[Stretch] = []
        for start, end in left:
            cut += [(start, min(end, first)), (max(start, last), end)]
        left = [(start, end) for start, end in cut if start < end]
    return left


def splits_without(splits: Iterable[FileSplit], others: Stretches) -> list[FileSplit]:
    """What is left of `splits` without some bytes; one that keeps all of its own stays whole."""
    return [
        FileSplit(split.file, start, end)
        for split in splits
        for start, end in without([(split.start, split.end)], others.get(split.file, ()))
    ]


def splits_of(stretches: Stretches) -> list[FileSplit]:
    """One split a stretch."""
    return [FileSplit(file, a, b) for file, parts in stretches.items() for a, b in parts]
