"""Parsed JSON as Spark's `variant`: two byte strings, one with the names and one with the values.

The choices (smallest integers, decimals for plain fractions) are those of Spark's `VariantBuilder`.

Not here: parsing JSON; what the bytes are (`values/variant/variant_encoding.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

from typing_extensions import override

from ...values.variant.variant_encoding import (
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
from .json_values import Number

_MAX_BYTES = 16 * 1024 * 1024
"""Spark's limit for each of the two byte strings; offsets have at most three bytes."""

_END = object()
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")


def encode(value: Any) -> dict[str, bytes]:
    """`value` and `metadata` of a parsed value, its numbers as `Number`.

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
    """The value's bytes. No recursion: a thousand levels are allowed."""
    open_parts: list[_Array] = [_Array([value])]
    while True:
        current = open_parts[-1]
        item = next(current.items, _END)
        if item is _END:
            open_parts.pop()
            if not open_parts:
                return current.parts[0]
            open_parts[-1].parts.append(current.encoded())
        elif isinstance(item, dict):
            open_parts.append(_Object(item, names))
        elif isinstance(item, list):
            open_parts.append(_Array(item))
        else:
            current.parts.append(_scalar(item))


class _Array:
    """An array whose items are being encoded, one after the other."""

    def __init__(self, values: list[Any]) -> None:
        self.items: Iterator[Any] = iter(values)
        self.parts: list[bytes] = []

    def encoded(self) -> bytes:
        return array_of(self.parts)


class _Object(_Array):
    """An object: values in the order written, names numbered as they come."""

    def __init__(self, fields: dict[str, Any], names: Names) -> None:
        super().__init__([])
        self.items = self._numbered(fields)
        self._fields, self._names = fields, names

    def _numbered(self, fields: dict[str, Any]) -> Iterator[Any]:
        for name, item in fields.items():
            self._names.setdefault(name, len(self._names))
            yield item

    @override
    def encoded(self) -> bytes:
        return object_of(dict(zip(self._fields, self.parts, strict=True)), self._names)


def _scalar(value: Any) -> bytes:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return boolean_of(value)
    if type(value) is Number:
        return _number(value)
    if isinstance(value, str):
        return text_of(value)
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def _number(digits: Number) -> bytes:
    if digits.removeprefix("-").isdigit():
        number = int(digits)
        # Beyond, `VariantBuilder` makes decimals of integers, too.
        if -(1 << 63) <= number < 1 << 63:
            return integer_of(number)
    if _PLAIN.fullmatch(digits):
        # Unless it has more than 38 digits.
        with suppress(ValueError):
            return decimal_of(Decimal(str(digits)))
    return double_of(float(digits))
