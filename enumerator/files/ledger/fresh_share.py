"""Keeps a part of each batch for what is newest, while a backlog drains from the other end.

Not here: which files those are (the order of `pending.py`).
"""

from __future__ import annotations

from ....checkpoint_meta.documents.file_split import FileSplit
from ...batch_budget import BatchBudget


class FreshShare:
    """Measures in bytes where bytes are limited, else in files."""

    def __init__(self, share: float) -> None:
        """`share` is between 0, which keeps nothing, and 1."""
        self._share = share
        self._bytes = 0
        self._files: set[str] = set()

    def start_batch(self) -> None:
        """Forget what was taken: a new checkpoint begins."""
        self._bytes, self._files = 0, set()

    def takes_last(self, budget: BatchBudget) -> bool:
        """True if the next range is to come from the end of the order."""
        if self._share == 0:
            return False
        if budget.limits.bytes is not None:
            return self._bytes < self._share * max(1, budget.bytes)
        return len(self._files) < self._share * (budget.files + 1)

    def took(self, split: FileSplit) -> None:
        """This range came from the end of the order."""
        self._bytes += split.length
        self._files.add(split.file.path)
