"""Splits one JSON text into tokens as Spark's parser does, its errors and their places included.

Spark reads JSON with Jackson's parser of bytes. What a record that is not JSON still gives depends
on where that parser notices: it takes the scalar after a name together with the name, strings only
when they are asked for, and continues behind what it could not read. Here this is rebuilt, so
that a bad value costs as many of its neighbours as it costs in Spark, and no more.

Base64 is read as far and as strictly as by Spark's parser; Python's decoder cannot say where it
stopped. Tried instead: `json`, msgspec and pyarrow say no more than that a text is wrong, and keep
neither duplicate names nor how values were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...options import ReaderOptions
from .jackson_limits import MAX_DEPTH, MAX_NAME, MAX_STRING
from .json_text import SURROGATES, JsonText, MalformedText

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PADDING = -1


def base64_value(source: JsonText) -> bytes:
    """The bytes, to the closing quote, in steps of four characters. Blanks may be between them.

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
    """The first character of four, or the quote that ends the string."""
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


Found = str | None
"""`{ } [ ]`, `name`, `string`, `int`, `float`, `true`, `false`, `null`, or None at the end."""

_UNQUOTED = re.compile(rb"[0-9A-Za-z_$@#*+\-\x80-\xff]+")
_WORDS = {ord("t"): "true", ord("f"): "false", ord("n"): "null"}


@dataclass(slots=True)
class _Context:
    """What has been opened and not closed: `{`, `[`, or nothing for the text itself."""

    kind: str
    entries: int = 0
    name: str | None = None


class TokenStream(JsonText):
    """The tokens of one text. After an error it can be asked on, as Spark does."""

    def __init__(self, data: bytes, options: ReaderOptions) -> None:
        super().__init__(data, options)
        self.found: Found = None
        """The current token."""
        self._contexts = [_Context("")]
        self._after_name: Found = None
        self._unread = False
        self._text = ""
        self._start = 0

    @property
    def name(self) -> str | None:
        """The name of the current field; that of a value that has just been opened too."""
        depth = -2 if self.found in ("{", "[") and len(self._contexts) > 1 else -1
        return self._contexts[depth].name

    def text(self) -> str:
        """The current string, or the digits of the current number.

        Raises:
            MalformedText: the string does not end well; it stays read up to there.
        """
        text = self._read()
        if (
            # A character is at most two units of UTF-16, so shorter strings need no closer look.
            len(text) > MAX_STRING // 2
            and len(text.encode("utf-16-le", "replace")) > 2 * MAX_STRING
        ):
            self.fail(f"a string of more than {MAX_STRING} characters")
        return text

    def _read(self) -> str:
        if self.found == "string" and self._unread:
            self._unread = False
            self._text = ""
            self._text = self.string(ord('"'))
        return self._text

    def raw(self) -> bytes:
        """The current value as it was written; what was opened is read to its end."""
        begin = self._start
        self._read()
        self.skip_children()
        return self.data[begin : self.at]

    def base64(self) -> bytes:
        """The current string's bytes, from base64 with all of its padding."""
        if not self._unread:
            # In single quotes, which are read at once.
            again = self._text.encode("utf-8", "replace") + b'"'
            return base64_value(JsonText(again, self.options))
        decoded = base64_value(self)
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
                self.end_of_text()
            depth += (found in ("{", "[")) - (found in ("}", "]"))

    def ends(self) -> bool:
        """True if nothing but blanks and comments is left."""
        try:
            return self.blanks() is None
        except MalformedText:
            return False

    # `UTF8StreamJsonParser.nextToken`; the value of a name is taken by `_nextAfterName`.
    def next(self) -> Found:
        """Go to the next token. None at the end, or if a name has no value."""
        if self.found == "name":
            found, self._after_name = self._after_name, None
            self._open(found)
            self.found = found
            return found
        # A value that nobody has asked for.
        if self._unread:
            self._unread = False
            self.skip_string()
        char = self.blanks()
        if char is None:
            if len(self._contexts) > 1:
                self.end_of_text()
            self.found = None
        elif char in b"]}":
            self._close(chr(char))
        else:
            self._entry(char)
        return self.found

    def _entry(self, char: int) -> None:
        context = self._contexts[-1]
        context.entries += 1
        if len(self._contexts) > 1 and context.entries > 1:
            if char != ord(","):
                self.fail(f"{chr(char)!r} where a comma is expected")
            char = self.significant()
        if context.kind == "{":
            context.name = self._name(char)
            self.found = "name"
            char = self.colon()
            self._after_name = self._value(char)
        else:
            found = self._value(char)
            self._open(found)
            self.found = found

    def _open(self, found: Found) -> None:
        if found not in ("{", "["):
            return
        self._contexts.append(_Context(found))
        if len(self._contexts) - 1 > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} levels of nesting")

    def _close(self, char: str) -> None:
        self._start = self.at - 1
        if self._contexts[-1].kind != {"]": "[", "}": "{"}[char]:
            self.fail(f"{char!r} without an opening bracket")
        self._contexts.pop()
        self.found = char

    def _name(self, char: int) -> str:
        if char == ord('"') or (char == ord("'") and self.options.allow_single_quotes):
            name = self.string(char)
            if SURROGATES.search(name):
                self.fail("half of a surrogate pair in a name")
        else:
            match = _UNQUOTED.match(self.data, self.at - 1)
            if not self.options.allow_unquoted_field_names or not match:
                self.fail(f"{chr(char)!r} where a name in quotes is expected")
            self.at = match.end()
            name = match[0].decode("utf-8", "replace")
        # A character has at most four bytes, so shorter names need no closer look.
        if len(name) > MAX_NAME // 4 and len(name.encode("utf-8", "replace")) > MAX_NAME:
            self.fail(f"a name of more than {MAX_NAME} bytes")
        return name

    def _value(self, char: int) -> str:
        self._start = self.at - 1
        if char == ord('"'):
            # Jackson reads a string when it is asked for: one in a field that nobody wants is
            # skipped less strictly.
            self._unread = True
            return "string"
        if char in b"{[":
            return chr(char)
        if char in _WORDS:
            self.word(_WORDS[char], 1)
            return _WORDS[char]
        if 0x30 <= char <= 0x39 or char in b"-+NI":
            found = self.number(char)
            self._text = self.data[self._start : self.at].decode()
            return found
        if char == ord("'") and self.options.allow_single_quotes:
            self._text = self.string(char)
            return "string"
        if chr(char).isalpha() or chr(char) in "_$":
            self.unknown_word()
        return self.fail(f"{chr(char)!r} where a value is expected")
