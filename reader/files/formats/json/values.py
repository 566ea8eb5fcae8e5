"""Parsed JSON values as values of a schema, by the rules of Spark's JSON reader.

The exact and slow path, for the records that the fast one refuses. A value that does not fit is a
`Misfit`, which says where in the record it stands.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ...options import ReaderOptions
from ..times.temporal import Temporal
from .text import Number
from .variant import encode, is_variant

__all__ = ["Misfit", "converter", "rounded", "to_json"]

Convert = Callable[[Any], Any]
_types = pa.types
_HALVES = re.compile("[\ud800-\udfff]")
_EXACT = Context(prec=76)
_NON_NUMBERS = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "INF": math.inf,
    "+INF": math.inf,
    "-Infinity": -math.inf,
    "-INF": -math.inf,
}


class Misfit(ValueError):
    """A value that is not of its column's type."""

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial
        """What of the value does fit, as Spark keeps the good fields of a struct."""


def converter(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    """A function from parsed values to what `pa.array` takes for `kind`.

    Raises:
        TypeError: JSON cannot be read into columns of this type.
    """
    if is_variant(kind):
        # The one type that has a null of its own, as which Spark reads JSON's.
        return _variant
    convert = _converter(kind, options, temporal)
    return lambda value: None if value is None else convert(value)


def _converter(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    if _types.is_struct(kind):
        return _struct(kind, options, temporal)
    if _types.is_list(kind):
        return _list(kind, options, temporal)
    if _types.is_map(kind):
        return _map(kind, options, temporal)
    if _types.is_string(kind):
        return _string(options)
    if _types.is_date32(kind) or _types.is_timestamp(kind):
        return _temporal(kind, temporal)
    if _types.is_decimal(kind):
        return lambda value: _decimal(value, kind)
    if _types.is_integer(kind):
        bound = 1 << (kind.bit_width - 1)
        return lambda value: _integer(value, bound, kind)
    if _types.is_floating(kind):
        return lambda value: _float(value, kind)
    simple = {pa.bool_(): _boolean, pa.binary(): _binary, pa.null(): _nothing}
    if kind in simple:
        return simple[kind]
    raise TypeError(f"JSON cannot be read into columns of type {kind}")


def _misfit(value: Any, kind: object) -> Misfit:
    text = to_json(value)
    return Misfit(f"{text[:100]} where {kind} is expected")


def _struct(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    fields = {child.name: converter(child.type, options, temporal) for child in kind}

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _misfit(value, "an object")
        row, problem = {}, ""
        for name, inner in fields.items():
            if name not in value:
                continue
            try:
                row[name] = inner(value[name])
            except Misfit as err:
                problem = problem or f"{name}: {err}"
                row[name] = err.partial
        if problem:
            raise Misfit(problem, row)
        return row

    return convert


def _variant(value: Any) -> dict[str, bytes]:
    try:
        return encode(value)
    except ValueError as err:
        raise Misfit(str(err)) from err


def _list(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    inner = converter(kind.value_type, options, temporal)

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            raise _misfit(value, "an array")
        return [inner(item) for item in value]

    return convert


def _map(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Convert:
    inner = converter(kind.item_type, options, temporal)
    if not _types.is_string(kind.key_type):
        raise TypeError("JSON can be read only into maps with string keys")

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _misfit(value, "an object")
        return [(_clean(key), inner(item)) for key, item in value.items()]

    return convert


def _string(options: ReaderOptions) -> Convert:
    del options

    def convert(value: Any) -> str:
        return _clean(value) if type(value) is str else to_json(value)

    return convert


def _nothing(value: Any) -> None:
    raise _misfit(value, "null")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _misfit(value, "true or false")


def _integer(value: Any, bound: int, kind: pa.DataType) -> int:
    if type(value) is Number and value.lstrip("-").isdigit():
        number = int(value)
        if -bound <= number < bound:
            return number
    raise _misfit(value, kind)


def _float(value: Any, kind: pa.DataType) -> float:
    if type(value) is Number or (type(value) is str and value in _NON_NUMBERS):
        known = _NON_NUMBERS.get(value)
        return float(value) if known is None else known
    raise _misfit(value, kind)


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    if isinstance(value, str):
        try:
            return rounded(Decimal(str(value)), kind)
        except (InvalidOperation, ValueError):
            pass
    raise _misfit(value, kind)


def rounded(number: Decimal, kind: pa.DataType) -> Decimal:
    """A decimal with the column's scale; Spark rounds what has more digits.

    Raises:
        ValueError, InvalidOperation: it does not fit the column.
    """
    unit = Decimal(1).scaleb(-kind.scale)
    fitted = number.quantize(unit, ROUND_HALF_UP, _EXACT)
    if abs(fitted) < Decimal(10) ** (kind.precision - kind.scale):
        return fitted
    raise ValueError(f"{number} does not fit {kind}")


def _binary(value: Any) -> bytes:
    if type(value) is str:
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            pass
    raise _misfit(value, "base64 text")


def _temporal(kind: pa.DataType, temporal: Temporal) -> Convert:
    bound = 1 << (kind.bit_width - 1)
    takes_numbers = _types.is_timestamp(kind) and kind.tz is not None

    def convert(value: Any) -> int:
        with suppress(ValueError, OverflowError):
            made = None
            if type(value) is str:
                made = temporal.value(value, kind)
            elif type(value) is Number and takes_numbers:
                # Spark takes a number for seconds since the epoch.
                made = int(value) * 1_000_000
            # Beyond the type Spark's arithmetic would wrap around to another time.
            if made is not None and -bound <= made < bound:
                return made
        raise _misfit(value, kind)

    return convert


def _clean(text: str) -> str:
    """Half of a surrogate pair is no character; Arrow's strings have no room for it."""
    if text.isascii():
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return _HALVES.sub("?", whole)


def to_json(value: Any) -> str:
    """A parsed value as compact JSON text, numbers as they were written."""
    if type(value) is Number:
        return str(value)
    if isinstance(value, dict):
        inner = (f"{json.dumps(k, ensure_ascii=False)}:{to_json(v)}" for k, v in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(to_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
