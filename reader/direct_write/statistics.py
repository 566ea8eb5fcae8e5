"""What a data file's footer says of its columns, as JSON in the form of Delta's add actions.

Per-file statistics of the Delta transaction log protocol: `numRecords`, `nullCount`, `minValues`
and `maxValues`, nested as structs are. Bounds need not be tight: long strings and fractions of a
millisecond are cut so that they still enclose every value. Bounds that cannot be trusted (floats
with NaN or infinity, decimals beyond a double, dates outside of the years 1 to 9999) are left out.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_MOST: Final = 32
"""Columns with statistics, the first ones, as in Delta (dataSkippingNumIndexedCols)."""

_CHARACTERS: Final = 32
"""Most characters of a string, as in Delta."""

_LAST: Final = "\U0010ffff"
_types = pa.types
Path = tuple[str, ...]


class Leaf(NamedTuple):
    """One of Parquet's columns."""

    name: str
    """As Parquet's writer calls it, with dots."""

    path: Path | None
    """Fields of structs; None within a list or map, where a row has many values."""

    type: pa.DataType


def column_at(rows: pa.RecordBatch | pa.Table, path: Path) -> Any:
    """A column, or a field of one that is a struct."""
    column = rows.column(path[0])
    # One name alone is taken for a path where it begins with a dot.
    return pc.struct_field(column, path[1:]) if path[1:] else column


def statistics_of(
    footer: pq.FileMetaData,
    schema: pa.Schema,
    unbounded: Collection[str],
    null_counts: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """The statistics of one file.

    Args:
        footer: of the file.
        schema: that it was written with.
        unbounded: columns of floats in which NaN may occur, named as in `Leaf.name`.
        null_counts: nulls of columns of which the footer has no statistics.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    for number, (name, path, kind) in enumerate(leaves(schema)):
        if path is None or number >= _MOST:
            continue
        if name in null_counts:
            _put(nulls, path, null_counts[name])
        of_groups = [group.column(number).statistics for group in groups]
        # What some row groups say is not true of the file: rows that match would be skipped.
        if any(part is None or not part.has_null_count for part in of_groups):
            continue
        _put(nulls, path, sum(part.null_count for part in of_groups))
        # A row group of nothing but nulls has no bounds.
        filled = [
            part
            for part, group in zip(of_groups, groups, strict=True)
            if part.null_count < group.num_rows
        ]
        if not filled or name in unbounded or not all(part.has_min_max for part in filled):
            continue
        try:
            low = _low(min(part.min for part in filled), kind)
            high = _high(max(part.max for part in filled), kind)
        # Python has no dates outside of the years 1 to 9999; Parquet and Spark have.
        except (OverflowError, ValueError):
            continue
        if low is not None and high is not None:
            _put(least, path, low)
            _put(greatest, path, high)
    stats = {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest}
    return json.dumps({**stats, "nullCount": nulls}, ensure_ascii=False, separators=(",", ":"))


def float_arrays(column: pa.Array, name: str) -> Iterator[tuple[str, pa.Array]]:
    """The values of all columns of floats in a column, at any depth, by their name in Parquet."""
    kind = column.type
    if _types.is_floating(kind):
        yield name, column
    elif _types.is_struct(kind):
        for inner, values in zip(kind, column.flatten(), strict=True):
            yield from float_arrays(values, f"{name}.{inner.name}")
    elif _types.is_map(kind):
        yield from float_arrays(column.keys, f"{name}.key_value.key")
        yield from float_arrays(column.items, f"{name}.key_value.value")
    elif _types.is_list(kind):
        yield from float_arrays(column.flatten(), f"{name}.list.element")


def leaves(schema: pa.Schema) -> Iterator[Leaf]:
    """Parquet's columns of rows with this schema, in order."""
    for column in schema:
        yield from _leaves(column.type, column.name, (column.name,))


def _leaves(kind: pa.DataType, name: str, path: Path | None) -> Iterator[Leaf]:
    if _types.is_struct(kind):
        for inner in kind:
            below = None if path is None else (*path, inner.name)
            yield from _leaves(inner.type, f"{name}.{inner.name}", below)
    elif _types.is_list(kind):
        yield from _leaves(kind.value_type, f"{name}.list.element", None)
    elif _types.is_map(kind):
        yield from _leaves(kind.key_type, f"{name}.key_value.key", None)
        yield from _leaves(kind.item_type, f"{name}.key_value.value", None)
    else:
        yield Leaf(name, path, kind)


def null_count(statistics: str, path: Path) -> int | None:
    """The nulls of a column in a file with these statistics; None if they do not say."""
    counts = json.loads(statistics)["nullCount"]
    for name in path:
        counts = counts.get(name) if isinstance(counts, dict) else None
    return counts if isinstance(counts, int) else None


def _put(into: dict[str, Any], path: Path, value: Any) -> None:
    *outer, name = path
    for part in outer:
        into = into.setdefault(part, {})
    into[name] = value


def _low(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str):
        # A beginning sorts before the whole text, so it is still a lower bound.
        return value[:_CHARACTERS]
    if isinstance(value, dt.datetime):
        # Delta has milliseconds here: the least is rounded down and the greatest up, never inwards.
        return _instant(value.replace(microsecond=value.microsecond // 1000 * 1000), kind)
    return _plain(value)


def _high(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _CHARACTERS else _after_all_with(value[:_CHARACTERS])
    if isinstance(value, dt.datetime):
        return _instant(value + dt.timedelta(microseconds=-value.microsecond % 1000), kind)
    return _plain(value)


def _after_all_with(prefix: str) -> str | None:
    """Return a text that sorts after all that begin with this one; None if no text does."""
    # Nothing sorts after the last character, so the one before it has to become greater.
    beginning = prefix.rstrip(_LAST)
    if not beginning:
        return None
    following = ord(beginning[-1]) + 1
    # UTF-8 has no surrogates.
    return beginning[:-1] + chr(0xE000 if following == 0xD800 else following)


def _instant(value: dt.datetime, kind: pa.DataType) -> str:
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text + ("Z" if kind.tz else "")


def _plain(value: Any) -> Any:
    """A number or a date as JSON has it; None for what has no order there, or would be rounded."""
    if isinstance(value, bool | bytes):
        return None
    if isinstance(value, int | float):
        # JSON has no word for infinity.
        return value if math.isfinite(value) else None
    if isinstance(value, dt.date):
        return value.isoformat()
    # Readers parse bounds as doubles, which hold any 15 digits exactly.
    if isinstance(value, Decimal) and len(value.as_tuple().digits) <= 15:
        return int(value) if value == value.to_integral_value() else float(value)
    return None
