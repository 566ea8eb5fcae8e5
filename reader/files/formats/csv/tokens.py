"""Cuts CSV text into fields exactly as Spark's parser does, odd quotes included: the slow path.

Inside quotes the escape character takes away the meaning of a quote; a quote that neither ends its
field nor is escaped makes the field what stands there literally, up to the next separator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...options import ReaderOptions

__all__ = ["CsvTokens", "Record"]

Token = str | None
"""None for an empty field without quotes, which is null."""


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of one record and where it stands."""

    start: int
    end: int
    """After its line break."""

    tokens: list[Token]
    is_closed: bool
    """False if it runs into the end of the text without a line break, or with an open quote."""


class CsvTokens:
    """Tokenizes under one set of options."""

    def __init__(self, options: ReaderOptions) -> None:
        self._sep = options.sep
        self._quote = options.quote
        self._escape = options.escape
        before_escape = options.char_to_escape_quote_escaping
        self._before_escape = options.escape if before_escape is None else before_escape
        self._comment = options.comment
        self._empty = options.empty_value
        self._leading = options.ignore_leading_white_space
        self._trailing = options.ignore_trailing_white_space

    def line(self, text: str) -> list[Token] | None:
        """The fields of one line without its line break; None for blank lines and comments."""
        if not text.strip() or (self._comment and text.startswith(self._comment)):
            return None
        tokens, _, _ = self._record(text, 0, len(text))
        return tokens

    def records(self, text: str) -> Iterator[Record]:
        """The records of text in which quoted fields may hold line breaks."""
        at, size = 0, len(text)
        while at < size:
            start, end = at, text.find("\n", at)
            end = size if end < 0 else end
            if not text[at:end].strip() or (self._comment and text.startswith(self._comment, at)):
                at = end + 1
                continue
            tokens, at, closed = self._record(text, at, size, "\n")
            yield Record(start, at, tokens, closed)

    def _record(
        self, text: str, at: int, size: int, feed: str = ""
    ) -> tuple[list[Token], int, bool]:
        tokens = list[Token]()
        while True:
            token, at, closed = self._field(text, at, size, feed)
            tokens.append(token)
            if at >= size:
                return tokens, size, False
            if feed and text.startswith(feed, at):
                return tokens, at + 1, closed
            at += len(self._sep)
            if at >= size or (feed and text.startswith(feed, at)):
                tokens.append(None)
                return tokens, min(at + 1, size), at < size

    def _field(self, text: str, at: int, size: int, feed: str) -> tuple[Token, int, bool]:
        """One field and where it ends: at a separator, a line break or the end."""
        if self._leading:
            while at < size and text[at] in " \t":
                at += 1
        if self._quote and text.startswith(self._quote, at):
            quoted = self._quoted(text, at + 1, size, feed)
            if quoted is not None:
                return quoted
        end = self._end(text, at, size, feed)
        value = text[at:end]
        if self._trailing:
            value = value.rstrip(" \t")
        return value or None, end, True

    def _quoted(self, text: str, at: int, size: int, feed: str) -> tuple[Token, int, bool] | None:
        """None if a stray quote shows that the field is no quoted one."""
        out = list[str]()
        while at < size:
            char = text[at]
            if char == self._escape and text.startswith(self._quote, at + 1):
                out.append(self._quote)
                at += 2
            elif (
                char == self._before_escape
                and char != self._quote
                and text.startswith(self._escape, at + 1)
            ):
                out.append(self._escape)
                at += 2
            elif char == self._quote:
                end = at + 1
                while end < size and text[end] in " \t" and text[end] != self._sep:
                    end += 1
                if end < size and not text.startswith((self._sep, feed or self._sep), end):
                    return None
                return "".join(out) or self._empty, end, True
            else:
                out.append(char)
                at += 1
        return "".join(out) or self._empty, size, False

    def _end(self, text: str, at: int, size: int, feed: str) -> int:
        end = text.find(self._sep, at, size)
        end = size if end < 0 else end
        if feed:
            line = text.find(feed, at, end)
            end = end if line < 0 else line
        return end
