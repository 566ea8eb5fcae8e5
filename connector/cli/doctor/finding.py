"""One line of a diagnosis.

Not here: the checks.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """One check: what was found, what was expected, and the way out."""

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
