"""Single JSON values as values of a column, by the rules of Spark's JSON reader.

Not here: what becomes of a record whose value does not fit (`token_values.py`).
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from ...options import ReaderOptions
from ...values.numbers import decimal, integer, nearest
from ...values.times.temporal import Temporal
from .characters import SURROGATES

__all__ = ["Misfit", "Number", "Scalar", "clean", "misfit", "plain_base64", "scalar"]

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
