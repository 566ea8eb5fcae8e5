"""What the CSV reader refuses: options it does not have, headers that do not fit the schema.

Not here: records that do not fit (`rows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from .....checkpoint_meta.splits import FileVersion
from .....errors import OptionError, SchemaMismatchError
from ...options import ReaderOptions


def refuse_unsupported(options: ReaderOptions) -> None:
    """Raise OptionError for what Spark offers and this reader does not."""
    if options.unescaped_quote_handling != "STOP_AT_DELIMITER":
        raise OptionError(
            "option unescapedQuoteHandling is not supported",
            found=options.unescaped_quote_handling,
            expected="STOP_AT_DELIMITER",
        )
    if not options.sep:
        raise OptionError("option sep is empty", expected="one or more characters")


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
