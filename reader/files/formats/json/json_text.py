"""The bytes of one JSON text as characters, strings, numbers and words, and where errors stop it.

Also the encoding of a record, by its first bytes; the option `encoding` decodes whole files instead
(`io/lines.py`).
"""

from __future__ import annotations

import re
from typing import NoReturn

from ...options import ReaderOptions
from .json_values import MAX_DIGITS

_BLANKS = re.compile(rb"[ \t\r\n]*")
_DIGITS = re.compile(rb"[0-9]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_RUN = {
    ord('"'): re.compile(rb'[^"\\\x00-\x1f\x80-\xff]*'),
    ord("'"): re.compile(rb"[^'\\\x00-\x1f\x80-\xff]*"),
}
_ESCAPES = {ord(a): b for a, b in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True)}
_LENGTHS = ((0xE0, 0xC0, 1), (0xF0, 0xE0, 2), (0xF8, 0xF0, 3))


class MalformedText(ValueError):
    """The text is not JSON."""


class JsonText:
    """A place in a text. After an error it is behind what could not be read."""

    def __init__(self, data: bytes, options: ReaderOptions) -> None:
        self.data, self.options, self.at = data, options, 0
        self.has_failed = False
        """True once the text was found not to be JSON."""
        self._skipping = False

    def fail(self, problem: str) -> NoReturn:
        """Raise the error for what was found."""
        self.has_failed = True
        raise MalformedText(f"{problem}, at byte {self.at} of the record")

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
        """Return the string whose quote has been taken, to its end."""
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
        """The same for a string that is not wanted, less strictly, as Spark skips it."""
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
        """Return the character of an escape whose backslash has been taken."""
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

    # `UTF8StreamJsonParser._skipWSOrEnd` of Jackson.
    def blanks(self) -> int | None:
        """Return the next byte that is no blank; None at the end."""
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
        """Return the next byte that is no blank."""
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
        """Return the first byte of the value after a colon."""
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
        # Jackson looks at what follows only from the digit 0 on: blanks and commas are below.
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

    def _non_number(self, word: str, matched: int) -> str:
        self.word(word, matched)
        if not self.options.allow_non_numeric_numbers:
            self.fail(f"{word}, which allowNonNumericNumbers does not allow")
        return "float"

    # `UTF8StreamJsonParser._handleInvalidNumberStart`.
    def _signed(self, char: int, sign: str) -> str:
        """Return what follows a sign and is no digit."""
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


def _joined(text: str) -> str:
    """Surrogate pairs that were written as two escapes become one character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _count_digits(text: bytes) -> int:
    return len(text) - len(text.translate(None, b"0123456789"))


def _is_word(char: str) -> bool:
    return (
        char.isalnum()
        or char in "_$"
        or (char < "\x20" and char not in "\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f")
    )


def recoded(data: bytes) -> tuple[bytes, bool]:
    """`data` in UTF-8 without a byte order mark, and whether it was in UTF-16 or UTF-32.

    Spark goes by a record's first four bytes, as JSON's first standard allowed.
    """
    if data.startswith(b"\xef\xbb\xbf") and len(data) > 3:
        return data[3:], False
    encoding = _wide_encoding(data[:4])
    if not encoding:
        return data, False
    text = data.decode(encoding, "replace").removeprefix("\ufeff")
    return text.encode("utf-8", "surrogatepass"), True


def _wide_encoding(head: bytes) -> str:
    if len(head) == 4:
        if head in (b"\0\0\xfe\xff", b"\xff\xfe\0\0"):
            return "utf-32-be" if head[0] == 0 else "utf-32-le"
        if head[:3] == b"\0\0\0" or head[1:] == b"\0\0\0":
            return "utf-32-be" if head[0] == 0 else "utf-32-le"
    if len(head) >= 2:
        if head[:2] in (b"\xfe\xff", b"\xff\xfe"):
            return "utf-16-be" if head[0] == 0xFE else "utf-16-le"
        if (head[0] == 0) != (head[1] == 0):
            return "utf-16-be" if head[0] == 0 else "utf-16-le"
    return ""


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PADDING = -1


def base64_value(source: JsonText) -> bytes:
    """Read base64 to the closing quote, as far and as strictly as Spark's parser does.

    Blanks may be between four characters. Python's decoder cannot say where it stopped.

    Raises:
        MalformedText: it is no base64, or without its padding.
    """
    out = bytearray()
    while True:
        char = _first(source)
        if char == '"':
            return bytes(out)
        group = _bits(source, char, 0) << 18 | _bits(source, _next(source, 1), 1) << 12
        third = _bits(source, _next(source, 2), 2)
        fourth = _bits(source, _next(source, 3), 3)
        if third == _PADDING:
            if fourth != _PADDING:
                source.fail("base64 without its second padding")
            out.append(group >> 16)
        else:
            group |= third << 6 | max(fourth, 0)
            out += group.to_bytes(3, "big")[: 2 if fourth == _PADDING else 3]


def _first(source: JsonText) -> str:
    """Return the first character of four, or the quote that ends the string."""
    while (char := chr(source.byte())) <= " " or char == "\\":
        if char == "\\" and (char := source.escape()) > " ":
            # An escaped quote ends nothing.
            return char if char != '"' else "\\"
    return char


def _next(source: JsonText, place: int) -> str:
    char = chr(source.byte())
    if char == '"' and place > 1:
        source.at -= 1
        source.fail("base64 without its padding")
    return source.escape() if char == "\\" else char


def _bits(source: JsonText, char: str, place: int) -> int:
    if char == "=" and place > 1:
        return _PADDING
    value = _ALPHABET.find(char)
    if value < 0:
        source.fail(f"{char!r} in base64")
    return value
