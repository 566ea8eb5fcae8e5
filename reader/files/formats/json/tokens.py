"""Splits one JSON text into tokens the way Spark's parser does, its errors and their places included.

Spark reads JSON with Jackson's parser of bytes. What a record that is not JSON still gives depends on
where that parser notices: it takes the scalar after a name together with the name, strings only
when they are asked for, and goes on behind whatever it could not read. Here this is rebuilt, so that
a bad value costs as many of its neighbours as it costs in Spark, and no more.

Not here: what tokens mean for a schema (`values.py`). Tried instead: `json`, msgspec and pyarrow say
no more than that a text is wrong, and keep neither duplicate names nor how values were written.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ...options import ReaderOptions

__all__ = ["HALVES", "MAX_DEPTH", "MAX_DIGITS", "MalformedText", "Token", "TokenStream", "recoded"]

MAX_DEPTH = 1000
"""Levels of nesting and, below, digits of a number: what Jackson allows by default."""

MAX_DIGITS = 1000

Token = str | None
"""`{ } [ ]`, `name`, `string`, `int`, `float`, `true`, `false`, `null`, or None at the end."""

HALVES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which are no characters."""

_BLANKS = re.compile(rb"[ \t\r\n]*")
_DIGITS = re.compile(rb"[0-9]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_RUN = {
    ord('"'): re.compile(rb'[^"\\\x00-\x1f\x80-\xff]*'),
    ord("'"): re.compile(rb"[^'\\\x00-\x1f\x80-\xff]*"),
}
_UNQUOTED = re.compile(rb"[0-9A-Za-z_$@#*+\-\x80-\xff]+")
_HEX = re.compile(rb"[0-9a-fA-F]*")
_ESCAPES = {ord(a): b for a, b in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True)}
_WORDS = {ord("t"): "true", ord("f"): "false", ord("n"): "null"}
_CONTEXT_NAME, _CONTEXT_INDEX, _CONTEXT_KIND = range(3)


class MalformedText(ValueError):
    """The text is not JSON, or a value not of the kind that was asked for."""


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


