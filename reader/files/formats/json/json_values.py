"""Values of single JSON values by the rules of Spark's reader."""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from ...options import ReaderOptions
from ...values.numbers import nearest
from ...values.text_types import text_converter
from ...values.times.temporal import Temporal
from ..records.outcome import ValueMisfit

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
_WORDS = ("true", "false")
_NUMBERS = ("int", "float")


def scalar(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Scalar:
    """Return a function to what `pa.array` takes for `kind`. It raises `ValueMisfit`.

    Raises:
        TypeError: JSON cannot be read into columns of this type.
    """
    if _types.is_null(kind):
        return lambda *_: None
    words = _NON_NUMBERS if options.allow_non_numeric_numbers else {}

    def floats(text: str, kind: pa.DataType) -> float:
        if text in words:
            return words[text]
        # Spark makes an integer of it first, and integers have one zero only.
        return 0.0 if text == "-0" else nearest(text, kind)

    convert, takes = text_converter(kind, temporal, floats=floats), _taken_as(kind)
    takes_words = words if _types.is_floating(kind) else {}
    is_time = _types.is_date(kind) or _types.is_timestamp(kind)
    bound = 1 << (kind.bit_width - 1)

    def converted(symbol: str, text: str) -> object:
        if symbol not in takes and not (symbol == "string" and text in takes_words):
            raise misfit(text, kind)
        try:
            if not is_time:
                return convert(text)
            # Spark takes a number for seconds since the epoch.
            time = int(text) * 1_000_000 if symbol == "int" else convert(text)
        except (ValueError, OverflowError):
            raise misfit(text, kind) from None
        # Beyond the type Spark's arithmetic would wrap around to another time.
        if not -bound <= time < bound:
            raise misfit(text, kind)
        return time

    return converted


def _taken_as(kind: pa.DataType) -> tuple[str, ...]:
    if _types.is_date(kind) or (_types.is_timestamp(kind) and kind.tz is None):
        return ("string",)
    if _types.is_timestamp(kind):
        return ("string", "int")
    # Of strings Spark takes for decimals what it takes of numbers.
    if _types.is_decimal(kind):
        return (*_NUMBERS, "string")
    if _types.is_boolean(kind):
        return _WORDS
    return ("int",) if _types.is_integer(kind) else _NUMBERS


_GROUPS = re.compile(r"[^=\s]+={0,2}")


def base64_of(text: str) -> bytes:
    """Return the bytes of base64 with all of its padding; blanks may be between four characters.

    Raises:
        ValueMisfit: the text is something else.
    """
    if len(text) % 4 == 0 and not text.endswith("==="):
        # Nearly all of it is so.
        with suppress(ValueError):
            return binascii.a2b_base64(text, strict_mode=True)
    groups = _GROUPS.findall(text)
    if "".join(groups) == "".join(text.split()) and not any(len(group) % 4 for group in groups):
        with suppress(ValueError):
            return b"".join(binascii.a2b_base64(group, strict_mode=True) for group in groups)
    raise misfit(text, "base64 text")


def misfit(text: str, expected: object) -> ValueMisfit:
    """Return the error for a value that is not what was expected."""
    return ValueMisfit(f"{text[:100]} where {expected} is expected")
