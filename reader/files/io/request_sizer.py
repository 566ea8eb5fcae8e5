"""The size of the next request, so that slow stores answer, and limits on seconds hold."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ..options.values import Secret

SLOW: Final = 0.25
"""Seconds after which records of a slow store are given out, however few they are."""


class RequestSizer:
    """Bytes of the next request: twice as many after a quick answer, fewer after a slow one."""

    def __init__(self, first: int, most: int, least: int = 1, seconds: float = SLOW) -> None:
        """`seconds` is the time that an answer may take; 0 is any time."""
        self.bytes = min(first, most)
        self._least, self._most, self._seconds = least, most, seconds

    @contextmanager
    def request(self, length: int) -> Iterator[None]:
        """Time a request for so many bytes, and set the size of the next one."""
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        if self._seconds and seconds > self._seconds:
            self.bytes = max(self._least, int(length * self._seconds / seconds))
        elif length >= self.bytes:
            # A short request that was quick says nothing of how many bytes fit.
            self.bytes = min(self._most, 2 * self.bytes)


class SizedRequestOptions(Secret):
    """Storage options with the pace of one reader, which all of its files share."""

    def __init__(self, values: Mapping[str, Any], pace: RequestSizer) -> None:
        super().__init__(values)
        self.pace = pace
