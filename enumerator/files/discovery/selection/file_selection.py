"""What is chosen of all that lies below the loaded paths.

Not here: where it is in the options (connector).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .criteria import Criteria
from .name_patterns import IGNORED


@dataclass(frozen=True, slots=True)
class Choice:
    """By default all files that are not hidden and not empty."""

    ignored: str = IGNORED
    """Expression found in names to be passed over."""

    glob: str | None = None
    """Pattern that a file's name has to match."""

    nested: bool = True
    """False enters no directories but partitions."""

    criteria: Criteria = field(default_factory=Criteria)
    ready_marker: str = ""
    """See `ReadyMarker`; empty takes files without."""
