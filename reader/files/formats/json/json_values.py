"""Types and values of single JSON values by the rules of Spark's reader, and their greatest sizes.

The sizes are Jackson's defaults (`StreamReadConstraints`). The exact path applies them where it
takes the thing (`tokenizer.py`, `json_text.py`); for the other parsers, which have no such limits,
`may_exceed` tells text that they may be given from text that they may not.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from ...evolution.type_growth import merged, wider_or_text
from ...options import ReaderOptions
from ...values.numbers import Number, decimal, integer, nearest, type_of
from ...values.times.temporal import Temporal
from ..records.outcome import ValueMisfit

Scalar = Callable[[str, str], object]
"""Takes the kind of a token (`string`, `int`, `float`, `true`, `false`) and its text."""

SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which are no characters."""


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


def scalar(kind: pa.DataType, options: ReaderOptions, temporal: Temporal) -> Scalar:
    """Return a function to what `pa.array` takes for `kind`. It raises `ValueMisfit`.

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


def misfit(text: str, expected: object) -> ValueMisfit:
    """Return the error for a value that is not what was expected."""
    return ValueMisfit(f"{text[:100]} where {expected} is expected")


def _nothing(symbol: str, text: str) -> None:
    del symbol, text


def _boolean(symbol: str, text: str) -> bool:
    if symbol in ("true", "false"):
        return symbol == "true"
    raise misfit(text, "true or false")


def _number(
    convert: Callable[[str, pa.DataType], object], takes: tuple[str, ...], kind: pa.DataType
) -> Scalar:
    def converted(symbol: str, text: str) -> object:
        if symbol in takes:
            with suppress(ValueError):
                return convert(text, kind)
        raise misfit(text, kind)

    return converted


def _floating(kind: pa.DataType, options: ReaderOptions) -> Scalar:
    words = _NON_NUMBERS if options.allow_non_numeric_numbers else {}

    def converted(symbol: str, text: str) -> float:
        if symbol in ("float", "string") and text in words:
            return words[text]
        if symbol not in ("int", "float"):
            raise misfit(text, kind)
        # Spark makes an integer of it first, and integers have one zero only.
        return 0.0 if symbol == "int" and text == "-0" else nearest(text, kind)

    return converted


def _temporal(kind: pa.DataType, temporal: Temporal) -> Scalar:
    bound = 1 << (kind.bit_width - 1)
    takes_numbers = _types.is_timestamp(kind) and kind.tz is not None

    def convert(symbol: str, text: str) -> int:
        number = None
        if symbol == "string":
            try:
                number = temporal.value(text, kind)
            except (ValueError, OverflowError):
                raise misfit(text, kind) from None
        elif symbol == "int" and takes_numbers:
            # Spark takes a number for seconds since the epoch.
            number = int(text) * 1_000_000
        # Beyond the type Spark's arithmetic would wrap around to another time.
        if number is None or not -bound <= number < bound:
            raise misfit(text, kind)
        return number

    return convert


def type_of_json(values: Iterable[Any], *, exact: bool) -> pa.DataType:
    """Return the one type that takes all of these parsed values; null without values.

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
    for other in kinds:
        kind = merged(kind, other, wider_or_text)
    return kind


def _leaf(value: Any, *, exact: bool) -> pa.DataType:
    # A `Number` is a string with the digits, so strings are those that are not.
    if not exact or (isinstance(value, str) and type(value) is not Number):
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    # Words such as NaN are numbers too.
    return type_of(str(value)) or pa.float64()


def as_maps(kind: pa.DataType, column: pa.DataType) -> pa.DataType:
    """`kind` with a map where `column` has one: by itself any object is a struct."""
    if pa.types.is_map(column) and pa.types.is_struct(kind):
        item: pa.DataType = pa.null()
        for field in kind:
            item = merged(item, as_maps(field.type, column.item_type), wider_or_text)
        return pa.map_(pa.string(), item)
    if pa.types.is_list(column) and pa.types.is_list(kind):
        return pa.list_(pa.field("element", as_maps(kind.value_type, column.value_type)))
    if pa.types.is_struct(column) and pa.types.is_struct(kind):
        kinds = {field.name: field.type for field in column}
        fields = [(f.name, as_maps(f.type, kinds.get(f.name, f.type))) for f in kind]
        return pa.struct(fields)
    return kind


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Return where only nulls were seen, strings, as in Spark."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, without_nulls(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", without_nulls(kind.value_type)))
    return kind


