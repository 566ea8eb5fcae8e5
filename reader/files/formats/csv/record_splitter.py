"""Cuts CSV text into records and their fields exactly as Spark does: the slow path.

What a field is, is in `univocity_scanner.py`. Here is what stands between them: blank lines,
comments, line breaks, and what Spark shows as the text of a record that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...io.whole_records import overlaps_itself
from ...options import ReaderOptions
from .dialect import BLANKS, Rules
from .long_separator_scanner import LongScanner
from .univocity_scanner import Scanner, Token

__all__ = ["CsvTokens", "Record", "Token", "break_of"]


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of one record and where it stands."""

    start: int
    end: int
    """After its line break."""

    tokens: list[Token]


class CsvTokens:
    """Tokenizes under one set of options."""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options
        self._comment = options.comment
        self._scanner = Scanner if len(options.sep) == 1 else LongScanner
        self._line_rules = Rules.of(options)
        trims = options.ignore_leading_white_space or options.ignore_trailing_white_space
        self._splits = not trims and not overlaps_itself(options.sep.encode())

    def line(self, text: str) -> list[Token] | None:
        """The fields of one line without its line break; None for blank lines and comments."""
        if not text.strip(BLANKS) or (self._comment and text.startswith(self._comment)):
            return None
        return self.fields(text)

    def fields(self, text: str) -> list[Token]:
        """The fields of one line, whatever it is."""
        if self._splits and self._line_rules.quote not in text:
            return [token or None for token in text.split(self._options.sep)]
        try:
            return self._scanner(self._line_rules, text).record()
        except RecursionError:
            # Hundreds of closing quotes with an escape behind each: no record at all.
            return [text]

    def records(self, text: str, line_break: str, *, is_end: bool) -> Iterator[Record]:
        """The records of text in which quoted fields may hold line breaks.

        Without `is_end` the last one is left out, as its end is not known yet; one without fields
        may follow it, which says up to where nothing but blank lines and comments stand.
        """
        rules = Rules.of(self._options, line_break)
        scanner = self._scanner(rules, text, is_end=is_end)
        start = 0
        while start < len(text):
            if self._comment and text.startswith(self._comment, start):
                end = text.find(line_break, start)
                scanner.at = end + len(line_break) if end >= 0 else len(text)
                is_whole, tokens = end >= 0, list[Token]()
            else:
                try:
                    tokens = scanner.record()
                    is_whole = scanner.is_closed
                except RecursionError:
                    end = text.find(line_break, start)
                    scanner = self._scanner(rules, text, is_end=is_end)
                    scanner.at = end + len(line_break) if end >= 0 else len(text)
                    is_whole, tokens = end >= 0, [text[start : scanner.at].rstrip(line_break)]
            if not is_whole and not is_end:
                break
            yield Record(start, scanner.at, tokens)
            start = scanner.at


def break_of(text: str) -> str:
    """The line break that a text with records over several lines goes by: its first one."""
    found = re.search("\r\n|\r|\n", text)
    return found[0] if found else "\n"


def shown(text: str) -> str:
    """A record as it stands in the column of corrupt records: without what ended it."""
    if text.endswith("\r\n"):
        return text[:-2]
    return text[:-1] if text.endswith(("\r", "\n")) else text
