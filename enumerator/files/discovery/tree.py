"""What discovery needs of a tree on any file system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from .api import FoundFiles, KnownFiles
from .selection.skip_counter import SkipCounter


class Tree(ABC):
    """One loaded path, listed again and again."""

    may_vanish: bool
    """True if a path that has been emptied does not exist."""

    @abstractmethod
    def list_files(self, known: KnownFiles, skips: SkipCounter, after: str) -> Iterator[FoundFiles]:
        """One pass, in portions that may be empty.

        Args:
            known: what need not come.
            skips: counts everything that is found and not taken.
            after: where not empty, names below the base up to this one are not looked for.

        Raises:
            OSError: it cannot be listed; FileNotFoundError: it is not there.
        """

    @abstractmethod
    def forget(self) -> None:
        """Trust nothing that a pass before has found out."""