MAX_DEPTH = 1000
"""Levels of nesting."""

MAX_DIGITS = 1000
"""Digits of a number, those of its exponent included."""

MAX_NAME = 50_000
"""Bytes of a name in UTF-8."""

MAX_STRING = 20_000_000
"""Characters of a string in UTF-16, of strings that are asked for."""

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_LONG = re.compile(rb"[0-9.eE+-]{%d}" % MAX_DIGITS)
_COLON = re.compile(rb"\s*:")
_STEP, _SAMPLES = 64, MAX_DIGITS // 64 - 1
_LEVELS = np.zeros(256, np.int8)
_LEVELS[[ord("["), ord("{")]] = 1
_LEVELS[[ord("]"), ord("}")]] = -1
_IN_NUMBERS = np.zeros(256, np.int32)
_IN_NUMBERS[list(b"0123456789.eE+-")] = 1


def may_exceed(data: bytes) -> bool:
    """True if something in these lines may be beyond a limit; text that is not JSON may be."""
    if len(data) < MAX_DIGITS:
        return False
    raw = np.frombuffer(data, np.uint8)
    feeds = raw == ord("\n")
    if _is_often(feeds):
        return False
    ends = np.flatnonzero(feeds)
    longest = int(np.diff(ends, prepend=-1, append=len(raw)).max())
    if longest < MAX_DIGITS:
        return False
    if _has_long_number(data, raw) or _is_deep(data, raw, ends, longest):
        return True
    return longest > MAX_NAME and _has_long_text(data, raw)


def _is_often(feeds: np.ndarray) -> bool:
    """Return whether every line is known to be shorter than the longest number, which is usual.

    A fourth of the time of finding the lines: each half of that length has the end of a line.
    """
    half = MAX_DIGITS // 2
    whole = len(feeds) // half * half
    return bool(feeds[:whole].reshape(-1, half).any(axis=1).all())


def _has_long_number(data: bytes, raw: np.ndarray) -> bool:
    # So many characters in a row hold so many samples in a row; in rows of many short numbers
    # that happens by chance too, so a look at the characters themselves decides.
    sums = np.concatenate(([0], np.cumsum(_IN_NUMBERS[raw[::_STEP]])))
    for first in np.flatnonzero(sums[_SAMPLES:] - sums[:-_SAMPLES] == _SAMPLES).tolist():
        begin = max(0, first - 1) * _STEP
        if _LONG.search(data, begin, first * _STEP + MAX_DIGITS + 1):
            return True
    return False


def _is_deep(data: bytes, raw: np.ndarray, ends: np.ndarray, longest: int) -> bool:
    # They differ by one bit.
    opened = (raw | 0x20) == ord("{")
    places = np.flatnonzero(opened)
    if len(places) <= MAX_DEPTH:
        return False
    # As many as are allowed take more than a line has, from any place on.
    if int((places[MAX_DEPTH:] - places[:-MAX_DEPTH]).min()) >= longest:
        return False
    begins = np.concatenate(([0], ends[ends < len(raw) - 1] + 1))
    if int(np.add.reduceat(opened, begins, dtype=np.int64).max()) <= MAX_DEPTH:
        return False
    plain = np.frombuffer(without_escapes(data), np.uint8)
    return int(nesting(plain, in_string=False)[1].max()) > MAX_DEPTH


def _has_long_text(data: bytes, raw: np.ndarray) -> bool:
    quotes = np.flatnonzero(raw == ord('"'))
    # One behind a backslash may end a string or not: left out, the string only seems longer.
    quotes = quotes[(quotes == 0) | (raw[quotes - 1] != ord("\\"))]
    lengths = np.diff(quotes, append=len(raw)) - 1
    for index in np.flatnonzero(lengths > MAX_NAME).tolist():
        end = int(quotes[index] + lengths[index]) + 2
        if lengths[index] > MAX_STRING or _COLON.match(data, end):
            return True
    return False


def without_escapes(data: bytes) -> bytes:
    """`data` with blanks for what a backslash escapes."""
    return _ESCAPE.sub(b"  ", data) if b"\\" in data else data


def nesting(raw: np.ndarray, *, in_string: bool) -> tuple[np.ndarray, np.ndarray]:
    """For each byte of text without escapes, whether it is in a string, and how deep."""
    inside = np.logical_xor.accumulate(raw == ord('"')) ^ in_string
    steps = _LEVELS[raw]
    steps[inside] = 0
    return inside, np.cumsum(steps, dtype=np.int32)
