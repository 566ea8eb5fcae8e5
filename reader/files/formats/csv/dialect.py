"""The options of CSV as the parser's rules: which characters have a meaning, and where.

Not here: what the rules lead to (`univocity_scanner.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...options import ReaderOptions

__all__ = ["NO_CHARACTER", "Rules"]

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
    def of(options: ReaderOptions, line_break: str = "") -> Rules:
        """The rules of these options, as Spark hands them to its parser.

        `line_break` is the file's own one; empty where a record is one line.
        """
        quote, escape = options.quote or NO_CHARACTER, options.escape or NO_CHARACTER
        # Univocity's `getCharToEscapeQuoteEscaping`: with doubled quotes no character escapes the
        # escape.
        default = NO_CHARACTER if quote == escape else escape
        before_escape = options.char_to_escape_quote_escaping or default
        # A separator of one character takes the place of the line feed, which then is text.
        feed = options.line_sep if len(options.line_sep) == 1 else "\n"
        breaks = tuple(dict.fromkeys((line_break, feed))) if line_break else ()
        # A separator of several characters is looked for by `LongSeparatorScanner`.
        stop = options.sep if len(options.sep) == 1 else NO_CHARACTER
        return Rules(
            options.sep,
            quote,
            escape,
            before_escape,
            options.empty_value,
            options.ignore_leading_white_space,
            options.ignore_trailing_white_space,
            breaks,
            # Spark keeps a separator that was set as it is inside of quotes.
            line_break if line_break != "\n" and not options.line_sep else "",
            _any_of(stop, *breaks[:1]),
            _any_of(stop, *breaks),
            _any_of(quote, escape, before_escape),
        )


def _any_of(*texts: str) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(text) for text in dict.fromkeys(texts)))
