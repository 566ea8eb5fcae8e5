"""Base64 out of a JSON string, as far and as strictly as Spark's parser reads it.

Not here: base64 that is plain (`scalars.plain_base64`). Python's decoder cannot say where it
stopped.
"""

from __future__ import annotations

from .characters import Characters

__all__ = ["decoded"]

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PADDING = -1


def decoded(source: Characters) -> bytes:
    """The bytes, to the closing quote, in steps of four characters. Blanks may stand between them.

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


def _first(source: Characters) -> str:
    """The first character of four, or the quote that ends the string."""
    while (char := chr(source.byte())) <= " " or char == "\\":
        if char == "\\" and (char := source.escape()) > " ":
            # An escaped quote ends nothing.
            return char if char != '"' else "\\"
    return char


def _next(source: Characters, place: int) -> str:
    char = chr(source.byte())
    if char == '"' and place > 1:
        source.at -= 1
        source.fail("base64 without its padding")
    return source.escape() if char == "\\" else char


def _bits(source: Characters, char: str, place: int) -> int:
    if char == "=" and place > 1:
        return _PADDING
    value = _ALPHABET.find(char)
    if value < 0:
        source.fail(f"{char!r} in base64")
    return value
