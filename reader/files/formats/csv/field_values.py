"""One CSV field as a value, by the rules of Spark's reader, which are Java's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ...options import ReaderOptions
from ...values.numbers import boolean, decimal, floating, integer
from ...values.times.temporal import Temporal

__all__ = ["converter"]

_types = pa.types


def converter(
    kind: pa.DataType, options: ReaderOptions, temporal: Temporal
) -> Callable[[str], Any]:
    """A function from a field's text to what `pa.array` takes; raises ValueError where it fails.

    `OverflowError` means the same.

    Raises:
        TypeError: CSV cannot be read into columns of this type.
    """
    if _types.is_string(kind):
        return str
    if _types.is_binary(kind):
        return str.encode
    if _types.is_boolean(kind):
        return boolean
    if _types.is_integer(kind):
        return lambda text: integer(text, kind)
    if _types.is_floating(kind):
        words = {
            options.nan_value: math.nan,
            options.positive_inf: math.inf,
            options.negative_inf: -math.inf,
        }
        return lambda text: _float(text, words, kind)
    if _types.is_decimal(kind):
        return lambda text: decimal(text, kind)
    if _types.is_date32(kind) or _types.is_timestamp(kind):
        return lambda text: temporal.value(text, kind)
    raise TypeError(f"CSV cannot be read into columns of type {kind}")


def _float(text: str, words: dict[str, float], kind: pa.DataType) -> float:
    return words[text] if text in words else floating(text, kind)
