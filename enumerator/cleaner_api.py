"""The contract of what takes read splits out of the source's way.

Not here: when splits count as read (`coordinator/source_cleanup.py`), and files
(`files/cleaning`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

SplitT = TypeVar("SplitT")


class SourceCleaner(ABC, Generic[SplitT]):
    """Removes what no restore reads again. On a worker thread, one call at a time.

    What it has been asked and has not done is in `state`, which is made durable after each step;
    after a crash it is asked again for what came after that, so doing a thing twice must do no
    harm.
    """

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from what `state` gave earlier. Called before anything else, if at all."""

    @abstractmethod
    def take_in(self, read: Iterable[tuple[SplitT, SplitT | None]]) -> None:
        """What one checkpoint's readers have read: each split, and what is left of it if anything.

        Never what was sent back, skipped or abandoned.
        """

    @abstractmethod
    def spare(self, splits: Iterable[SplitT]) -> None:
        """These are to be read again: forget that they were read, until they are reported again.

        Called after `take_in` and before `clean`, more than once for the same splits.
        """

    @abstractmethod
    def clean(self, check_still_ours: Callable[[], None]) -> None:
        """Remove what is read to its end. What cannot be removed is kept, for the next call.

        Args:
            check_still_ours: asked before each portion; raises once a newer query has taken over.
        """

    @property
    @abstractmethod
    def failing(self) -> int:
        """How many removals have failed so far and will be tried again."""

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """All that must not be forgotten, as JSON values."""

    @abstractmethod
    def figures(self) -> Mapping[str, Any]:
        """What was done so far, as JSON values for Spark's progress. From any thread."""
