"""Which bytes of which file versions have been read, until a file is read to its end.

Not here: what becomes of a file then (`file_cleaner.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ..ledger.byte_ranges import Stretch, Stretches, joined, without


class Coverage:
    """Files that are read in part; one that was read in one piece never comes to be in it."""

    def __init__(self) -> None:
        self._parts: dict[FileVersion, list[Stretch]] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, split: FileSplit, remainder: FileSplit | None) -> bool:
        """The split was read, up to the remainder; True if its file has now been read whole."""
        file = split.file
        end = split.end if remainder is None else min(split.end, remainder.start)
        if end <= split.start:
            return False
        read = joined([*self._parts.get(file, ()), (split.start, end)])
        if read == [(0, file.size)]:
            self._parts.pop(file, None)
            return True
        self._parts[file] = read
        return False

    def remove(self, unread: Stretches) -> None:
        """These bytes count as not read."""
        for file in [file for file in self._parts if file in unread]:
            left = without(self._parts.pop(file), unread[file])
            if left:
                self._parts[file] = left

    def state(self) -> Sequence[Any]:
        """As JSON values."""
        return [[*file, stretches] for file, stretches in self._parts.items()]

    def restore(self, state: Sequence[Any]) -> None:
        """The inverse."""
        for *file, stretches in state:
            self._parts[FileVersion._make(file)] = [(start, end) for start, end in stretches]


def files_of(state: Mapping[str, Any], key: str) -> list[FileVersion]:
    """File versions out of JSON values."""
    return [FileVersion._make(file) for file in state.get(key, ())]
