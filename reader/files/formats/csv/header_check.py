"""What the CSV reader refuses: headers that do not fit the schema.

Not here: records that do not fit (`exact_rows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from .....checkpoint_meta.documents.file_split import FileVersion
from .....errors import SchemaMismatchError


def header_misfit(
    file: FileVersion, names: Sequence[str], expected: Sequence[str], reason: str
) -> SchemaMismatchError:
    """The error for a header and a schema that do not belong together."""
    return SchemaMismatchError(
        f"the header does not fit the schema: {reason}",
        f"{file.path}, byte 0",
        ", ".join(names)[:500],
        ", ".join(expected)[:500],
        "Correct .schema(...), or set enforceSchema to false to go by the header's names.",
    )


def named_twice(file: FileVersion, names: Sequence[str]) -> SchemaMismatchError:
    """The error for a header by which one of two values would be lost."""
    return SchemaMismatchError(
        "the header names a column twice",
        f"{file.path}, byte 0",
        ", ".join(names)[:500],
        "names that differ in more than case",
        "Rename one of the two in the file. To read by position, give .schema(...) and leave "
        "enforceSchema true.",
    )


def differs(
    file: FileVersion, names: Sequence[str], expected: Sequence[str]
) -> SchemaMismatchError:
    """The error that makes packed files with unlike headers be read singly."""
    return header_misfit(file, names, expected, "it differs from the file before")
