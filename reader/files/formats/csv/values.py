"""One CSV field as a value, by the rules of Spark's reader, which are Java's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ...options import ReaderOptions
from ..json.scalars import rounded
from ..times.temporal import Temporal
from .rules import BLANKS

__all__ = ["converter"]

_types = pa.types
_DIGITS = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_INTEGER = re.compile(r"([+-]?)0*(\d+)\Z")
_FLOAT = re.compile(rf"([+-]?{_DIGITS})[dDfF]?\Z", re.ASCII)
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+)[dDfF]?\Z", re.ASCII
)
_DECIMAL = re.compile(rf"[+-]?{_DIGITS}\Z")
_WORDS = {"NaN": math.nan, "Infinity": math.inf}


def converter(
    kind: pa.DataType, options: ReaderOptions, temporal: Temporal
) -> Callable[[str], Any]:
    """A function from a field's text to what `pa.array` takes; raises ValueError where it fails.

    `OverflowError` and `decimal.InvalidOperation` mean the same.

    Raises:
        TypeError: CSV cannot be read into columns of this type.
    """
    if _types.is_string(kind):
        return str
    if _types.is_binary(kind):
        return str.encode
    if _types.is_boolean(kind):
        return _boolean
    if _types.is_integer(kind):
        return lambda text: _integer(text, 1 << (kind.bit_width - 1))
    if _types.is_floating(kind):
        words = {
            options.nan_value: math.nan,
            options.positive_inf: math.inf,
            options.negative_inf: -math.inf,
        }
        return lambda text: _float(text, words, kind)
    if _types.is_decimal(kind):
        return lambda text: _decimal(text, kind)
    if _types.is_date32(kind) or _types.is_timestamp(kind):
        return lambda text: temporal.value(text, kind)
    raise TypeError(f"CSV cannot be read into columns of type {kind}")


def _boolean(text: str) -> bool:
    folded = text.lower()
    if folded not in ("true", "false"):
        raise ValueError(text)
    return folded == "true"


def _integer(text: str, bound: int) -> int:
    match = _INTEGER.match(text)
    # Python refuses to convert thousands of digits, as they take long; no type has room for them.
    if match and len(match[2]) < 20:
        number = int(match[1] + match[2])
        if -bound <= number < bound:
            return number
    raise ValueError(text)


def _float(text: str, words: dict[str, float], kind: pa.DataType) -> float:
    if text in words:
        return words[text]
    text = text.strip(BLANKS)
    sign = -1 if text.startswith("-") else 1
    word = _WORDS.get(text[1:] if text.startswith(("-", "+")) else text)
    if word is not None:
        return sign * word
    match = _FLOAT.match(text)
    if match:
        # Rounded once, and not to a double before.
        written = match[1].removeprefix("+")
        return (
            float(pa.scalar(written).cast(kind).as_py()) if kind.bit_width < 64 else float(written)
        )
    match = _HEXADECIMAL.match(text)
    if not match:
        raise ValueError(text)
    try:
        return float.fromhex(match[1])
    except OverflowError:
        return sign * math.inf


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    # Spark's reader leaves commas out of decimals, wherever they stand.
    text = text.replace(",", "")
    if not _DECIMAL.match(text):
        raise ValueError(text)
    return rounded(Decimal(text), kind)
