"""Remembers for millions of files that they were left out, and why, in nine bytes each.

Not here: when what is remembered has to be looked at again (`tree_discovery.py` starts anew).
"""

from __future__ import annotations

import os

import numpy as np

_RECENT = 100_000
"""Kept as Python objects before they are sorted in."""


class Remembered:
    """Path -> a code. Two paths may meet with a chance of one in 10^19; never in two lives."""

    def __init__(self) -> None:
        # Another text for each life of this object: other paths meet, if any do.
        self._salt = os.urandom(8).hex()
        self._hashes = np.empty(0, np.int64)
        self._codes = np.empty(0, np.uint8)
        self._recent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._hashes) + len(self._recent)

    def add(self, path: str, code: int) -> None:
        """`code` is 1 to 255; a path is added once."""
        self._recent[hash(path + self._salt)] = code
        if len(self._recent) >= max(_RECENT, len(self._hashes) // 4):
            self._sort_in()

    def get(self, path: str) -> int:
        """The code, or 0."""
        if not len(self):
            return 0
        key = hash(path + self._salt)
        code = self._recent.get(key, 0)
        if code or not len(self._hashes):
            return code
        at = int(np.searchsorted(self._hashes, key))
        found = at < len(self._hashes) and int(self._hashes[at]) == key
        return int(self._codes[at]) if found else 0

    def _sort_in(self) -> None:
        keys = np.concatenate([self._hashes, np.fromiter(self._recent, np.int64)])
        codes = np.fromiter(self._recent.values(), np.uint8)
        order = np.argsort(keys, kind="stable")
        self._hashes, self._codes = keys[order], np.concatenate([self._codes, codes])[order]
        self._recent = {}
