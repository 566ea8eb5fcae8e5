"""What the protocol asks of a split of any source.

Not here: the splits of files (`file_split.py`).
"""

from __future__ import annotations

from typing import Protocol


class Split(Protocol):
    """An immutable unit of work, with an identity that is derived from its content."""

    @property
    def split_id(self) -> str:
        """Equal for equal work, in every process and after every restart."""
