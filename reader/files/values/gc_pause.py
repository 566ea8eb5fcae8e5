"""Python's garbage collector, off while records are decoded.

Their values hold no cycles, and looking for some in a hundred thousand of them costs up to a third
of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Leave Python's search for cycles off for a while."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
