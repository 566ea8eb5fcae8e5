"""A check as a row: what is looked at, what is expected, and how to repair it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ....errors import SluiceError

Verdict = Literal["ok", "warning", "failed"]


class NotAsExpected(Exception):
    """A look found something else than what is expected."""

    def __init__(self, found: str, way_out: str = "", verdict: Verdict | None = None) -> None:
        """`way_out` and `verdict` are of this case; by default those of the check."""
        super().__init__(found)
        self.way_out, self.verdict = way_out, verdict


@dataclass(frozen=True)
class Finding:
    """One check: what was found, what was expected, and the way out."""

    what: str
    verdict: Verdict
    found: str
    expected: str = ""
    way_out: str = ""

    def __str__(self) -> str:
        lines = [f"{self.verdict:<7}  {self.what}: {self.found}"]
        if self.verdict != "ok":
            lines += [f"         expected: {self.expected}", f"         fix: {self.way_out}"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Check:
    """One look at the machine or a place."""

    what: str
    expected: str
    way_out: str
    look: Callable[[], str]
    """Returns what it found; any error is a finding."""

    verdict: Verdict = "failed"
    """Of an error."""

    def finding(self) -> Finding:
        """Look."""
        try:
            return Finding(self.what, "ok", self.look(), self.expected)
        except NotAsExpected as other:
            found, verdict = str(other), other.verdict or self.verdict
            return Finding(self.what, verdict, found, self.expected, other.way_out or self.way_out)
        except Exception as error:  # noqa: BLE001 - each client and Spark have errors of their own
            found = str(error) if isinstance(error, SluiceError | AssertionError) else repr(error)
            return Finding(self.what, self.verdict, found, self.expected, self.way_out)
