"""Gives memory that was freed back to the operating system.

A merge takes and frees hundreds of megabytes on a thread of its own; the C library keeps what was
freed for later, for each thread apart, and a process would grow by it again and again.

Not here: what takes the memory (`index_merge.py`).
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

import pyarrow as pa


def give_back() -> None:
    """Gives free memory back to the system where the C library can (glibc); some milliseconds."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
