"""One JSON text as msgspec reads it; what Spark takes beyond strict JSON is rewritten first.

A text is rewritten only if msgspec refuses it: UTF-16 and UTF-32, a byte order mark, single
surrogates, and what the options allow.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np

from ...options import ReaderOptions
from ...values.numbers import Number

T = TypeVar("T")

MAX_DEPTH = 1000
"""Levels of nesting that Spark's parser takes."""

_TOKEN = re.compile(
    rb""" "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | /\*.*?\*/ | //[^\r\n]* | [^\s\[\]{}:,"'/]+ """,
    re.DOTALL | re.VERBOSE,
)
_COLON = re.compile(rb"\s*:")
_NAME = re.compile(rb"[0-9A-Za-z_$@#*+\-\x80-\xff]+")
_IN_STRING = re.compile(rb'\\.|"', re.DOTALL)
_REQUOTED = {b"\\'": b"'", b'"': b'\\"'}
_SURROGATES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.",
    re.DOTALL,
)
_LONE = len(r"\ud800")
_NON_NUMBERS = ("NaN", "Infinity", "+Infinity", "+INF", "-Infinity", "-INF")
WORD_NUMBER = b"0e-777777777"
"""The beginning of numbers in place of words such as NaN; no writer makes such."""

_WORD_NUMBERS = {word.encode(): WORD_NUMBER + b"%d" % at for at, word in enumerate(_NON_NUMBERS)}
_WORD = re.compile(WORD_NUMBER + rb"(\d)")
_RECURSION = threading.Lock()


class NotJson(ValueError):
    """The text is not JSON."""


class NoRecord(NotJson):
    """The text has nothing but blanks and comments."""


def decoded(decoder: msgspec.json.Decoder[T], text: bytes, options: ReaderOptions) -> T:
    """Return what the decoder makes of a text.

    Raises:
        NotJson: the text is not JSON.
        msgspec.ValidationError: it is, and of another type.
    """
    try:
        str(text, "utf-8")
        return deep(decoder, text)
    except msgspec.ValidationError:
        raise
    except (UnicodeDecodeError, msgspec.DecodeError):
        pass
    try:
        strict = _strict(text, options)
        if not strict or strict.isspace():
            raise NoRecord("nothing but blanks")
        return deep(decoder, strict)
    except UnicodeDecodeError as err:
        byte = err.object[err.start]
        raise NotJson(f"the byte 0x{byte:02x}, which is not UTF-8, at {err.start}") from err
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as err:
        raise NotJson(str(err)) from err


_TREE = msgspec.json.Decoder(float_hook=Number)


def tree_of(text: bytes, options: ReaderOptions) -> Any:
    """Return a text as objects, lists and leaves; numbers but integers as written.

    Raises:
        ValueError: it is not JSON, or an integer has thousands of digits.
    """
    tree = decoded(_TREE, text, options)
    return _with_words(tree) if options.allow_non_numeric_numbers and b"N" in text else tree


def trees(record: bytes, options: ReaderOptions) -> list[Any]:
    """Return a record, or the elements that it has, parsed; nothing if it is not JSON."""
    try:
        value = tree_of(record, options)
    except (ValueError, msgspec.ValidationError):
        return []
    return value if isinstance(value, list) else [value]


def _with_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_words(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_words(inner) for inner in value]
    return Number(written(value.encode())) if type(value) is Number else value


def written(value: bytes) -> str:
    """Return a value other than a string as it was written."""
    if WORD_NUMBER in value:
        value = _WORD.sub(lambda found: _NON_NUMBERS[int(found[1])].encode(), value)
    return value.decode()


def deep(decoder: msgspec.json.Decoder[T], text: bytes) -> T:
    """Return what the decoder makes of a text of any depth that Spark's parser takes."""
    try:
        return decoder.decode(text)
    except RecursionError:
        plain = np.frombuffer(without_escapes(text), np.uint8)
        if int(nesting(plain, in_string=False)[1].max()) > MAX_DEPTH:
            raise NotJson(f"more than {MAX_DEPTH} levels of nesting") from None
    # The depth of Python's own calls must not decide whether a text is read.
    with _RECURSION:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + 2 * MAX_DEPTH)
        try:
            return decoder.decode(text)
        finally:
            sys.setrecursionlimit(limit)


def _strict(text: bytes, options: ReaderOptions) -> bytes:
    """Return the text as strict JSON in UTF-8, as far as the options allow. As Spark does it.

    Raises:
        UnicodeDecodeError: it is in no encoding of Unicode.
    """
    encoding = json.detect_encoding(text)
    if encoding == "utf-8-sig":
        text = text[3:] if len(text) > 3 else text
    elif encoding != "utf-8":
        text = text.decode(encoding, "replace").encode("utf-8", "replace")
    str(text, "utf-8")
    return _TOKEN.sub(partial(_strict_token, options), text)


def _strict_token(options: ReaderOptions, match: re.Match[bytes]) -> bytes:
    token, first = match[0], match[0][:1]
    is_name = _COLON.match(match.string, match.end()) is not None
    if first == b'"' or (first == b"'" and options.allow_single_quotes):
        inner = token[1:-1]
        if options.allow_single_quotes:
            inner = _IN_STRING.sub(lambda part: _REQUOTED.get(part[0], part[0]), inner)
        # Half of a surrogate pair is no character; Java writes a question mark for it.
        if not is_name:
            inner = _SURROGATES.sub(lambda p: b"?" if len(p[0]) == _LONE else p[0], inner)
        return b'"%s"' % inner
    if first == b"/":
        return b" " if options.allow_comments else token
    if is_name and options.allow_unquoted_field_names and _NAME.fullmatch(token):
        return b'"%s"' % token
    return _WORD_NUMBERS.get(token, token) if options.allow_non_numeric_numbers else token


_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_LEVELS = np.zeros(256, np.int8)
_LEVELS[[ord("["), ord("{")]] = 1
_LEVELS[[ord("]"), ord("}")]] = -1


def without_escapes(data: bytes) -> bytes:
    """`data` with blanks for what a backslash escapes."""
    return _ESCAPE.sub(b"  ", data) if b"\\" in data else data


def nesting(raw: np.ndarray, *, in_string: bool) -> tuple[np.ndarray, np.ndarray]:
    """For each byte of text without escapes, whether it is in a string, and how deep."""
    inside = np.logical_xor.accumulate(raw == ord('"')) ^ in_string
    steps = _LEVELS[raw]
    steps[inside] = 0
    return inside, np.cumsum(steps, dtype=np.int32)
