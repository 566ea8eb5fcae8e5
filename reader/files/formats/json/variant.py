"""Parsed JSON as Spark's `variant`: two byte strings, one with the names and one with the values.

The format is the Variant Binary Encoding of Parquet (VariantEncoding.md in apache/parquet-format),
the choices in it (smallest integers, decimals for plain fractions) are those of Spark's
`VariantBuilder`. Not here: parsing JSON.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from decimal import Decimal
from itertools import accumulate
from typing import Any

from typing_extensions import override

from ..variants import is_variant
from .scalars import Number

__all__ = ["encode", "is_variant"]

_MAX_BYTES = 16 * 1024 * 1024
"""Spark's limit for each of the two byte strings; offsets have at most three bytes."""

_VERSION = 1
_PRIMITIVE, _SHORT_STRING, _OBJECT, _ARRAY = range(4)
_NULL, _TRUE, _FALSE, _INT8, _INT16, _INT32, _INT64, _DOUBLE = range(8)
_DECIMAL4, _DECIMAL8, _DECIMAL16, _STRING = 8, 9, 10, 16
_INTEGERS = ((_INT8, 1), (_INT16, 2), (_INT32, 4), (_INT64, 8))
_DECIMALS = ((_DECIMAL4, 4, 9), (_DECIMAL8, 8, 18), (_DECIMAL16, 16, 38))
_MAX_SHORT_STRING = 63
_FEW = 255
"""Elements that are counted in one byte."""

_END = object()
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")


def encode(value: Any) -> dict[str, bytes]:
    """`value` and `metadata` of a parsed value, its numbers as `Number`.

    Raises:
        ValueError: it is too large, or no JSON value.
    """
    names: dict[str, int] = {}
    encoded = _encode(value, names)
    texts = [name.encode("utf-8") for name in names]
    width = _width(max(sum(map(len, texts)), len(texts)))
    metadata = b"".join(
        (
            bytes([_VERSION | (width - 1) << 6]),
            len(texts).to_bytes(width, "little"),
            _offsets(texts, width),
            *texts,
        )
    )
    if max(len(encoded), len(metadata)) > _MAX_BYTES:
        raise ValueError(f"a variant of more than {_MAX_BYTES} bytes")
    return {"value": encoded, "metadata": metadata}


def _encode(value: Any, names: dict[str, int]) -> bytes:
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


def _scalar(value: Any) -> bytes:
    if value is None:
        return _header(_NULL)
    if isinstance(value, bool):
        return _header(_TRUE if value else _FALSE)
    if type(value) is Number:
        return _number(value)
    if isinstance(value, str):
        text = value.encode("utf-8")
        if len(text) <= _MAX_SHORT_STRING:
            return bytes([len(text) << 2 | _SHORT_STRING]) + text
        return _header(_STRING) + len(text).to_bytes(4, "little") + text
    raise ValueError(f"{type(value).__name__} is no JSON value")


class _Array:
    """An array whose items are being encoded, one after the other."""

    def __init__(self, values: list[Any]) -> None:
        self.items: Iterator[Any] = iter(values)
        self.parts: list[bytes] = []

    def encoded(self) -> bytes:
        parts = self.parts
        width = _width(sum(map(len, parts)))
        large = len(parts) > _FEW
        head = large << 4 | (width - 1) << 2 | _ARRAY
        return b"".join((bytes([head]), _count(parts), _offsets(parts, width), *parts))


class _Object(_Array):
    """An object: values in the order written; ids and offsets in the order of the names."""

    def __init__(self, fields: dict[str, Any], names: dict[str, int]) -> None:
        super().__init__([])
        self.items = self._numbered(fields, names)
        self._ids: dict[str, int] = {}

    def _numbered(self, fields: dict[str, Any], names: dict[str, int]) -> Iterator[Any]:
        for name, item in fields.items():
            self._ids[name] = names.setdefault(name, len(names))
            yield item

    @override
    def encoded(self) -> bytes:
        parts, ids = self.parts, self._ids
        starts = dict(zip(ids, accumulate(map(len, parts), initial=0), strict=False))
        end = sum(map(len, parts))
        width = _width(end)
        id_width = _width(max(ids.values(), default=0))
        large = len(parts) > _FEW
        ordered = sorted(ids, key=_java_order)
        return b"".join(
            (
                bytes([large << 6 | (id_width - 1) << 4 | (width - 1) << 2 | _OBJECT]),
                _count(parts),
                *(ids[name].to_bytes(id_width, "little") for name in ordered),
                *(starts[name].to_bytes(width, "little") for name in ordered),
                end.to_bytes(width, "little"),
                *parts,
            )
        )


def _java_order(name: str) -> bytes:
    # Java compares UTF-16 units, which differs from code points beyond the basic plane.
    return name.encode("utf-16-be")


def _number(digits: Number) -> bytes:
    if digits.removeprefix("-").isdigit():
        number = int(digits)
        for kind, size in _INTEGERS:
            if -(1 << (8 * size - 1)) <= number < 1 << (8 * size - 1):
                return _header(kind) + number.to_bytes(size, "little", signed=True)
    if _PLAIN.fullmatch(digits):
        exact = Decimal(str(digits)).as_tuple()
        scale = -int(exact.exponent)
        unscaled = int("".join(map(str, exact.digits))) * (-1 if exact.sign else 1)
        for kind, size, most in _DECIMALS:
            if len(exact.digits) <= most and scale <= most:
                stored = unscaled.to_bytes(size, "little", signed=True)
                return _header(kind) + bytes([scale]) + stored
    return _header(_DOUBLE) + struct.pack("<d", float(digits))


def _header(kind: int) -> bytes:
    return bytes([kind << 2 | _PRIMITIVE])


def _count(parts: list[bytes]) -> bytes:
    return len(parts).to_bytes(4 if len(parts) > _FEW else 1, "little")


def _offsets(parts: list[bytes], width: int) -> bytes:
    """Where each part begins, and where the last one ends."""
    made, end = [bytes(width)], 0
    for part in parts:
        end += len(part)
        made.append(end.to_bytes(width, "little"))
    return b"".join(made)


def _width(largest: int) -> int:
    """Bytes that hold a number."""
    if largest > _MAX_BYTES:
        raise ValueError(f"a variant of more than {_MAX_BYTES} bytes")
    return max(1, (largest.bit_length() + 7) // 8)
