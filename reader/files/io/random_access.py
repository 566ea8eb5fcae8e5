"""What can be read anywhere, and as a file of Python's.

Not here: what files there are (`source_file.py`).
"""

from __future__ import annotations

import io
from typing import Protocol

from typing_extensions import override


class RandomAccess(Protocol):
    """An open file that can be read anywhere."""

    def read_at(self, position: int, count: int) -> bytes:
        """Bytes from `position`: `count` of them, fewer only at the end of the file version."""

    def close(self) -> None:
        """Close the file."""


class AsFile(io.RawIOBase):
    """What can be read anywhere as a file of Python's, which Arrow can take."""

    def __init__(self, source: RandomAccess, size: int) -> None:
        self._source = source
        self._size = size
        self._position = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    @override
    def tell(self) -> int:
        return self._position

    @override
    def read(self, size: int | None = -1) -> bytes:
        left = self._size - self._position
        data = self._source.read_at(self._position, left if size is None or size < 0 else size)
        self._position += len(data)
        return data
