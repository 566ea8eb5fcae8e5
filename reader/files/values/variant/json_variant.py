"""Parsed JSON as Spark's `variant`: two byte strings, one with the names and one with the values.

The choices (smallest integers, decimals for plain fractions) are those of Spark's `VariantBuilder`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

from ..numbers import Number
from .variant_encoding import (
    NULL,
    Names,
    array_of,
    boolean_of,
    decimal_of,
    double_of,
    integer_of,
    metadata_of,
    object_of,
    text_of,
)

_MAX_BYTES = 16 * 1024 * 1024
"""Spark's limit for each of the two byte strings; offsets have at most three bytes."""

_END = object()
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")


def encode(value: Any) -> dict[str, bytes]:
    """`value` and `metadata` of a parsed value, its numbers as `Number` or `int`.

    Raises:
        ValueError: it is too large, or no JSON value.
    """
    names: Names = {}
    encoded = _encode(value, names)
    metadata = metadata_of(names)
    if max(len(encoded), len(metadata)) > _MAX_BYTES:
        raise ValueError(f"a variant of more than {_MAX_BYTES} bytes")
    return {"value": encoded, "metadata": metadata}


def _encode(value: Any, names: Names) -> bytes:
    """Return the value's bytes. No recursion: a thousand levels are allowed."""
    open_parts = [_Open([value], names)]
    while True:
        current = open_parts[-1]
        item = next(current.items, _END)
        if item is _END:
            open_parts.pop()
            if not open_parts:
                return current.parts[0]
            open_parts[-1].parts.append(current.encoded())
        elif isinstance(item, (dict, list)):
            open_parts.append(_Open(item, names))
        else:
            current.parts.append(_scalar(item))


class _Open:
    """An object or array whose items are being encoded, one after the other."""

    def __init__(self, value: dict[str, Any] | list[Any], names: Names) -> None:
        self.items = _numbered(value, names) if isinstance(value, dict) else iter(value)
        self.parts: list[bytes] = []
        self._value, self._names = value, names

    def encoded(self) -> bytes:
        if isinstance(self._value, list):
            return array_of(self.parts)
        return object_of(dict(zip(self._value, self.parts, strict=True)), self._names)


def _numbered(fields: dict[str, Any], names: Names) -> Iterator[Any]:
    for name, item in fields.items():
        # Only now: a name counts behind those within the values before it.
        names.setdefault(name, len(names))
        yield item


def _scalar(value: Any) -> bytes:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return boolean_of(value)
    if type(value) in (int, Number):
        return _number(str(value))
    if isinstance(value, str):
        return text_of(value)
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def _number(digits: str) -> bytes:
    if digits.removeprefix("-").isdigit():
        number = int(digits)
        # Beyond, `VariantBuilder` makes decimals of integers, too.
        if -(1 << 63) <= number < 1 << 63:
            return integer_of(number)
    if _PLAIN.fullmatch(digits):
        # Unless it has more than 38 digits.
        with suppress(ValueError):
            return decimal_of(Decimal(digits))
    return double_of(float(digits))
