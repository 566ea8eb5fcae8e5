"""The contract of a cleaner, which removes splits from the source after they were read.

Not here: when splits count as read (`coordinator/source_cleanup.py`), and files
(`files/cleaning`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

SplitT = TypeVar("SplitT")


class SourceCleaner(ABC, Generic[SplitT]):
    """Removes splits that no restore reads again. Called on a worker thread, one call at a time.

    Removals that are requested and not done are part of `state`, which is made durable after each
    step. After a crash, later requests are repeated, so each operation must be idempotent.
    """

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from an earlier value of `state`. Called before all other methods, if at all."""

    @abstractmethod
    def take_in(self, read: Iterable[tuple[SplitT, SplitT | None]]) -> None:
        """Record what readers have read in one checkpoint: each split and its remainder, if any.

        Splits that were returned, skipped or abandoned are not included.
        """

    @abstractmethod
    def spare(self, splits: Iterable[SplitT]) -> None:
        """Keep these splits, which will be read again, until `take_in` reports them again.

        Called after `take_in` and before `clean`, possibly repeatedly for the same splits.
        """

    @abstractmethod
    def clean(self, check_still_ours: Callable[[], None]) -> None:
        """Remove splits that were read to their end. Removals that fail are tried in the next call.

        Args:
            check_still_ours: call before each portion; raises if a newer query has taken over.
        """

    @property
    @abstractmethod
    def failing(self) -> int:
        """Number of failed removals that will be tried again."""

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Everything needed to resume, as JSON values."""

    @abstractmethod
    def figures(self) -> Mapping[str, Any]:
        """Progress so far, as JSON values for Spark's progress events. Called on any thread."""
