"""Texts of elements and attributes as single values of a column, by the rules of Spark's reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import pyarrow as pa

from ...options import ReaderOptions
from ...values.numbers import decimal, floating, integer
from ...values.times.temporal import Temporal

__all__ = ["Misfit", "Scalar", "scalar", "temporal_of"]

Scalar = Callable[[str], object]

_types = pa.types
_GROUPED = re.compile(r"[+-]?\d[\d,]*(?:\.\d*)?", re.ASCII)
_DATES = 4096
_PLAIN_DIGITS = 19
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class Misfit(ValueError):
    """A value that is not of its column's type."""


def temporal_of(options: ReaderOptions) -> Temporal:
    """The rules of times: dates without a pattern are in the form `yyyy-MM-dd` and no other."""
    pattern = options.date_format or "yyyy-MM-dd"
    return Temporal(options.model_copy(update={"date_format": pattern}))


def scalar(kind: pa.DataType, temporal: Temporal) -> Scalar:
    """A function from text to what `pa.array` takes for `kind`. It raises `Misfit`.

    Raises:
        TypeError: XML cannot be read into columns of this type.
    """
    convert = _converter(kind, temporal)

    def converted(text: str) -> object:
        try:
            return convert(text)
        except (ValueError, OverflowError):
            raise Misfit(f"{text[:100]!r} where {kind} is expected") from None

    return converted


def _converter(kind: pa.DataType, temporal: Temporal) -> Scalar:
    if _types.is_string(kind):
        return str
    if _types.is_integer(kind):
        return _integers(kind)
    if _types.is_floating(kind):
        return lambda text: _floating(text, kind)
    if _types.is_decimal(kind):
        return lambda text: decimal(text, kind)
    if _types.is_boolean(kind):
        return _boolean
    if _types.is_date32(kind):
        # The dates of a file are few.
        return lru_cache(_DATES)(lambda text: temporal.value(text, kind))
    if _types.is_timestamp(kind):
        return lambda text: temporal.value(text, kind)
    raise TypeError(f"XML cannot be read into columns of type {kind}")


def _integers(kind: pa.DataType) -> Scalar:
    bound = 1 << (kind.bit_width - 1)

    def convert(text: str) -> int:
        # What every type of integer takes as written, in a third of the time.
        if len(text) < _PLAIN_DIGITS and text.isdigit() and text.isascii():
            number = int(text)
            if number < bound:
                return number
        return integer(text, kind)

    return convert


def _floating(text: str, kind: pa.DataType) -> float:
    with suppress(ValueError):
        return floating(text, kind)
    # What `Double.parseDouble` refuses, `StaxXmlParser` gives to `NumberFormat`, which reads
    # `1,000`.
    if not _GROUPED.fullmatch(text):
        raise ValueError(text)
    return floating(text.replace(",", ""), kind)


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError(text)
    return value
