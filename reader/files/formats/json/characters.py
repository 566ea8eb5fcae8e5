"""Bytes of one JSON text as characters and strings; where reading stops at an error.

Not here: what strings are for (`literals.py`, `tokenizer.py`).
"""

from __future__ import annotations

import re
from typing import NoReturn

from ...options import ReaderOptions

__all__ = ["SURROGATES", "Characters", "MalformedText"]

SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which are no characters."""

_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_RUN = {
    ord('"'): re.compile(rb'[^"\\\x00-\x1f\x80-\xff]*'),
    ord("'"): re.compile(rb"[^'\\\x00-\x1f\x80-\xff]*"),
}
_ESCAPES = {ord(a): b for a, b in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True)}
_LENGTHS = ((0xE0, 0xC0, 1), (0xF0, 0xE0, 2), (0xF8, 0xF0, 3))


class MalformedText(ValueError):
    """The text is not JSON."""


class Characters:
    """A place in a text. After an error it is behind what could not be read."""

    def __init__(self, data: bytes, options: ReaderOptions) -> None:
        self.data, self.options, self.at = data, options, 0
        self.has_failed = False
        """True once the text was found not to be JSON."""
        self._skipping = False

    def fail(self, found: str) -> NoReturn:
        """Raise the error for what was found."""
        self.has_failed = True
        raise MalformedText(f"{found}, at byte {self.at} of the record")

    def end_of_text(self) -> NoReturn:
        """Raise the error for a text that ends too early."""
        self.fail("an unexpected end of the record")

    def byte(self) -> int:
        """Take the next byte; the end of the record is an error."""
        if self.at >= len(self.data):
            self.end_of_text()
        self.at += 1
        return self.data[self.at - 1]

    # `UTF8StreamJsonParser._finishString`, and `_handleApos` in single quotes.
    def string(self, quote: int) -> str:
        """The string whose quote has been taken, to its end."""
        if quote == ord('"'):
            match = _PLAIN.match(self.data, self.at)
            assert match is not None
            # Most strings have neither escapes nor control characters, and are decoded at once.
            if self.data[match.end() : match.end() + 1] == b'"':
                try:
                    text = match[0].decode()
                except UnicodeDecodeError:
                    pass
                else:
                    self.at = match.end() + 1
                    return text
        parts = list[str]()
        while True:
            match = _RUN[quote].match(self.data, self.at)
            assert match is not None
            parts.append(match[0].decode())
            self.at = match.end()
            char = self.byte()
            if char == quote:
                return _joined("".join(parts))
            parts.append(self._odd(char))

    # `UTF8StreamJsonParser._skipString`.
    def skip_string(self) -> None:
        """The same for a string that nobody wants, less strictly, as Spark skips it."""
        self._skipping = True
        try:
            self.string(ord('"'))
        finally:
            self._skipping = False

    def _odd(self, char: int) -> str:
        if char == ord("\\"):
            return self.escape()
        if char < 0x20 and not self.options.allow_unquoted_control_chars:
            self.fail(f"the control character {chr(char)!r} in a string")
        return self.character(char)

    # `UTF8StreamJsonParser._decodeEscaped`.
    def escape(self) -> str:
        """The character of an escape whose backslash has been taken."""
        char = self.byte()
        if char == ord("u"):
            value = 0
            for _ in range(4):
                char = self.byte()
                if chr(char) not in "0123456789abcdefABCDEF":
                    self.fail(f"{chr(char)!r} where a hexadecimal digit is expected")
                value = value << 4 | int(chr(char), 16)
            return chr(value)
        if char in _ESCAPES:
            return _ESCAPES[char]
        single = char == ord("'") and self.options.allow_single_quotes
        other = self.character(char)
        if not single and not self.options.allow_backslash_escaping_any_character:
            self.fail(f"the unknown escape \\{other}")
        return other

    # `UTF8StreamJsonParser._decodeUtf8_2` to `_decodeUtf8_4`.
    def character(self, first: int) -> str:
        """The character of which the first byte has been taken; may be a single surrogate."""
        if first < 0x80:
            return chr(first)
        for mask, lead, more in _LENGTHS:
            if first & mask == lead:
                code = first & ~mask & 0xFF
                for _ in range(more):
                    byte = self.byte()
                    if byte & 0xC0 != 0x80:
                        self.fail(f"the byte 0x{byte:02x}, which is not UTF-8")
                    code = code << 6 | byte & 0x3F
                if 0xD800 <= code < 0xE000 and not self._skipping:
                    self.fail("half of a surrogate pair, which is not UTF-8")
                return chr(code) if code < 0x110000 else "\ufffd"
        return self.fail(f"the byte 0x{first:02x}, which is not UTF-8")


def _joined(text: str) -> str:
    """Surrogate pairs that were written as two escapes become one character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
