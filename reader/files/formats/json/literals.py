"""What is between the strings of JSON: blanks, comments, numbers and words.

Not here: structure (`tokenizer.py`), what numbers mean (`json_scalars.py`).
"""

from __future__ import annotations

import re
from typing import NoReturn

from .characters import Characters
from .jackson_limits import MAX_DIGITS

__all__ = ["Literals"]

_BLANKS = re.compile(rb"[ \t\r\n]*")
_DIGITS = re.compile(rb"[0-9]*")


class Literals(Characters):
    """Takes one blank, number or word after the other."""

    # `UTF8StreamJsonParser._skipWSOrEnd` of Jackson.
    def blanks(self) -> int | None:
        """The next byte that is no blank; None at the end."""
        while True:
            self.at = _BLANKS.match(self.data, self.at).end()  # type: ignore[union-attr]
            if self.at >= len(self.data):
                return None
            char = self.byte()
            if char == ord("/"):
                self._comment()
            elif char < 0x20:
                self.fail(f"the control character {chr(char)!r}")
            else:
                return char

    def significant(self) -> int:
        """The next byte that is no blank."""
        char = self.blanks()
        return self.end_of_text() if char is None else char

    # `UTF8StreamJsonParser._skipComment`.
    def _comment(self) -> None:
        if not self.options.allow_comments:
            self.fail("a comment, which allowComments does not allow")
        char = self.byte()
        if char == ord("*"):
            end = self.data.find(b"*/", self.at)
            self.at = len(self.data) if end < 0 else end + 2
            if end < 0:
                self.end_of_text()
        elif char == ord("/"):
            ends = [p for p in (self.data.find(c, self.at) for c in (b"\n", b"\r")) if p >= 0]
            self.at = min(ends, default=len(self.data) - 1) + 1
        else:
            self.fail("a slash that does not begin a comment")

    def colon(self) -> int:
        """The first byte of the value after a colon."""
        if (char := self.significant()) != ord(":"):
            self.fail(f"{chr(char)!r} where a colon is expected")
        return self.significant()

    # `UTF8StreamJsonParser._matchToken`, and `_checkMatchEnd` for what follows the word.
    def word(self, word: str, matched: int) -> None:
        """Take the rest of a word, of which so many bytes have been taken."""
        for expected in word[matched:].encode():
            if self.at >= len(self.data) or self.data[self.at] != expected:
                self.unknown_word()
            self.at += 1
        if self.at < len(self.data) and self.data[self.at] >= 0x30:
            begin = self.at
            if self.data[begin] not in b"]}" and _is_word(self.character(self.byte())):
                self.at = begin
                self.unknown_word()
            self.at = begin

    # `UTF8StreamJsonParser._reportInvalidToken`.
    def unknown_word(self) -> NoReturn:
        """Raise the error for a word that JSON does not have; what follows it is taken as well."""
        begin = self.at
        while self.at < len(self.data) and _is_word(self.character(self.byte())):
            pass
        self.fail(f"an unknown word with {self.data[begin : self.at][:20]!r}")

    def begins_number(self, char: int) -> bool:
        """True if a number, or a word for not-a-number, may begin so."""
        return 0x30 <= char <= 0x39 or char in b"-+NI"

    def _non_number(self, word: str, matched: int) -> str:
        self.word(word, matched)
        if not self.options.allow_non_numeric_numbers:
            self.fail(f"{word}, which allowNonNumericNumbers does not allow")
        return "float"

    # `UTF8StreamJsonParser._handleInvalidNumberStart`.
    def _signed(self, char: int, sign: str) -> str:
        """What follows a sign and is no digit."""
        if char == ord("I"):
            char = self.byte()
            if char in b"Nn":
                return self._non_number(sign + ("INF" if char == ord("N") else "Infinity"), 3)
        return self.fail(f"{chr(char)!r} after {sign}")

    def number(self, char: int) -> str:
        """Take the rest of a number: `int` or `float`. A word for no number is a float."""
        begin = self.at - 1
        if char in b"NI":
            return self._non_number("NaN" if char == ord("N") else "Infinity", 1)
        if char in b"-+":
            sign, char = chr(char), self.byte()
            if sign == "+" or not 0x30 <= char <= 0x39:
                return self._signed(char, sign)
        if char == 0x30:
            self._leading_zeros()
        self._digits()
        has_fraction = self._fraction()
        has_exponent = self._exponent()
        if self.at - begin > MAX_DIGITS and _count_digits(self.data[begin : self.at]) > MAX_DIGITS:
            self.fail(f"a number of more than {MAX_DIGITS} digits")
        return "float" if has_exponent or has_fraction else "int"

    def _fraction(self) -> bool:
        if self.data[self.at : self.at + 1] != b".":
            return False
        self.at += 1
        if not self._digits():
            # Jackson has taken the byte after the point by then, and goes on behind it.
            self.at = min(self.at + 1, len(self.data))
            self.fail("a decimal point without a digit")
        return True

    def _exponent(self) -> bool:
        if self.data[self.at : self.at + 1] not in (b"e", b"E"):
            return False
        self.at += 1
        char = self.byte()
        if char in b"+-":
            char = self.byte()
        if not 0x30 <= char <= 0x39:
            self.fail("an exponent without a digit")
        self._digits()
        return True

    # `UTF8StreamJsonParser._verifyNoLeadingZeroes`.
    def _leading_zeros(self) -> None:
        following = self.data[self.at : self.at + 1]
        if following.isdigit() and not self.options.allow_numeric_leading_zeros:
            self.fail("a number with leading zeros")

    def _digits(self) -> bool:
        begin = self.at
        self.at = _DIGITS.match(self.data, begin).end()  # type: ignore[union-attr]
        return self.at > begin


def _count_digits(text: bytes) -> int:
    return len(text) - len(text.translate(None, b"0123456789"))


def _is_word(char: str) -> bool:
    return (
        char.isalnum()
        or char in "_$"
        or (char < "\x20" and char not in "\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f")
    )
