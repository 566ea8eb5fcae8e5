"""How long a store that does not answer is waited for: back-off with jitter, and an end.

The client repeats a request for some seconds by itself; this is the patience around it, for what
the client must not repeat (a create) and for a store that is away for longer.

Here is also which errors are retried at all: `is_final`, for every retry of this package.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from ...errors import FileChangedError, MissingPathError, OptionError, SourceUnavailable
from .errors import AnotherVersion, BeyondTheEnd, RefusedRequest

T = TypeVar("T")

LONGEST_DELAY: Final = 8.0
"""Seconds between two tries at most."""

FINAL: Final = (
    FileExistsError,
    FileNotFoundError,
    PermissionError,
    AnotherVersion,
    BeyondTheEnd,
    RefusedRequest,
    OptionError,
    MissingPathError,
    FileChangedError,
    ImportError,
    TypeError,
)
"""Answers that the next try would hear as well: about the object, the credentials or the call."""


def is_final(error: BaseException | None) -> bool:
    """True if no retry can help: the error, or what made a listing fail, is in `FINAL`."""
    if isinstance(error, FINAL):
        return True
    return isinstance(error, SourceUnavailable) and is_final(error.__cause__)


def delays(first: float = 0.1) -> Iterator[float]:
    """Seconds before each new try, for ever: growing, with jitter for many clients."""
    delay = first
    while True:
        yield delay * random.uniform(0.5, 1.0)  # noqa: S311 - spreads, hides nothing
        delay = min(delay * 3.0, LONGEST_DELAY)


def patiently(
    action: Callable[[], T],
    attempts: int = 8,
    sleep: Callable[[float], None] = time.sleep,
    first_delay: float = 0.1,
) -> T:
    """`action`, tried again after errors that may pass; with the defaults for some 25 seconds.

    Raises:
        OSError: the last one, or the first that no further try would change.
    """
    pauses = delays(first_delay)
    for attempt in range(1, attempts + 1):
        try:
            return action()
        except FINAL:
            raise
        except OSError:
            if attempt == attempts:
                raise
            sleep(next(pauses))
    # Not reached: the last attempt returns or raises.
    raise AssertionError
