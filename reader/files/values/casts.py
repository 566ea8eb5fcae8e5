"""Which decoded type may be used for which column type, and the cast that loses nothing.

The rule is Spark's widening, plus narrowing where every value is checked. A number is never made
out of text, nor text out of a number: a file that needs that has another schema than was said.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from .numbers import decimals
from .times.temporal import instants_of

Cast = Callable[[pa.Array], pa.Array]
_types = pa.types


def plain(found: pa.DataType) -> tuple[pa.DataType, Cast | None]:
    """The type beneath an encoding (dictionary, run-end, view, extension) and the way down to it.

    The second value is None if `found` is no encoding.
    """
    if _types.is_dictionary(found):
        return found.value_type, lambda array: array.dictionary_decode()
    if _types.is_run_end_encoded(found):
        return found.value_type, pc.run_end_decode
    if isinstance(found, pa.BaseExtensionType):
        return found.storage_type, lambda array: array.storage
    if _types.is_string_view(found):
        return pa.string(), lambda array: array.cast(pa.string())
    if _types.is_binary_view(found):
        return pa.binary(), lambda array: array.cast(pa.binary())
    return found, None


def castable(found: pa.DataType, target: pa.DataType, zone: str = "UTC") -> Cast | None:
    """The checked cast between two types without children, or None if nothing fits.

    `zone` is that of timestamps that name none.
    """
    if _types.is_decimal(target):
        fits = _types.is_decimal(found) or _types.is_integer(found)
        return (lambda array: decimals(array, target)) if fits else None
    if _types.is_timestamp(target):
        return _timestamp_cast(found, target, zone)
    if _types.is_date32(target) and _types.is_date64(found):
        return _date64_cast
    if _types.is_floating(target) and _types.is_integer(found):
        return None if _types.is_float16(target) else lambda array: _exact_floats(array, target)
    allowed = (
        (_types.is_integer(target) and _types.is_integer(found))
        or (_types.is_floating(target) and _widens(found, target))
        or (_is_bytes(target) and _is_bytes(found))
        or (_types.is_time(target) and _types.is_time(found))
        or (_types.is_duration(target) and _types.is_duration(found))
    )
    return (lambda array: array.cast(target, safe=True)) if allowed else None


def _is_bytes(kind: pa.DataType) -> bool:
    """Text and bytes replace each other, as in Spark; text is checked to be UTF-8."""
    return bool(
        _types.is_string(kind)
        or _types.is_large_string(kind)
        or _types.is_binary(kind)
        or _types.is_large_binary(kind)
        or _types.is_fixed_size_binary(kind)
    )


def _widens(found: pa.DataType, target: pa.DataType) -> bool:
    """Floats only widen: Arrow does not check what a narrower float rounds away."""
    return bool(_types.is_floating(found) and found.bit_width <= target.bit_width)


def _exact_floats(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Integers as floats; Arrow alone refuses all beyond 2^53, exact ones such as 2^63 too."""
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        floats = array.cast(target, safe=False)
        whole = pa.decimal128(38, 0)
        if floats.cast(pa.float64()).cast(whole).equals(array.cast(whole)):
            return floats
        raise


def _date64_cast(array: pa.Array) -> pa.Array:
    days = array.cast(pa.date32())
    if not days.cast(array.type).equals(array):
        raise pa.ArrowInvalid("a date64 value holds a time of day")
    return days


def _timestamp_cast(found: pa.DataType, target: pa.DataType, zone: str) -> Cast | None:
    # As in Spark, a date becomes midnight only where no zone has to say which.
    if _types.is_date32(found) and target.tz is None:
        return lambda array: array.cast(target, safe=True)
    if not _types.is_timestamp(found):
        return None
    # An instant has no wall clock without a zone to read it in, so it is never made into one.
    if target.tz is None and found.tz is not None:
        return None
    if target.tz is not None and found.tz is None and zone != "UTC":
        return lambda array: instants_of(array, zone).cast(target, safe=True)
    return lambda array: array.cast(target, safe=True)
