"""The least and the greatest time of a column, by the statistics of a Parquet file's row groups.

Of integers, and what is stored as such, the bounds of every writer are in the order of numbers,
also those of old writers and without column orders. Those of INT96 are in no order.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from ..api import TimeSpan
from ..time_columns import PER_UNIT, TimeColumn, span_of
from .footer import Compact, footer_of

_WIDTHS: Final = {1: 4, 2: 8}
"""Bytes of the physical types INT32 and INT64."""

_PHYSICAL: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY")
_CONVERTED: Final = {6: "day", 9: "ms", 10: "us", 15: "", 16: "", 17: "", 18: ""}
"""Dates, timestamps and signed integers, as older writers mark them; others are no times."""

_TIMESTAMP, _DATE, _INTEGER = 8, 6, 10
_UNITS: Final = {1: "ms", 2: "us", 3: "ns"}
_REPEATED: Final = 2


def time_span(source: pa.NativeFile, column: TimeColumn) -> TimeSpan | None:
    """What `FileFormat.time_span` promises, of an open file.

    Raises:
        ValueError: the footer does not parse.
    """
    try:
        return _span(Compact(footer_of(source)).struct(), column)
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as err:
        raise ValueError(f"the Parquet footer does not parse ({err})") from err


def _span(footer: dict[int, Any], column: TimeColumn) -> TimeSpan | None:
    leaf, at = _leaf(footer[2], column)
    each = _per_number(leaf, column)
    lows: list[int] = []
    highs: list[int] = []
    for index, group in enumerate(footer.get(4, [])):
        chunk = group[1][at][3]
        found = chunk.get(12, {})
        # No rows, or as many nulls as values: such a chunk has no bounds.
        if not int(group[3]) or found.get(3) == chunk[5]:
            continue
        # The older fields mean the same where numbers have a sign.
        low, high = found.get(6, found.get(2)), found.get(5, found.get(1))
        if low is None or high is None or {len(low), len(high)} != {_WIDTHS[leaf[1]]}:
            raise column.unusable(f"no statistics of {column.name} in row group {index}")
        lows.append(int.from_bytes(low, "little", signed=True))
        highs.append(int.from_bytes(high, "little", signed=True))
    return span_of(min(lows), max(highs), each) if lows else None


def _leaf(elements: list[dict[int, Any]], column: TimeColumn) -> tuple[dict[int, Any], int]:
    """The column in the schema, and its number among the leaves."""
    tops: list[tuple[dict[int, Any], int]] = []
    leaves, at = 0, 1
    while at < len(elements):
        tops.append((elements[at], leaves))
        left = 1
        while left:
            children = elements[at].get(5) or 0
            leaves += not children
            left += children - 1
            at += 1
    return tops[column.index_in([top[4].decode() for top, _ in tops])]


def _per_number(leaf: dict[int, Any], column: TimeColumn) -> Fraction:
    """Microseconds that the stored numbers count."""
    physical = leaf.get(1)
    if physical is None or leaf.get(3) == _REPEATED:
        raise column.unusable(f"{column.name} with columns or values within it")
    if physical not in _WIDTHS:
        raise column.unusable(f"{column.name} stored as {_named(physical)}")
    logical = leaf.get(10) or {}
    # 18 is INT_64: without a mark, a number is a signed integer.
    unit = _CONVERTED.get(leaf.get(6, 18))
    if _TIMESTAMP in logical:
        unit = _UNITS.get(next(iter(logical[_TIMESTAMP][2])))
    elif _DATE in logical:
        unit = "day"
    elif _INTEGER in logical:
        unit = "" if logical[_INTEGER][2] else None
    elif logical:
        unit = None
    if unit is None:
        raise column.unusable(f"{column.name} as a number of another meaning")
    return PER_UNIT[unit] if unit else column.per_integer()


def _named(physical: int) -> str:
    return _PHYSICAL[physical] if physical < len(_PHYSICAL) else "FIXED_LEN_BYTE_ARRAY"
