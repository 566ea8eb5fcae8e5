"""Files that are finished when another file says so (`readyMarker`).

Not here: how it is found out whether the other file is there (the trees know).
"""

from __future__ import annotations

_NAME = "<name>"


class ReadyMarker:
    """A name in the file's directory, or `<name>` with something around it: next to each file."""

    def __init__(self, pattern: str) -> None:
        """`pattern` without `<name>` names one file for the whole directory.

        Raises:
            ValueError: it cannot be the name of another file.
        """
        before, self.is_per_file, after = pattern.partition(_NAME)
        self._before, self._after = before, after
        if not pattern or "/" in pattern or _NAME in after:
            raise ValueError(f"a file name with at most one {_NAME}")
        if self.is_per_file and not before + after:
            raise ValueError(f"more than {_NAME}, which alone is the file itself")
        self.is_for_directory = not self.is_per_file

    def of(self, name: str) -> str:
        """The name that has to be there, in the same directory, for a file called `name`."""
        return f"{self._before}{name}{self._after}" if self.is_per_file else self._before

    def is_marker(self, name: str) -> bool:
        """True if a file of this name is a marker, hence no data."""
        if not self.is_per_file:
            return name == self._before
        longer = len(name) > len(self._before) + len(self._after)
        return longer and name.startswith(self._before) and name.endswith(self._after)
