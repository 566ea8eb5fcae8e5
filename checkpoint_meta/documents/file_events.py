"""What readers of files tell their enumerator, with the reader commit.

Not here: figures of single splits, which are in the commit itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .file_split import FileVersion

FIGURES = "figures"
"""The sums of a reader: rows, bytes, microseconds, droppedRecords, skippedFiles."""

REPLACED = "replaced"
"""A file was there in another version than the one to be read; nothing of either was."""

FILE_EVENTS = frozenset({FIGURES, REPLACED})


def replaced(old: FileVersion, new: FileVersion) -> Mapping[str, Any]:
    """The value of a `REPLACED` event."""
    return {"old": list(old), "new": list(new)}


def versions_of_event(value: Mapping[str, Any]) -> tuple[FileVersion, FileVersion]:
    """The version that was to be read, and the one that was there."""
    return FileVersion._make(value["old"]), FileVersion._make(value["new"])
