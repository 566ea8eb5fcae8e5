"""How many readers a checkpoint has.

Not here: which reader gets which split (`files/spreading.py`).
"""

from __future__ import annotations

from collections.abc import Callable


class Readers:
    """The registered readers, 0 to count - 1. Readers are added, never removed.

    A batch need not use them all: one large batch would make every later one as wide.
    """

    def __init__(self, fixed: int | None, at_least: int, register: Callable[[int], None]) -> None:
        """`fixed` is the user's parallelism, None for one that follows the work."""
        self._fixed = fixed
        self._at_least = at_least
        self._register = register
        self.count = 0

    def start(self) -> None:
        """Register the readers that are there from the start."""
        self._grow(self._fixed or self._at_least)

    def request(self, readers: int) -> int:
        """How many readers a batch has that wants `readers`; so many are registered then."""
        if self._fixed is not None:
            return self._fixed
        wanted = max(1, readers)
        self._grow(wanted)
        return wanted

    def may_have(self, reader: int) -> bool:
        """True if a reader of this index is registered, or may be in a later batch."""
        return reader < self.count or self._fixed is None

    def _grow(self, readers: int) -> None:
        while self.count < readers:
            self.count += 1
            self._register(self.count - 1)
