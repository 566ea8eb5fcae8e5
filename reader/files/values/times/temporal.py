"""Text to dates and timestamps as the options say, a column or a value at a time.

Three things the rest of the reader needs to know of time, and nothing else is asked elsewhere:
`Temporal` for the text in files, `cast_text` for text in paths and in `filter`, and `instants_of`
for timestamps that a file stores without their zone. All raise ValueError for what is no time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import OptionError
from ...options import FileFormatName, ReaderOptions
from ..map_nested import Change
from ..numbers import integer
from .exact import JavaPattern, day_of, instant_of, wall_clock_of
from .layouts import INSTANT, LOCAL, Layout, cast_or_none, days, named_instants, wall_clocks
from .zones import Zone, zone_of


class Temporal:
    """The patterns and the zone of one reader, for the text that files hold.

    A text means the same alone and next to any others, in `column` as in `value`, and what Spark's
    readers of CSV and JSON make of it; docs/differences.md lists what is left of differences.
    """

    def __init__(self, options: ReaderOptions) -> None:
        """Raises OptionError for a pattern or zone that is not understood."""
        zone = _zone(options.time_zone or "UTC")
        days_in_numbers = options.file_format == FileFormatName.JSON
        self._date = _dates(options.date_format, days_in_numbers)
        self._instant = _instants(options.timestamp_format, zone)
        self._local = _wall_clocks(options.timestamp_ntz_format)

    def column(self, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        """Strings as dates or timestamps; null stays null.

        Raises:
            ValueError: at least one is no such time, so that `value` has to decide for each.
        """
        return self._rule(kind).column(texts, kind)

    def value(self, text: str, kind: pa.DataType) -> int:
        """Return one text as days or microseconds since the epoch.

        Raises:
            ValueError: it is no such time.
        """
        return self._rule(kind).exact(text)

    def _rule(self, kind: pa.DataType) -> _Rule:
        if pa.types.is_date(kind):
            return self._date
        return self._local if kind.tz is None else self._instant


def cast_text(text: str, kind: pa.DataType, zone: str) -> pa.Scalar:
    """Text of a path or of a filter as Spark's `CAST(... AS ...)` takes it; raises ValueError."""
    if pa.types.is_date(kind):
        return pa.scalar(day_of(text), pa.int32()).cast(kind)
    if kind.tz is None:
        # Spark's cast leaves a zone out that the text names; its readers refuse such a text.
        value = wall_clock_of(text, with_zone=True)
    else:
        value = instant_of(text, zone_of(zone))
    return pa.scalar(value, pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)


def instants_of(local: pa.Array, zone: str) -> pa.Array:
    """Timestamps without zone as the instants at which a clock in `zone` shows them, unit kept.

    Raises:
        ValueError: a fraction finer than a microsecond, or an instant beyond 64 bits.
    """
    rules = zone_of(zone or "UTC")
    target = pa.timestamp(local.type.unit, "UTC")
    if rules.fixed == 0:
        return local.cast(target)
    return _in_zone(local.cast(LOCAL), rules).cast(target)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One way from text to a number: exact for each, and vectorised for most."""

    exact: Callable[[str], int]
    many: Change
    """From texts to times, null for those that have to be read exactly."""

    def column(self, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        if not pa.types.is_string(texts.type):
            texts = texts.cast(pa.string())
        times = self.many(texts)
        if times.null_count > texts.null_count:
            values = _numbers(times).copy()
            left = np.flatnonzero(pc.and_(times.is_null(), texts.is_valid()))
            # Many of them are the same.
            exact = cache(self.exact)
            for index, text in zip(left, texts.take(pa.array(left)).to_pylist(), strict=True):
                values[index] = exact(text)
            times = _array(values, texts.is_null(), times.type)
        return times.cast(kind)


def _dates(pattern: str, days_in_numbers: bool) -> _Rule:
    if pattern:
        java_pattern, layout = _understood("dateFormat", pattern)
        return _Rule(java_pattern.day, lambda texts: _local(texts, layout).cast(pa.date32()))

    def exact(text: str) -> int:
        try:
            return _without_gmt(text, day_of)
        except ValueError:
            # Dates of Spark 1.5 were numbers of days, and its JSON reader still takes them.
            if days_in_numbers:
                return integer(text, pa.int32())
            raise

    return _Rule(exact, days)


def _instants(pattern: str, zone: Zone) -> _Rule:
    if not pattern:
        return _Rule(
            lambda text: _without_gmt(text, lambda plain: instant_of(plain, zone)),
            lambda texts: _instants_of_iso(texts, zone),
        )
    java_pattern, layout = _understood("timestampFormat", pattern)

    def many(texts: pa.Array) -> pa.Array:
        if layout and layout.has_zone:
            return named_instants(layout.as_iso(texts))
        return _in_zone(_local(texts, layout), zone)

    return _Rule(lambda text: instant_of(text, zone, java_pattern.local), many)


def _wall_clocks(pattern: str) -> _Rule:
    if pattern:
        java_pattern, layout = _understood("timestampNTZFormat", pattern)
        exact = partial(wall_clock_of, with_zone=False, read=java_pattern.local)
        return _Rule(exact, lambda texts: _local(texts, layout))
    return _Rule(partial(wall_clock_of, with_zone=False), wall_clocks)


def _understood(option: str, text: str) -> tuple[JavaPattern, Layout | None]:
    """Return an option's pattern, and what of it can be read for many texts at once."""
    try:
        pattern = JavaPattern(text)
    except ValueError as err:
        raise OptionError(
            f"{option} is not understood", found=str(err), expected="a pattern of dates and times"
        ) from err
    return pattern, Layout.of_pattern(pattern)


def _without_gmt(text: str, exact: Callable[[str], int]) -> int:
    """As Spark's readers do: what is not a time as written is tried again without any `GMT`."""
    try:
        return exact(text)
    except ValueError:
        if "GMT" not in text:
            raise
        return exact(text.replace("GMT", ""))


def _local(texts: pa.Array, layout: Layout | None) -> pa.Array:
    if layout is None or layout.has_zone:
        return pa.nulls(len(texts), LOCAL)
    return wall_clocks(layout.as_iso(texts))


def _instants_of_iso(texts: pa.Array, zone: Zone) -> pa.Array:
    # Mostly no text of a column names a zone, or all do.
    if (local := cast_or_none(texts, LOCAL)) is not None:
        return _in_zone(local, zone)
    named = named_instants(texts)
    if named.null_count == texts.null_count:
        return named
    others = pc.if_else(named.is_null(), texts, None)
    return pc.coalesce(named, _in_zone(wall_clocks(others), zone))


def _in_zone(local: pa.Array, zone: Zone) -> pa.Array:
    """Return the instants at which a clock in `zone` shows these times, in microseconds."""
    if zone.fixed == 0:
        return local.cast(INSTANT)
    return _array(zone.instants(_numbers(local)), local.is_null(), INSTANT)


def _numbers(times: pa.Array) -> np.ndarray:
    width = pa.int32() if pa.types.is_date(times.type) else pa.int64()
    # What is beneath a null may be anything.
    return np.asarray(times.view(width).fill_null(0).to_numpy(zero_copy_only=False))


def _array(values: np.ndarray, nulls: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array(values, mask=nulls.to_numpy(zero_copy_only=False)).view(kind)


def _zone(name: str) -> Zone:
    try:
        return zone_of(name)
    except ValueError as err:
        raise OptionError(
            "timeZone is not known",
            found=name,
            expected="a region such as Europe/Berlin, or an offset such as +01:00",
        ) from err
