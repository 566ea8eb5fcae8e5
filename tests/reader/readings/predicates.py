"""What predicates of documented differences have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark_sluice.tests.reader.readings.model import CORRUPT, Difference


@dataclass(frozen=True)
class Documented:
    """One difference from Spark that is meant."""

    formats: str
    """Names of the formats, separated by blanks."""

    row: str
    """How the first cell of the row in the documentation begins."""

    predicate: Callable[[Difference], bool]

    def covers(self, difference: Difference) -> bool:
        """True if Spark reads a file of these formats otherwise, in the way that is meant."""
        is_of_format = difference.group.file_format in self.formats.split()
        return difference.reading == "spark" and is_of_format and self.predicate(difference)


def we_refuse(difference: Difference) -> bool:
    """True if our reading is an error that names the file."""
    return isinstance(difference.found, str) and difference.found.startswith("refused")


def we_call_it_malformed(difference: Difference) -> bool:
    """Ours has a malformed record more, drops a row more, or fails."""
    expected, found = difference.expected, difference.found
    if isinstance(found, str):
        return found.startswith("refused")
    if isinstance(expected, str):
        return False
    if difference.mode == "DROPMALFORMED":
        return len(found) < len(expected)
    return len(expected) == len(found) and any(
        ours.get(CORRUPT) is not None and theirs.get(CORRUPT) is None
        for theirs, ours in zip(expected, found, strict=True)
    )


def meant(separator: str) -> str:
    """The characters that the option `sep` means; `lineSep` has no escapes."""
    escapes = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\|": "|", "\\\\": "\\"}
    return escapes.get(separator, separator)
