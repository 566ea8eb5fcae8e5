"""Ranges of files as sets of bytes: joined, and one without another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion

ByteRange: TypeAlias = tuple[int, int]

ByteRanges: TypeAlias = Mapping[FileVersion, Sequence[ByteRange]]
"""For each file its ranges in order, none of them empty, none touching the next."""


def byte_ranges_of(splits: Iterable[FileSplit]) -> dict[FileVersion, list[ByteRange]]:
    """The bytes that are in any of `splits`."""
    ranges_by_file: dict[FileVersion, list[ByteRange]] = {}
    for split in splits:
        ranges_by_file.setdefault(split.file, []).append((split.start, split.end))
    return {file: joined(ranges) for file, ranges in ranges_by_file.items()}


def joined(ranges: Iterable[ByteRange]) -> list[ByteRange]:
    """The same bytes in as few ranges as possible, in order."""
    joined_ranges: list[ByteRange] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if joined_ranges and start <= joined_ranges[-1][1]:
            joined_ranges[-1] = (joined_ranges[-1][0], max(end, joined_ranges[-1][1]))
        else:
            joined_ranges.append((start, end))
    return joined_ranges


def without(ranges: Iterable[ByteRange], others: Iterable[ByteRange]) -> list[ByteRange]:
    """The bytes of the first that are not in the second."""
    left = list(ranges)
    for first, last in others:
        cut: list[ByteRange] = []
        for start, end in left:
            # What is before the other range and what is behind it; either may be empty.
            cut += [(start, min(end, first)), (max(start, last), end)]
        left = [(start, end) for start, end in cut if start < end]
    return left


def splits_without(splits: Iterable[FileSplit], others: ByteRanges) -> list[FileSplit]:
    """Return the rest of `splits` without some bytes; one that keeps all of its own stays whole."""
    return [
        piece_of(split, start, end)
        for split in splits
        for start, end in without([(split.start, split.end)], others.get(split.file, ()))
    ]


def piece_of(split: FileSplit, start: int, end: int) -> FileSplit:
    """A range of `split`. What was read of it already was read from its start."""
    if start == split.start:
        # At least one byte is not read: a piece without any would not be pending.
        return split._replace(end=end, read_bytes=min(split.read_bytes, end - start - 1))
    return FileSplit(split.file, start, end)


def splits_of(ranges: ByteRanges) -> list[FileSplit]:
    """One split for each range of bytes."""
    return [FileSplit(file, a, b) for file, parts in ranges.items() for a, b in parts]
