"""Numbers and booleans from text, and decimals from text or numbers: one rule for all formats.

Text means what Java's parsers make of it, which Spark's readers call. CSV, JSON, values in paths,
and the casts of the block formats come here.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .strings import BLANKS

_types = pa.types

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?0*\d{1,9})?")
# `Double.parseDouble` takes digits of ASCII only, and a letter for the type at the end.
_FLOAT = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)[dDfF]?", re.ASCII)
# Java's hexadecimal floats, such as `0x1.8p3`: the exponent is not optional.
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+)[dDfF]?", re.ASCII
)
_WORDS = {"NaN": math.nan, "Infinity": math.inf}

_MAX_DIGITS = 38
# The most that Arrow's widest decimal has.
_MOST_DIGITS = 76
# One digit more than a decimal has: 38 nines that are rounded up are a number, which is refused
# then.
_ROUNDING = Context(prec=_MAX_DIGITS + 1)


class Number(str):
    """The digits of a number, as written."""

    __slots__ = ()


def type_of(text: str) -> pa.DataType | None:
    """Return the type of a number, as Spark infers it; None if the text is not a number.

    Integers are `bigint`; beyond that decimals of their digits, and `double` beyond 38 digits.
    """
    if not _is(_INTEGER, text):
        return pa.float64() if _FLOAT.fullmatch(text) else None
    with suppress(ValueError):
        integer(text, pa.int64())
        return pa.int64()
    digits = len(_digits(text))
    return pa.decimal128(digits, 0) if digits <= _MAX_DIGITS else pa.float64()


def boolean(text: str) -> bool:
    """True or false, in any case. Raises ValueError for anything else."""
    folded = text.upper()
    if folded not in ("TRUE", "FALSE"):
        raise ValueError(f"{text[:100]!r} is neither true nor false")
    return folded == "TRUE"


def integer(text: str, kind: pa.DataType) -> int:
    """Return an integer within the range of `kind`.

    Raises:
        ValueError: it is not an integer, or out of range.
    """
    _require(_INTEGER, text)
    # Python refuses to convert thousands of digits, as they take long; no type has room for them.
    digits = _digits(text)
    bound = 1 << (kind.bit_width - 1)
    number = int(text[0] + digits if text[0] == "-" else digits) if len(digits) < 20 else bound
    if not -bound <= number < bound:
        raise ValueError(f"{text[:100]} is out of the range of {kind}")
    return number


def floating(text: str, kind: pa.DataType) -> float:
    """Return the nearest float of `kind`; a number beyond its range is infinite.

    Raises:
        ValueError: it is not a number.
    """
    # Unlike Java's parsers of integers and decimals, `Double.parseDouble` trims its text.
    text = text.strip(BLANKS)
    sign = -1 if text.startswith("-") else 1
    word = _WORDS.get(text[1:] if text.startswith(("-", "+")) else text)
    if word is not None:
        return sign * word
    match = _FLOAT.fullmatch(text)
    if match:
        return nearest(match[1], kind)
    match = _HEXADECIMAL.fullmatch(text)
    if not match:
        raise ValueError(f"{text[:100]!r} is not a number")
    try:
        return float.fromhex(match[1])
    except OverflowError:
        return sign * math.inf


def nearest(text: str, kind: pa.DataType) -> float:
    """Return the digits of a number as the nearest float of `kind`, rounded once."""
    if kind.bit_width == 64:
        return float(text)
    # By way of 64 bits it would be rounded twice.
    return float(pa.scalar(text.removeprefix("+")).cast(kind).as_py())


def decimal(text: str, kind: pa.DataType) -> Decimal:
    """Return a decimal as Spark's readers take it: all commas are left out.

    More digits than the scale has are rounded, half up.

    Raises:
        ValueError: it is not a number, or does not fit `kind`.
    """
    return cast_decimal(text.replace(",", ""), kind)


def cast_decimal(text: str, kind: pa.DataType) -> Decimal:
    """Return the same for text in paths, in which a comma is not part of a number."""
    _require(_DECIMAL, text)
    number = Decimal(text)
    room = kind.precision - kind.scale
    # Judged before rounding, so that no digits are made of a large exponent.
    if number.is_zero() or number.adjusted() < room:
        number = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _ROUNDING)
        if number.is_zero() or number.adjusted() < room:
            return number
    raise ValueError(f"{text[:100]} does not fit {kind}")


def decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts, integers or decimals as decimals of `kind`; null stays null.

    Texts are rounded as `decimal` does. Numbers are never rounded.

    Raises:
        ValueError: a text is not a number.
        pa.ArrowInvalid: a value does not fit, or would be rounded.
    """
    if _types.is_string(array.type):
        return _decimals_of_texts(array, kind)
    if _types.is_integer(array.type):
        array = array.cast(pa.decimal128(_MAX_DIGITS, 0))
    # Arrow does not notice when rescaling goes beyond its 128 or 256 bits.
    if abs(kind.scale - array.type.scale) > _MAX_DIGITS:
        raise pa.ArrowInvalid(f"{array.type} cannot be rescaled to {kind}")
    bound = Decimal(1).scaleb(kind.precision - kind.scale)
    for value in pc.min_max(array).as_py().values():
        if value is not None and not -bound < value < bound:
            raise pa.ArrowInvalid(f"{value} does not fit {kind}")
    return array.cast(kind, safe=True)


def _decimals_of_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    # So many digits at most, where no letter begins an exponent.
    digits = (pc.max(pc.binary_length(texts)).as_py() or 0) + kind.scale
    if digits <= _MOST_DIGITS and not _has_letters(texts):
        wide = (pa.decimal128 if digits <= _MAX_DIGITS else pa.decimal256)(digits or 1, kind.scale)
        with suppress(pa.ArrowInvalid):
            return decimals(texts.cast(wide), kind)
    values = [None if text is None else decimal(text, kind) for text in texts.to_pylist()]
    return pa.array(values, kind)


def _has_letters(texts: pa.Array) -> bool:
    data = texts.buffers()[2]
    raw = np.frombuffer(data if data is not None else b"", np.uint8)
    return bool(raw.max(initial=0) > ord("9"))


def _digits(integer: str) -> str:
    return integer.lstrip("+-").lstrip("0") or "0"


def _require(pattern: re.Pattern[str], text: str) -> None:
    if not _is(pattern, text):
        raise ValueError(f"{text[:100]!r} is not a number")


def _is(pattern: re.Pattern[str], text: str) -> bool:
    # Java takes any digits of Unicode, but no pairs of surrogates.
    return bool(pattern.fullmatch(text)) and (text.isascii() or max(text) <= "\uffff")