class TokenStream:
    """The tokens of one text. After an error it can be asked on, as Spark does."""

    def __init__(self, data: bytes, options: ReaderOptions) -> None:
        self._data, self._options, self._at = data, options, 0
        self._contexts: list[list[object]] = [["", -1, ""]]
        self._contexts[0][_CONTEXT_NAME] = None
        self._after_name: Token = None
        self._unread = False
        self._text = ""
        self._start = 0
        self.found: Token = None

    # What the current found is.

    @property
    def name(self) -> str | None:
        """The name of the current field; that of a value that has just been opened too."""
        depth = -2 if self.found in ("{", "[") and len(self._contexts) > 1 else -1
        name = self._contexts[depth][_CONTEXT_NAME]
        return name if isinstance(name, str) else None

    def text(self) -> str:
        """The current string, or the digits of the current number.

        Raises:
            MalformedText: the string does not end well; it stays read up to there.
        """
        if self.found == "string" and self._unread:
            self._unread = False
            self._text = ""
            self._text = self._string(ord('"'))
        return self._text

    def raw(self) -> bytes:
        """The current value as it was written; what was opened is read to its end."""
        begin = self._start
        self.text()
        self.skip_children()
        return self._data[begin : self._at]

    def base64(self) -> bytes:
        """The current string's bytes, from base64 with all of its padding."""
        if not self._unread:
            return _Base64(
                TokenStream((self._text + '"').encode("utf-8", "replace"), self._options)
            ).read()
        decoded = _Base64(self).read()
        self._unread = False
        return decoded

    def skip_children(self) -> None:
        """If the current token opens something, go to the token that closes it."""
        if self.found not in ("{", "["):
            return
        depth = 1
        while depth:
            found = self.next()
            if found is None:
                self._end_of_text()
                return
            depth += (found in ("{", "[")) - (found in ("}", "]"))

    def ends(self) -> bool:
        """True if nothing but blanks and comments is left."""
        try:
            return self._blanks() is None
        except MalformedText:
            return False

    def next(self) -> Token:
        """Go to the next token. None if there is none, or the value after a name was none."""
        if self.found == "name":
            found, self._after_name = self._after_name, None
            if found in ("{", "["):
                self._open(found)
            self.found = found
            return found
        if self._unread:
            self._unread = False
            self._string(ord('"'))
        char = self._blanks()
        if char is None:
            if len(self._contexts) > 1:
                self._end_of_text()
            self.found = None
            return None
        if char in b"]}":
            self._close(chr(char))
            return self.found
        context = self._contexts[-1]
        index = context[_CONTEXT_INDEX]
        assert isinstance(index, int)
        context[_CONTEXT_INDEX] = index + 1
        if len(self._contexts) > 1 and index >= 0:
            if char != ord(","):
                self._fail(f"{chr(char)!r} where a comma is expected")
            char = self._significant()
        if context[_CONTEXT_KIND] == "{":
            context[_CONTEXT_NAME] = self._name(char)
            self.found = "name"
            char = self._colon()
            self._after_name = self._value(char)
        else:
            found = self._value(char)
            if found in ("{", "["):
                self._open(found)
            self.found = found
        return self.found

    # Structure.

    def _open(self, kind: str) -> None:
        self._contexts.append([None, -1, kind])
        if len(self._contexts) - 1 > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} levels of nesting")

    def _close(self, char: str) -> None:
        opened = "[" if char == "]" else "{"
        self._start = self._at - 1
        if self._contexts[-1][_CONTEXT_KIND] != opened:
            self._fail(f"{char!r} that closes nothing")
        self._contexts.pop()
        self.found = char

    def _fail(self, found: str) -> NoReturn:
        raise MalformedText(f"{found}, at byte {self._at} of the record")

    def _end_of_text(self) -> NoReturn:
        self._fail("the end of the record too early")

    def _byte(self) -> int:
        if self._at >= len(self._data):
            self._end_of_text()
        self._at += 1
        return self._data[self._at - 1]

    def _blanks(self) -> int | None:
        """The next byte that is no blank; None at the end."""
        while True:
            self._at = _BLANKS.match(self._data, self._at).end()  # type: ignore[union-attr]
            if self._at >= len(self._data):
                return None
            char = self._byte()
            if char == ord("/"):
                self._comment()
            elif char < 0x20:
                self._fail(f"the control character {chr(char)!r}")
            else:
                return char

    def _significant(self) -> int:
        char = self._blanks()
        return self._end_of_text() if char is None else char

    def _comment(self) -> None:
        if not self._options.allow_comments:
            self._fail("a comment, which allowComments does not allow")
        char = self._byte()
        if char == ord("*"):
            end = self._data.find(b"*/", self._at)
            self._at = len(self._data) if end < 0 else end + 2
            if end < 0:
                self._end_of_text()
        elif char == ord("/"):
            ends = [p for p in (self._data.find(c, self._at) for c in (b"\n", b"\r")) if p >= 0]
            self._at = min(ends, default=len(self._data) - 1) + 1
        else:
            self._fail("a slash that begins no comment")

    def _colon(self) -> int:
        if (char := self._significant()) != ord(":"):
            self._fail(f"{chr(char)!r} where a colon is expected")
        return self._significant()

    def _name(self, char: int) -> str:
        if char == ord('"') or (char == ord("'") and self._options.allow_single_quotes):
            return self._string(char, is_name=True)
        match = _UNQUOTED.match(self._data, self._at - 1)
        if not self._options.allow_unquoted_field_names or not match:
            self._fail(f"{chr(char)!r} where a name in quotes is expected")
        self._at = match.end()
        return match[0].decode("utf-8", "replace")

    # Values.

    def _value(self, char: int) -> str:
        self._start = self._at - 1
        if char == ord('"'):
            self._unread = True
            return "string"
        if char in b"{[":
            return chr(char)
        if char in _WORDS:
            self._word(_WORDS[char], 1)
            return _WORDS[char]
        if char == ord("-") or 0x30 <= char <= 0x39:
            return self._number(char)
        if char == ord("'") and self._options.allow_single_quotes:
            self._text = self._string(char)
            return "string"
        if char == ord("N"):
            return self._non_number("NaN", 1)
        if char == ord("I"):
            return self._non_number("Infinity", 1)
        if char == ord("+"):
            return self._signed(self._byte(), "+")
        self._fail(f"{chr(char)!r} where a value is expected")

    def _word(self, word: str, matched: int) -> None:
        for expected in word[matched:].encode():
            if self._at >= len(self._data) or self._data[self._at] != expected:
                self._unknown_word()
            self._at += 1
        if self._at < len(self._data) and self._data[self._at] >= 0x30:
            begin = self._at
            if self._data[begin] not in b"]}" and _is_word(self._character(self._byte())):
                self._at = begin
                self._unknown_word()
            self._at = begin

    def _unknown_word(self) -> NoReturn:
        begin = self._at
        while self._at < len(self._data) and _is_word(self._character(self._byte())):
            pass
        self._fail(f"an unknown word with {self._data[begin : self._at][:20]!r}")

    def _non_number(self, word: str, matched: int) -> str:
        self._word(word, matched)
        if not self._options.allow_non_numeric_numbers:
            self._fail(f"{word}, which allowNonNumericNumbers does not allow")
        self._text = word
        return "float"

    def _signed(self, char: int, sign: str) -> str:
        """What follows a sign and is no digit."""
        if char == ord("I"):
            char = self._byte()
            if char in b"Nn":
                return self._non_number(sign + ("INF" if char == ord("N") else "Infinity"), 3)
        self._fail(f"{chr(char)!r} after {sign}")

    def _number(self, char: int) -> str:
        kind = "int"
        if char == ord("-"):
            char = self._byte()
            if not 0x30 <= char <= 0x39:
                return self._signed(char, "-")
        if char == 0x30:
            self._leading_zeros()
        self._digits()
        if self._data[self._at : self._at + 1] == b".":
            kind = "float"
            self._at += 1
            if not self._digits():
                self._at = min(self._at + 1, len(self._data))
                self._fail("a decimal point without a digit")
        if self._data[self._at : self._at + 1] in (b"e", b"E"):
            kind = "float"
            self._at += 1
            char = self._byte()
            if char in b"+-":
                char = self._byte()
            if not 0x30 <= char <= 0x39:
                self._fail("an exponent without a digit")
            self._digits()
        self._text = self._data[self._start : self._at].decode()
        return kind

    def _leading_zeros(self) -> None:
        following = self._data[self._at : self._at + 1]
        if following.isdigit() and not self._options.allow_numeric_leading_zeros:
            self._fail("a number with leading zeros")

    def _digits(self) -> bool:
        begin = self._at
        self._at = _DIGITS.match(self._data, begin).end()  # type: ignore[union-attr]
        return self._at > begin

    # Characters.

    def _string(self, quote: int, *, is_name: bool = False) -> str:
        """The string whose quote has been taken, to its end."""
        if quote == ord('"') and not is_name:
            match = _PLAIN.match(self._data, self._at)
            assert match is not None
            if self._data[match.end() : match.end() + 1] == b'"':
                try:
                    text = match[0].decode()
                except UnicodeDecodeError:
                    pass
                else:
                    self._at = match.end() + 1
                    return text
        parts = list[str]()
        while True:
            match = _RUN[quote].match(self._data, self._at)
            assert match is not None
            parts.append(match[0].decode())
            self._at = match.end()
            char = self._byte()
            if char == quote:
                text = _joined("".join(parts))
                if is_name and HALVES.search(text):
                    self._fail("half of a surrogate pair in a name")
                return text
            parts.append(self._odd(char))

    def _odd(self, char: int) -> str:
        if char == ord("\\"):
            return self._escape()
        if char < 0x20 and not self._options.allow_unquoted_control_chars:
            self._fail(f"the control character {chr(char)!r} in a string")
        return self._character(char)

    def _escape(self) -> str:
        char = self._byte()
        if char == ord("u"):
            value = 0
            for _ in range(4):
                char = self._byte()
                if chr(char) not in "0123456789abcdefABCDEF":
                    self._fail(f"{chr(char)!r} where a hexadecimal digit is expected")
                value = value << 4 | int(chr(char), 16)
            return chr(value)
        if char in _ESCAPES:
            return _ESCAPES[char]
        single = char == ord("'") and self._options.allow_single_quotes
        other = self._character(char)
        if not single and not self._options.allow_backslash_escaping_any_character:
            self._fail(f"the unknown escape \\{other}")
        return other

    def _character(self, first: int) -> str:
        """The character of which the first byte has been taken; halves of pairs may come so too."""
        if first < 0x80:
            return chr(first)
        for mask, lead, more in ((0xE0, 0xC0, 1), (0xF0, 0xE0, 2), (0xF8, 0xF0, 3)):
            if first & mask == lead:
                code = first & ~mask & 0xFF
                for _ in range(more):
                    byte = self._byte()
                    if byte & 0xC0 != 0x80:
                        self._fail(f"the byte 0x{byte:02x}, which is not UTF-8")
                    code = code << 6 | byte & 0x3F
                if 0xD800 <= code < 0xE000:
                    self._fail("half of a surrogate pair, which is not UTF-8")
                return chr(code) if code < 0x110000 else "\ufffd"
        self._fail(f"the byte 0x{first:02x}, which is not UTF-8")


