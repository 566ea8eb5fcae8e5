"""What discovery needs of a tree on any file system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from .api import FoundFiles, KnownFiles
from .selection.skip_counter import Tally


class Tree(ABC):
    """One loaded path, listed again and again."""

    may_vanish: bool
    """True if a path that has been emptied does not exist."""

    @abstractmethod
    def stretches(self, known: KnownFiles, tally: Tally, after: str) -> Iterator[FoundFiles]:
        """One pass, in stretches that may be empty.

        Args:
            known: what need not come.
            tally: told of everything that is found and not taken.
            after: where not empty, names below the base up to this one are not looked for.

        Raises:
            OSError: it cannot be listed; FileNotFoundError: it is not there.
        """

    @abstractmethod
    def forget(self) -> None:
        """Trust nothing that a pass before has found out."""
