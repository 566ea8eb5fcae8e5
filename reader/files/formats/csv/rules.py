"""The options of CSV as the parser's rules: which characters have a meaning, and where.

Not here: what the rules lead to (`scan.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..strings import BLANKS

__all__ = ["BLANKS", "NO_CHARACTER", "Rules"]

NO_CHARACTER = "\0"
"""An option that is not set, which the parser does not tell from a zero byte in the text."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the options say, and the patterns that follow from it."""

    sep: str
    quote: str
    escape: str
    before_escape: str
    empty: str
    leading: bool
    trailing: bool
    breaks: tuple[str, ...]
    """What ends a record outside of quotes, the file's own first; empty for a single line.

    The last one is the character that the parser takes each of them for.
    """

    quoted_break: str
    """The break that becomes a line feed inside of quotes; empty for none."""

    plain: re.Pattern[str]
    """Finds the end of a field without quotes by the file's own line break."""

    literal: re.Pattern[str]
    """The same by any line feed as well."""

    inside: re.Pattern[str]
    """Finds what has a meaning inside of quotes."""

    @staticmethod
    def of(  # noqa: PLR0913 - one parameter an option
        sep: str,
        quote: str,
        escape: str,
        before_escape: str | None,
        empty: str,
        *,
        leading: bool,
        trailing: bool,
        breaks: tuple[str, ...] = (),
        quoted_break: str = "",
    ) -> Rules:
        """The rules of these options, as Spark hands them to its parser."""
        quote, escape = quote or NO_CHARACTER, escape or NO_CHARACTER
        before_escape = before_escape or (NO_CHARACTER if quote == escape else escape)
        # A separator of several characters is looked for by `LongScanner`.
        stop = sep if len(sep) == 1 else NO_CHARACTER
        return Rules(
            sep,
            quote,
            escape,
            before_escape,
            empty,
            leading,
            trailing,
            breaks,
            quoted_break,
            _any_of(stop, *breaks[:1]),
            _any_of(stop, *breaks),
            _any_of(quote, escape, before_escape),
        )


def _any_of(*texts: str) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(text) for text in dict.fromkeys(texts)))