class _Base64:
    """Decodes base64 out of a stream's string, to the quote, in steps of four characters."""

    def __init__(self, stream: TokenStream) -> None:
        self._stream = stream

    def read(self) -> bytes:
        out = bytearray()
        while True:
            bits = self._first()
            if bits is None:
                return bytes(out)
            group = [bits, self._next(1)]
            third = self._next(2)
            if third < 0:
                if self._next(3) >= 0:
                    self._stream._fail("base64 without its second padding")
                out.append((group[0] << 2 | group[1] >> 4) & 0xFF)
                continue
            fourth = self._next(3)
            value = group[0] << 18 | group[1] << 12 | third << 6 | max(fourth, 0)
            out += value.to_bytes(3, "big")[: 2 if fourth < 0 else 3]

    def _first(self) -> int | None:
        """The first of four; None at the end of the string."""
        while True:
            char = self._stream._byte()
            if char <= 0x20:
                continue
            if char == ord('"'):
                return None
            if char == ord("\\"):
                char = self._escaped()
                if char <= 0x20:
                    continue
            return self._bits(char, 0)

    def _next(self, place: int) -> int:
        """One of the others; -1 for padding."""
        char = self._stream._byte()
        if char == ord('"') and place >= 2:
            self._stream._at -= 1
            self._stream._fail("base64 without its padding")
        if char == ord("\\"):
            char = self._escaped()
        return self._bits(char, place)

    def _escaped(self) -> int:
        return ord(self._stream._escape())

    def _bits(self, char: int, place: int) -> int:
        if char == ord("=") and place >= 2:
            return -1
        value = _ALPHABET.find(chr(char))
        if value < 0:
            self._stream._fail(f"{chr(char)!r} in base64")
        return value


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _is_word(char: str) -> bool:
    return (
        char.isalnum()
        or char in "_$"
        or (char < "\x20" and char not in "\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f")
    )


def _joined(text: str) -> str:
    """Surrogate pairs that were written as two escapes become one character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
