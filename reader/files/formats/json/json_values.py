"""Types of single JSON values, and their values in a column, by the rules of Spark's reader."""

from __future__ import annotations

import binascii
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import pyarrow as pa

from ...evolution.type_growth import merged, wider_or_text
from ...options import ReaderOptions
from ...values.numbers import decimal, integer, nearest, type_of
from ...values.times.temporal import Temporal
from .json_text import SURROGATES

Scalar = Callable[[str, str], object]
"""Takes the kind of a token (`string`, `int`, `float`, `true`, `false`) and its text."""

_types = pa.types

# The spellings that `JacksonParser` takes for floats, as words and as strings.
_NON_NUMBERS = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "+INF": math.inf,
    "-Infinity": -math.inf,
    "-INF": -math.inf,
}


class Number(str):
    """The digits of a number, as written."""

    __slots__ = ()


class Misfit(ValueError):
    """A value that is not of its column's type."""


def scalar(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Scalar:
    """A function to what `pa.array` takes for `kind`. It raises `Misfit`.

    Raises:
        TypeError: JSON cannot be read into columns of this type.
    """
    if _types.is_date32(kind) or _types.is_timestamp(kind):
        return _temporal(kind, temporal)
    if _types.is_decimal(kind):
        # Of strings Spark takes what it takes of numbers.
        return _number(decimal, ("int", "float", "string"), kind)
    if _types.is_integer(kind):
        return _number(integer, ("int",), kind)
    if _types.is_floating(kind):
        return _floating(kind, options)
    if _types.is_boolean(kind):
        return _boolean
    if _types.is_null(kind):
        return _nothing
    raise TypeError(f"JSON cannot be read into columns of type {kind}")


def clean(text: str) -> str:
    """Half of a surrogate pair is no character; Java writes a question mark for it."""
    return text if text.isascii() else SURROGATES.sub("?", text)


def plain_base64(text: str) -> bytes:
    """Base64 without blanks or anything behind its padding. Raises ValueError for anything else."""
    if len(text) % 4 == 0 and not text.endswith("==="):
        with suppress(ValueError):
            return binascii.a2b_base64(text, strict_mode=True)
    raise misfit(text, "base64 text")


def misfit(text: str, expected: object) -> Misfit:
    """The error for a value that is not what was expected."""
    return Misfit(f"{text[:100]} where {expected} is expected")


def _nothing(found: str, text: str) -> None:
    del found, text


def _boolean(found: str, text: str) -> bool:
    if found in ("true", "false"):
        return found == "true"
    raise misfit(text, "true or false")


def _number(
    convert: Callable[[str, pa.DataType], object], takes: tuple[str, ...], kind: pa.DataType
) -> Scalar:
    def converted(found: str, text: str) -> object:
        if found in takes:
            with suppress(ValueError):
                return convert(text, kind)
        raise misfit(text, kind)

    return converted


def _floating(kind: pa.DataType, options: ReaderOptions) -> Scalar:
    words = _NON_NUMBERS if options.allow_non_numeric_numbers else {}

    def converted(found: str, text: str) -> float:
        if found in ("float", "string") and text in words:
            return words[text]
        if found not in ("int", "float"):
            raise misfit(text, kind)
        # Spark makes an integer of it first, and integers have one zero only.
        return 0.0 if found == "int" and text == "-0" else nearest(text, kind)

    return converted


def _temporal(kind: pa.DataType, temporal: Temporal) -> Scalar:
    bound = 1 << (kind.bit_width - 1)
    takes_numbers = _types.is_timestamp(kind) and kind.tz is not None

    def convert(found: str, text: str) -> int:
        made = None
        if found == "string":
            try:
                made = temporal.value(text, kind)
            except (ValueError, OverflowError):
                raise misfit(text, kind) from None
        elif found == "int" and takes_numbers:
            # Spark takes a number for seconds since the epoch.
            made = int(text) * 1_000_000
        # Beyond the type Spark's arithmetic would wrap around to another time.
        if made is None or not -bound <= made < bound:
            raise misfit(text, kind)
        return made

    return convert


def type_of_json(values: Iterable[Any], *, exact: bool) -> pa.DataType:
    """The one type that takes all of these parsed values; null without values.

    With `exact` false, numbers and booleans are strings.
    """
    values = [value for value in values if value is not None]
    objects = [value for value in values if isinstance(value, Mapping)]
    arrays = [value for value in values if isinstance(value, list)]
    leaves = (value for value in values if not isinstance(value, (Mapping, list)))
    kinds = list(dict.fromkeys(_leaf(value, exact=exact) for value in leaves))
    if arrays:
        element = type_of_json(chain.from_iterable(arrays), exact=exact)
        kinds.append(pa.list_(pa.field("element", element)))
    fields: dict[str, list[Any]] = {}
    for value in objects:
        for name, inner in value.items():
            fields.setdefault(name, []).append(inner)
    # Spark's sinks have no structs without fields.
    if fields:
        kinds.append(pa.struct([(n, type_of_json(v, exact=exact)) for n, v in fields.items()]))
    kind: pa.DataType = pa.null()
    for found in kinds:
        kind = merged(kind, found, wider_or_text)
    return kind


def _leaf(value: Any, *, exact: bool) -> pa.DataType:
    # A `Number` is a string with the digits, so strings are those that are not.
    if not exact or (isinstance(value, str) and type(value) is not Number):
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    # Words such as NaN are numbers too.
    return type_of(str(value)) or pa.float64()


def as_maps(found: pa.DataType, known: pa.DataType) -> pa.DataType:
    """`found` with a map where `known` has one: by itself any object is a struct."""
    if pa.types.is_map(known) and pa.types.is_struct(found):
        item: pa.DataType = pa.null()
        for field in found:
            item = merged(item, as_maps(field.type, known.item_type), wider_or_text)
        return pa.map_(pa.string(), item)
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(pa.field("element", as_maps(found.value_type, known.value_type)))
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        kinds = {field.name: field.type for field in known}
        fields = [(f.name, as_maps(f.type, kinds.get(f.name, f.type))) for f in found]
        return pa.struct(fields)
    return found


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Where only nulls were seen, strings, as in Spark."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, without_nulls(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", without_nulls(kind.value_type)))
    return kind
