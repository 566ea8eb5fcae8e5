"""Cuts CSV text into records and their fields exactly as Spark does: the slow path.

What a field is, is in `univocity_scanner.py`; for separators of several characters, which Spark
treats apart, it is here. So is what separates fields and records: blank lines, comments, line
breaks, and what Spark shows as the text of a record that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from typing_extensions import override

from ...io.lines import overlaps_itself
from ...options import ReaderOptions
from ...values.strings import BLANKS
from ..records.driver import TextRecord
from .univocity_scanner import Rules, Scanner, Token


# Univocity reads these by methods of their own, which differ from the others in more than the
# separator.
class LongSeparatorScanner(Scanner):
    """Reads records whose fields are between separators of several characters."""

    def __init__(self, rules: Rules, text: str, *, is_end: bool = True) -> None:
        super().__init__(rules, text, is_end=is_end)
        self._long = rules.sep
        self._matched = 0
        """Characters of a separator that were read and may yet turn out to be none."""

    @override
    def record(self) -> list[Token]:
        self._matched = 0
        return super().record()

    @override
    def _simply_quoted(self) -> bool:
        return False

    @override
    def _plain(self) -> None:
        self._to_the_end(behind_blanks=False)
        if self._rules.trailing:
            self._value = ["".join(self._value).rstrip(BLANKS)]
        self._end_value()

    @override
    def _to_the_end(self, *, behind_blanks: bool) -> None:
        if behind_blanks:
            # An odd quote with blanks behind it takes the rest of the record, separators and all.
            self._until(self._rules.literal)
            return
        while self._char != self._feed:
            if self._long[self._matched] == self._char:
                self._matched += 1
                if self._matched == len(self._long):
                    break
            elif self._matched:
                self._keep_matched()
                continue
            else:
                self._value.append(self._char)
            self._next()
        self._keep_matched()

    @override
    def _quoted(self) -> None:
        quote = self._rules.quote
        self._next()
        while self._before != quote or (self._char > " " and self._char != self._feed):
            if (self._before == quote and self._is_separator()) or not self._take_quoted():
                return
        if self._char != self._feed and not self._is_separator(keep=False):
            self._after_quote()

    @override
    def _after_quote(self) -> None:
        blanks = ""
        while True:
            blanks += self._char
            self._next()
            if self._char == self._feed or self._is_separator(keep=False):
                return
            if self._char > " ":
                break
        if not self._is_separator(keep=False):
            self._take_unescaped_quote(blanks, self._char)

    @override
    def _is_cut_off(self) -> bool:
        is_cut_off = super()._is_cut_off()
        if self._matched:
            self._keep_matched()
            return True
        return is_cut_off

    @override
    def _skip_blanks(self) -> None:
        while self._char <= " " and self._char not in (self._feed, self._rules.quote):
            self._next()
            if self._long[self._matched] == self._char and self._is_separator():
                self._row.append(None)
                self._next()
        self._keep_matched()

    # `CsvParser.matchDelimiter`.
    @override
    def _is_separator(self, *, keep: bool = True) -> bool:
        """True at a separator, of which the last character then is the current one."""
        while self._char == self._long[self._matched]:
            self._matched += 1
            if self._matched == len(self._long):
                self._matched = 0
                return True
            self._next()
        if keep:
            self._keep_matched()
        return False

    # `CsvParser.saveMatchingCharacters`.
    def _keep_matched(self) -> None:
        if 0 < self._matched < len(self._long):
            self._value.append(self._long[: self._matched])
        self._matched = 0


class CsvTokens:
    """Tokenizes under one set of options."""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options
        self._comment = options.comment
        self._scanner = Scanner if len(options.sep) == 1 else LongSeparatorScanner
        self._line_rules = Rules(options)
        trims = options.ignore_leading_white_space or options.ignore_trailing_white_space
        # Univocity does not go back after a part of a separator; `str.split` does.
        self._splits = not trims and not overlaps_itself(options.sep.encode())

    def line(self, text: str) -> list[Token] | None:
        """The fields of one line without its line break; None for blank lines and comments."""
        if not text.strip(BLANKS) or (self._comment and text.startswith(self._comment)):
            return None
        # Without a quote nothing has a meaning but the separator.
        if self._splits and self._line_rules.quote not in text:
            return [token or None for token in text.split(self._options.sep)]
        try:
            return self._scanner(self._line_rules, text).record()
        except RecursionError:
            # Hundreds of closing quotes with an escape behind each: no record at all.
            return [text]

    def quoted(self, data: bytes, line_break: str, *, is_end: bool) -> Iterator[TextRecord]:
        """Yield the records of bytes in which fields may hold line breaks.

        Without `is_end` the last one is left out, as its end is not known yet; one without fields
        may follow it, which says up to where there are only blank lines and comments.
        """
        # Bytes that are not UTF-8 keep their number, from which positions are made; `_replaced`
        # makes U+FFFD of them.
        text = data.decode("utf-8", "surrogateescape")
        rules = Rules(self._options, line_break)
        scanner = self._scanner(rules, text, is_end=is_end)
        start = offset = 0
        while start < len(text):
            # Univocity looks for a comment only where a record begins, not within quotes.
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
            written = text[start : scanner.at]
            end = offset + len(written.encode("utf-8", "surrogateescape"))
            tokens = [token and _replaced(token) for token in tokens]
            yield TextRecord(offset, end, _replaced(shown(written)), tokens)
            start, offset = scanner.at, end


def _replaced(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def break_of(data: bytes) -> str:
    """Return the line break that a text with records over several lines goes by: its first one."""
    match = re.search(b"\r\n|\r|\n", data)
    return match[0].decode() if match else "\n"


def shown(text: str) -> str:
    """Return a record as written into the column of corrupt records: without what ended it."""
    if text.endswith("\r\n"):
        return text[:-2]
    return text[:-1] if text.endswith(("\r", "\n")) else text
