"""What the values of an ORC file mean: calendar, zone and Spark's notes, as changes of columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from ...values.map_nested import Change, Path, on_leaves
from ...values.spark_metadata import hybrid_calendar
from ...values.times.zones import zone_of
from .footer_rewrite import TIMESTAMP
from .tail import Tail, Type

_NOTE = "spark.sql.catalyst.type"
_LOCAL = pa.timestamp("us")
_LONG, _DECIMAL, _DATE = 4, 14, 15
_BASE = 1_420_070_400
"""1 January 2015 in seconds, what timestamps are counted from, in any zone."""

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000
UTC_NAMES = ("UTC", "GMT", "Etc/UTC", "Z")


def has_timestamps(tail: Tail) -> bool:
    """Whether any value depends on the writer's zone."""
    return any(kind.kind == TIMESTAMP for kind in tail.types)


def unscaled_decimals(tail: Tail) -> set[Path]:
    """Decimals whose type does not say how many digits they have: those of Hive 0.11."""
    return {p for p, kind in _leaves(tail) if kind.kind == _DECIMAL and not kind.precision}


def changes(found: pa.Schema, tail: Tail, zone: str, path: str) -> dict[str, Change]:
    """What is to be done with which column of a stripe that was written in `zone`.

    `found` is the schema of the file as `patched` hands it on; instants come out without a zone, in
    UTC.

    Raises:
        SchemaMismatchError: values of the hybrid calendar in a zone that is not known.
    """
    kinds = dict(_leaves(tail))
    calendar = None if tail.is_proleptic else hybrid_calendar(zone, path)

    def leaf(arrow: pa.DataType, at: Path) -> Change | None:
        kind = kinds.get(at)
        if kind is None:
            return None
        if kind.kind == _DATE:
            return calendar.dates if calendar else None
        if kind.kind == _LONG and kind.notes.get(_NOTE) == "timestamp_ntz":
            # Spark writes timestamps without zone as numbers of microseconds.
            return lambda array: array.view(_LOCAL)
        if kind.kind != TIMESTAMP:
            return None
        offset = _offset_of(zone)
        rebase = calendar.instants if calendar else None
        return partial(_instants, offset=offset if arrow.tz else 0, rebase=rebase)

    made = {}
    for index, field in enumerate(found):
        # By number, as the names may be others than in the file.
        change = on_leaves(field.type, leaf, (str(index),))
        if change is not None:
            made[field.name] = change
    return made


def as_meant(found: pa.Schema, made: dict[str, Change]) -> pa.Schema:
    """`found` with the types that the changes lead to."""
    fields = []
    for field in found:
        change = made.get(field.name)
        # `pa.array` would import pandas where that is installed, in every child anew.
        empty = pa.nulls(0, field.type)
        fields.append(field if change is None else field.with_type(change(empty).type))
    return pa.schema(fields)


def _instants(array: pa.Array, offset: int, rebase: Change | None) -> pa.Array:
    """Stored timestamps as instants; `offset` is the writer's zone's from UTC in 2015."""
    plain = array.view(pa.timestamp("ns"))
    if offset:
        plain = _moved(plain, offset)
    return plain if rebase is None else rebase(plain)


def _moved(array: pa.Array, offset: int) -> pa.Array:
    """Timestamps counted from 2015 in the writer's zone, that were taken as counted in UTC.

    Writers cut seconds towards zero, and readers put that right where a fraction shows it. The
    border between is 1970 in UTC, not in the writer's zone: undo it there, do it here.
    """
    numbers = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds, fraction = np.divmod(numbers, _SECOND)
    cut = fraction >= _MILLISECOND
    seconds = seconds + (cut & (seconds < 0)) - offset
    seconds = seconds - (cut & (seconds < 0))
    validity = array.is_valid().buffers()[1] if array.null_count else None
    data = pa.py_buffer(np.ascontiguousarray(seconds * _SECOND + fraction, np.int64))
    return pa.Array.from_buffers(array.type, len(array), [validity, data])


def _offset_of(zone: str) -> int:
    return _BASE - zone_of(zone).instant(_BASE * 1_000_000) // 1_000_000


def _leaves(tail: Tail) -> Iterator[tuple[Path, Type]]:
    """Types without children, by path: the column's number, then names as in Arrow's types."""
    if not tail.types:
        return
    stack: list[tuple[Path, int]] = [
        ((str(i),), child) for i, child in enumerate(tail.types[0].children)
    ]
    while stack:
        at, index = stack.pop()
        kind = tail.types[index] if index < len(tail.types) else None
        if kind is None or len(at) > len(tail.types):
            reason = "types in the ORC footer that are no tree"
            raise ValueError(reason)
        if not kind.children:
            yield at, kind
        names = kind.names or {1: ("element",), 2: ("key", "value")}.get(len(kind.children), ())
        stack += [((*at, name), child) for name, child in zip(names, kind.children, strict=False)]
