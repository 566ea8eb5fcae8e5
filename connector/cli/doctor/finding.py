"""One line of a diagnosis.

Not here: what is looked at.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["well", "doubtful", "ill"]


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found against what was expected, and the way out."""

    what: str
    verdict: Verdict
    found: str
    expected: str = ""
    way_out: str = ""

    def document(self) -> dict[str, Any]:
        """Return the fields as `--json` prints them."""
        return asdict(self)


def version_of(text: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version, for comparison."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()
