"""The least and the greatest time of a column, by the statistics of an ORC file.

Those of timestamps are in milliseconds: of `timestamp` the wall clock of the writer, of `timestamp
with local time zone` the instant.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from ...io.varints import unzigzag
from ...values.times.zones import zone_of
from ..api import TimeSpan
from ..time_columns import PER_UNIT, TimeColumn, span_of
from .protobuf import Field, fields, number
from .tail import Type, read_tail, writer_zone

_INTEGERS: Final = {1, 2, 3, 4}
_TIMESTAMP, _DATE, _INSTANT = 9, 15, 18
_LONG: Final = 4
_NOTE, _LOCAL = "spark.sql.catalyst.type", "timestamp_ntz"
_ALL, _VALUES = 7, 1
"""Fields of the footer and of a column's statistics."""


def time_span(source: pa.NativeFile, column: TimeColumn, session: str) -> TimeSpan | None:
    """What `FileFormat.time_span` promises, of an open file.

    `session` is the zone of stripes that name none.

    Raises:
        ValueError: the tail is not that of an ORC file.
    """
    tail = read_tail(source)
    if tail is None:
        raise column.unusable("a footer that is compressed with LZO or Brotli")
    if not tail.stripes:
        return None
    top = tail.types[0]
    index = top.children[column.index_in(top.names)]
    known = [dict(_message(value)) for field, value in tail.footer if field == _ALL]
    found = known[index] if index < len(known) else {}
    # Statistics of no value: there are only nulls.
    if found and not number(found.get(_VALUES)):
        return None
    kind = tail.types[index]
    if kind.kind == _TIMESTAMP:
        zones = {writer_zone(source, tail, stripe) or session for stripe in tail.stripes}
        return _from_wall_clock(_bounds(found, 9, 3, column), zones)
    if kind.kind == _INSTANT:
        return _from_milliseconds(_bounds(found, 9, 3, column))
    if kind.kind == _DATE:
        return span_of(*_bounds(found, 7, 1, column), PER_UNIT["day"])
    if kind.kind == _LONG and kind.notes.get(_NOTE) == _LOCAL:
        return span_of(*_bounds(found, 2, 1, column), PER_UNIT["us"])
    if kind.kind in _INTEGERS:
        return span_of(*_bounds(found, 2, 1, column), column.per_integer())
    raise column.unusable(_meaning(column, kind))


def _bounds(
    found: dict[int, int | bytes], field: int, low: int, column: TimeColumn
) -> tuple[int, int]:
    """Two neighbouring fields of the statistics of one kind."""
    own = dict(_message(found[field])) if field in found else {}
    least, most = own.get(low), own.get(low + 1)
    if not isinstance(least, int) or not isinstance(most, int):
        raise column.unusable(f"no statistics of {column.name}")
    return unzigzag(least), unzigzag(most)


def _from_milliseconds(bounds: tuple[int, int]) -> TimeSpan:
    least, most = bounds
    # What is finer than a millisecond is cut off.
    return TimeSpan(least * 1000, most * 1000 + 999)


def _from_wall_clock(bounds: tuple[int, int], zones: set[str]) -> TimeSpan:
    # The stripes of files that were concatenated may be of different zones, and an hour that a zone
    # repeats may be the first or the second.
    first, last = _from_milliseconds(bounds)
    made = [zone_of(name) for name in zones]
    return TimeSpan(
        min(min(zone.readings(first)) for zone in made),
        max(max(zone.readings(last)) for zone in made),
    )


def _meaning(column: TimeColumn, kind: Type) -> str:
    if kind.children:
        return f"{column.name} with columns or values within it"
    return f"{column.name} of another type"


def _message(value: int | bytes) -> list[Field]:
    return list(fields(value)) if isinstance(value, bytes) else []
