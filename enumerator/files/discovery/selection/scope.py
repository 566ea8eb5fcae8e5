"""Which names below one loaded path are taken: its wildcards level by level, then a whole tree.

Not here: taking a path apart (`checkpoint_meta/storage/input_paths.py`), the rules for single names
(`name_patterns.py`), and bounds (`criteria.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .criteria import PlaceBounds
from .name_patterns import NameRule, glob_pattern

TAKEN = ""
OUTSIDE = "outside"
"""Not what the path names, hence neither taken nor skipped."""


class Scope:
    """Decides by names alone. A level counts the directories between the base and a name."""

    def __init__(
        self,
        base: str,
        wildcards: Sequence[str],
        names: NameRule,
        *,
        nested: bool,
        place: PlaceBounds | None = None,
    ) -> None:
        """`nested` False enters no directories but partitions (`key=value`)."""
        self.base = base
        self.place = place
        self.names = names
        self._nested = nested
        self._wildcards = [glob_pattern(part) for part in wildcards]
        self.depth = len(self._wildcards)
        """Levels that wildcards cover; below them is a whole tree."""
        self.fixed_start = re.split(r"[*?\[{\\]", wildcards[-1])[0] if wildcards else ""
        """How every name begins that the last wildcard matches."""

    def enters(self, name: str, level: int, path: str = "") -> str:
        """`TAKEN`, or why what lies below a directory of this name is not looked at.

        With its `path`, as the paths of files begin, also if all below is out of bounds.
        """
        if level < self.depth and not self._wildcards[level].fullmatch(name):
            return OUTSIDE
        if not self.names.enters(name):
            return "ignoredNamesRegex"
        # As in Spark, partitions are entered anyway.
        if level >= self.depth and not self._nested and "=" not in name:
            return "recursiveFileLookup"
        return self.place.excludes(path) if path and self.place is not None else TAKEN

    def reads(self, name: str, level: int) -> str:
        """`TAKEN`, or why a file of this name is not data."""
        if level < self.depth and not (
            level == self.depth - 1 and self._wildcards[level].fullmatch(name)
        ):
            return OUTSIDE
        return self.names.refusal(name)

    def covers(self, path: str, *, file: bool) -> bool:
        """True if a pass over this scope comes to `path` (or to all below it) by itself."""
        if path == self.base:
            return not self.depth
        if not path.startswith(self.base.rstrip("/") + "/"):
            return False
        *folders, leaf = path[len(self.base) :].strip("/").split("/")
        if any(self.enters(name, level) for level, name in enumerate(folders)):
            return False
        if file:
            return self.reads(leaf, len(folders)) == TAKEN
        return self.enters(leaf, len(folders)) == TAKEN and len(folders) + 1 >= self.depth
