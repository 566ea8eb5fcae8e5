"""The file source's split: a byte range of one version of one file.

Named tuples, because there are hundreds of thousands of them and nothing is made faster.

Not here: how splits are found (enumerator) or read (reader).
"""

from __future__ import annotations

from typing import NamedTuple

GROWS = "grows"
"""The etag of a local file that may be longer by the time it is read, and is the same still."""


class FileVersion(NamedTuple):
    """One version of one file, as discovery saw it."""

    path: str
    """Absolute local path, or a full URL for every other file system."""

    size: int
    """Length in bytes."""

    modified: int
    """Modification time, microseconds since the epoch; -1 where the file system has none."""

    etag: str = ""
    """The store's own version mark; empty where it has none."""


class FileSplit(NamedTuple):
    """Bytes `start` (inclusive) to `end` (exclusive) of one file version: the unit of work.

    A record, row group or block belongs to the split in which it starts. Equal splits read equal
    rows in equal order, on any host, after any crash.
    """

    file: FileVersion
    start: int
    end: int

    @property
    def split_id(self) -> str:
        """Derived from content alone, so it means the same thing after every restart."""
        file = self.file
        return f"{file.path}@{file.size}-{file.modified}-{file.etag}:{self.start}-{self.end}"

    @property
    def length(self) -> int:
        """Bytes in this split."""
        return self.end - self.start

    @property
    def is_whole_file(self) -> bool:
        """True when nothing of the file lies outside this split."""
        return self.start == 0 and self.end == self.file.size

    def from_position(self, start: int) -> FileSplit:
        """The same split without the bytes before `start`."""
        return self._replace(start=start)
