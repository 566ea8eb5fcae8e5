"""Rules for the names of data: Spark's for hidden names, patterns, markers."""

from __future__ import annotations

import re
from typing import Final

from .....checkpoint_meta.storage.written_values import BoundedPattern, glob_pattern

_UNFINISHED: Final = (
    *("crdownload", "download", "filepart", "in-progress", "incomplete", "inprogress", "lftp"),
    *("opdownload", "part", "partial", "swp", "temp", "tmp", "uploading"),
)
"""Suffixes of files that programs rename once they are complete."""

IGNORED = rf"^([._]|~\$)|(~|(?i:\.({'|'.join(_UNFINISHED)})))$"
"""Hidden names, as for Spark, Hadoop and Flink, and names of unfinished uploads."""

_ENDS: Final = ("~", *(f".{suffix}" for suffix in _UNFINISHED))

_SUMMARIES = ("_metadata", "_common_metadata")
"""Directories of such names are entered, though files of such names are not read."""

_EACH_FILE = "<name>"


class NameRule:
    """Tells by its name alone whether a directory is entered and a file is read."""

    def __init__(self, ignored: str = IGNORED, glob: str | None = None) -> None:
        """`ignored` is found in names to be passed over (Spark's ignoredPathSegmentRegex).

        `glob` is what a file's name has to match as a whole (Spark's pathGlobFilter).
        """
        # An empty expression matches nothing, as in Spark.
        self._has_usual = ignored == IGNORED
        self._ignored = (
            re.compile(IGNORED) if self._has_usual else BoundedPattern(ignored or "(?!)")
        )
        self._glob = glob_pattern(glob) if glob is not None else None

    def enters(self, name: str) -> bool:
        """True if what lies below a directory of this name is looked at."""
        return name.startswith(_SUMMARIES) or self._is_data(name)

    def refusal(self, name: str) -> str:
        """Empty if a file of this name is data, else the option that excludes it."""
        if not self._is_data(name):
            return "ignoredPathSegmentRegex"
        return "" if self.matches(name) else "pathGlobFilter"

    def matches(self, name: str) -> bool:
        """True if the name is as the user's pattern has it, hidden or not."""
        return self._glob is None or bool(self._glob.fullmatch(name))

    def _is_data(self, name: str) -> bool:
        # Hadoop's shell copies under this name, and renames when all is there.
        if name.endswith("._COPYING_"):
            return False
        # Most names, without a call of the slower expression.
        if self._has_usual and name[:1] not in "._~" and not name.lower().endswith(_ENDS):
            return True
        # As in Spark: a column of partitions may begin with an underscore.
        return not self._ignored.search(name) or (name[:1] == "_" and "=" in name)


class ReadyMarker:
    """`readyMarker`: a file is finished when another one exists, which the trees look for.

    A name in the file's directory, or `<name>` with something around it: next to each file.
    """

    def __init__(self, pattern: str) -> None:
        """`pattern` without `<name>` names one file for the whole directory.

        Raises:
            ValueError: it cannot be the name of another file.
        """
        before, self.is_per_file, after = pattern.partition(_EACH_FILE)
        self._before, self._after = before, after
        if not pattern or "/" in pattern or _EACH_FILE in after:
            raise ValueError(f"a file name with at most one {_EACH_FILE}")
        if self.is_per_file and not before + after:
            raise ValueError(f"more than {_EACH_FILE}, which alone is the file itself")

    def of(self, name: str) -> str:
        """The name that has to be there, in the same directory, for a file called `name`."""
        return f"{self._before}{name}{self._after}" if self.is_per_file else self._before

    def is_marker(self, name: str) -> bool:
        """True if a file of this name is a marker, hence no data."""
        if not self.is_per_file:
            return name == self._before
        longer = len(name) > len(self._before) + len(self._after)
        return longer and name.startswith(self._before) and name.endswith(self._after)
