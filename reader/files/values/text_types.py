"""Types and values of texts: fields of CSV and XML, and values in paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ..evolution.type_growth import wider_or_text
from .numbers import boolean, decimal, floating, integer, type_of
from .times.temporal import Temporal

_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
# Shorter ones stay text: what Spark infers of `12:30` would be a time on the day of reading.
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_INSTANT = pa.timestamp("us", "UTC")


class TextTypes:
    """Types of texts under the options' patterns and zone."""

    def __init__(self, temporal: Temporal) -> None:
        self._temporal = temporal

    def of(self, text: str) -> pa.DataType:
        """Return the narrowest type that the text is read into as it is meant."""
        number = type_of(text)
        if number is not None:
            return number
        if text.lower() in ("true", "false"):
            return pa.bool_()
        for pattern, kind in ((_DATE, pa.date32()), (_TIME, _INSTANT)):
            if pattern.match(text) and self._reads(text, kind):
                return kind
        return pa.string()

    def _reads(self, text: str, kind: pa.DataType) -> bool:
        try:
            self._temporal.value(text, kind)
        except (ValueError, OverflowError):
            return False
        return True


def text_leaf(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Two texts in one column: what takes both, text if nothing else does."""
    both = {one, other}
    if both == {pa.date32(), _INSTANT}:
        return _INSTANT
    return wider_or_text(one, other)


_DATES = 4096
_PLAIN_DIGITS = 19
_types = pa.types


def text_converter(
    kind: pa.DataType,
    temporal: Temporal,
    *,
    floats: Callable[[str, pa.DataType], float] = floating,
    booleans: Callable[[str], bool] = boolean,
) -> Callable[[str], Any]:
    """Return a function from text to what `pa.array` takes for `kind`.

    It raises ValueError or OverflowError for other text.

    Raises:
        TypeError: text cannot be read into columns of this type.
    """
    if _types.is_string(kind):
        return str
    if _types.is_integer(kind):
        return _integers(kind)
    if _types.is_floating(kind):
        return lambda text: floats(text, kind)
    if _types.is_decimal(kind):
        return lambda text: decimal(text, kind)
    if _types.is_boolean(kind):
        return booleans
    if _types.is_date32(kind):
        # The dates of a file are few.
        return lru_cache(_DATES)(lambda text: temporal.value(text, kind))
    if _types.is_timestamp(kind):
        return lambda text: temporal.value(text, kind)
    raise TypeError(f"text cannot be read into columns of type {kind}")


def _integers(kind: pa.DataType) -> Callable[[str], int]:
    bound = 1 << (kind.bit_width - 1)

    def convert(text: str) -> int:
        # What every type of integer takes as written, in a third of the time.
        if len(text) < _PLAIN_DIGITS and text.isdigit() and text.isascii():
            number = int(text)
            if number < bound:
                return number
        return integer(text, kind)

    return convert
