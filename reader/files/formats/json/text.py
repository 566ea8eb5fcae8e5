"""Parses one JSON text exactly: numbers keep their digits, extensions are allowed by option.

CPython's own parser takes what is plain JSON; the tolerant one below takes the rest. Not here:
what the values mean for a schema (`values.py`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from ...options import ReaderOptions

__all__ = ["JsonParser", "Number"]


class Number(str):
    """The digits of a number, as written."""

    __slots__ = ()


_PLAIN = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ZEROS = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[\w$@#*-]+")
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"[ \t\r\n]*(?:/\*.*?\*/|//[^\n]*)", re.DOTALL)
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NON_NUMBERS = ("NaN", "Infinity", "-Infinity", "+Infinity", "-INF", "+INF", "INF")
_WORDS = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 500


class JsonParser:
    """Parses texts under the `allow...` options."""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options

    def parse(self, text: str) -> Any:
        """The one value that `text` is. Raises ValueError with the position in characters."""
        try:
            value = _PLAIN.decode(text)
        except (ValueError, RecursionError):
            return _Tolerant(text, self._options).document()
        if not self._options.allow_non_numeric_numbers and ("NaN" in text or "Infinity" in text):
            return _Tolerant(text, self._options).document()
        return value


class _Tolerant:
    """Recursive descent with the extensions that the options allow."""

    def __init__(self, text: str, options: ReaderOptions) -> None:
        self._text, self._options, self._at, self._depth = text, options, 0, 0

    def document(self) -> Any:
        value = self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._error("the end of the record")
        return value

    def _error(self, expected: str) -> ValueError:
        rest = self._text[self._at : self._at + 20]
        found = repr(rest) if rest else "its end"
        return ValueError(f"{found} at character {self._at} of the record, expected {expected}")

    def _skip(self) -> None:
        if self._options.allow_comments:
            while match := _COMMENT.match(self._text, self._at):
                self._at = match.end()
        self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _peek(self) -> str:
        self._skip()
        return self._text[self._at : self._at + 1]

    def _take(self, char: str) -> bool:
        if self._peek() == char:
            self._at += 1
            return True
        return False

    def _value(self) -> Any:
        char = self._peek()
        if char and char in "{[":
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise self._error(f"at most {_MAX_DEPTH} levels")
            nested = self._object() if char == "{" else self._array()
            self._depth -= 1
            return nested
        if char == '"' or (char == "'" and self._options.allow_single_quotes):
            return self._string()
        for word in _NON_NUMBERS:
            if self._options.allow_non_numeric_numbers and self._word(word):
                return Number(word)
        for word, value in _WORDS.items():
            if self._word(word):
                return value
        return self._number()

    def _word(self, word: str) -> bool:
        end = self._at + len(word)
        if self._text.startswith(word, self._at) and not self._text[end : end + 1].isalnum():
            self._at = end
            return True
        return False

    def _number(self) -> Number:
        regex = _ZEROS if self._options.allow_numeric_leading_zeros else _NUMBER
        match = regex.match(self._text, self._at)
        if not match or self._text[match.end() : match.end() + 1].isalnum():
            raise self._error("a value")
        self._at = match.end()
        return Number(match[0])

    def _object(self) -> dict[str, Any]:
        self._at += 1
        found: dict[str, Any] = {}
        if self._take("}"):
            return found
        while True:
            name = self._name()
            if not self._take(":"):
                raise self._error("a colon")
            found[name] = self._value()
            if self._take("}"):
                return found
            if not self._take(","):
                raise self._error("a comma or }")

    def _name(self) -> str:
        char = self._peek()
        if char == '"' or (char == "'" and self._options.allow_single_quotes):
            return self._string()
        match = _NAME.match(self._text, self._at)
        if not match or not self._options.allow_unquoted_field_names:
            raise self._error("a field name in quotes")
        self._at = match.end()
        return match[0]

    def _array(self) -> list[Any]:
        self._at += 1
        found: list[Any] = []
        if self._take("]"):
            return found
        while True:
            found.append(self._value())
            if self._take("]"):
                return found
            if not self._take(","):
                raise self._error("a comma or ]")

    def _string(self) -> str:
        quote, out = self._text[self._at], list[str]()
        self._at += 1
        while True:
            char = self._text[self._at : self._at + 1]
            if not char:
                raise self._error("the end of a string")
            if char == quote:
                self._at += 1
                return _joined(out)
            if char == "\\":
                out.append(self._escape())
                continue
            if char < " " and not self._options.allow_unquoted_control_chars:
                raise self._error("no control character in a string")
            out.append(char)
            self._at += 1

    def _escape(self) -> str:
        char = self._text[self._at + 1 : self._at + 2]
        if char == "u":
            digits = self._text[self._at + 2 : self._at + 6]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise self._error("four hexadecimal digits")
            self._at += 6
            return chr(int(digits, 16))
        plain = _ESCAPES.get(char)
        if plain is None:
            single = char == "'" and self._options.allow_single_quotes
            if not char or not (single or self._options.allow_backslash_escaping_any_character):
                raise self._error("a known escape")
            plain = char
        self._at += 2
        return plain


def _joined(parts: list[str]) -> str:
    """Surrogate pairs that were written as two escapes become one character."""
    text = "".join(parts)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
