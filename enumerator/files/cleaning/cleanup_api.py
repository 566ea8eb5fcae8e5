"""The contract of a file system that files are cleaned up in.

Not here: which files, and when (`file_cleaner.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ....checkpoint_meta.documents.file_split import FileVersion


class Place(ABC):
    """Removes files one by one; each step can be the last one before a crash. Any thread."""

    workers: int = 1
    """Files that may be worked on at a time."""

    @abstractmethod
    def present(self, file: FileVersion) -> FileVersion | None:
        """The version of the file that is there now; None if it is gone.

        Raises:
            OSError: that cannot be found out.
        """

    @abstractmethod
    def delete(self, file: FileVersion) -> None:
        """Delete the file, which is there.

        Raises:
            OSError: it cannot be deleted.
        """

    @abstractmethod
    def move(self, file: FileVersion, target: str) -> None:
        """Move the file, which is there, to a path or URL of the same kind.

        At every moment it is whole in one of both places. What is at `target` is never
        replaced; the same content there is the work of an attempt that died, and is finished.

        Raises:
            FileExistsError: another file is at `target`.
            OSError: it cannot be moved.
        """


def has_changed(file: FileVersion, present: FileVersion) -> bool:
    """True if `present` is not known to be the version that was read."""
    if file.size != present.size:
        return True
    if file.etag and present.etag:
        # Some clients keep the quotes of HTTP, others do not.
        return file.etag.strip('"') != present.etag.strip('"')
    if file.modified < 0 or present.modified < 0:
        return False
    # A listing may have more of the time than what is asked for one object.
    apart = abs(file.modified - present.modified)
    return apart > 0 if "://" not in file.path else apart >= 1_000_000
