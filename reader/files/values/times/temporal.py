"""Text to dates and timestamps as the options say, a column or a value at a time.

Three things the rest of the reader needs to know of time, and nothing else is asked elsewhere:
`Temporal` for the text in files, `cast_text` for text in paths and in `filter`, and `instants_of`
for timestamps that a file stores without their zone. All raise ValueError for what is no time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from .....errors import OptionError
from ...options import FileFormatName, ReaderOptions
from ..numbers import integer
from .exact import JavaPattern, day_of, instant_of, wall_clock_of
from .layouts import ISO_DATES, ISO_TIMES, Layout, Times, read
from .zones import DAY, Zone, zone_of


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
    micros = local.cast(pa.timestamp("us")).cast(pa.int64())
    values = rules.instants(_numbers(micros))
    return _array(values, micros.is_null(), pa.timestamp("us", "UTC")).cast(target)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One way from text to a number: exact for each, and vectorised for most."""

    exact: Callable[[str], int]
    layouts: tuple[Layout, ...]
    number: Callable[[Times], np.ndarray]

    def column(self, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        times = read(texts, self.layouts)
        values = self.number(times)
        left = np.flatnonzero(~times.good)
        if len(left):
            # What is left are nulls, and texts of which many are the same.
            offsets_by_text: dict[str | None, int] = {None: 0}
            for index, text in zip(left, texts.take(pa.array(left)).to_pylist(), strict=True):
                if text not in offsets_by_text:
                    offsets_by_text[text] = self.exact(text)
                values[index] = offsets_by_text[text]
        return _array(values, texts.is_null() if texts.null_count else None, kind)


def _dates(pattern: str, days_in_numbers: bool) -> _Rule:
    if pattern:
        java_pattern, layouts = _understood("dateFormat", pattern)
        return _Rule(java_pattern.day, layouts, _days)

    def exact(text: str) -> int:
        try:
            return _without_gmt(text, day_of)
        except ValueError:
            # Dates of Spark 1.5 were numbers of days, and its JSON reader still takes them.
            if days_in_numbers:
                return integer(text, pa.int32())
            raise

    return _Rule(exact, ISO_DATES, _days)


def _instants(pattern: str, zone: Zone) -> _Rule:
    def number(times: Times) -> np.ndarray:
        return _instants_of_times(times, zone)

    if pattern:
        java_pattern, layouts = _understood("timestampFormat", pattern)
        return _Rule(lambda text: instant_of(text, zone, java_pattern.local), layouts, number)
    return _Rule(
        lambda text: _without_gmt(text, lambda plain: instant_of(plain, zone)), ISO_TIMES, number
    )


def _wall_clocks(pattern: str) -> _Rule:
    if pattern:
        java_pattern, layouts = _understood("timestampNTZFormat", pattern)
        exact = partial(wall_clock_of, with_zone=False, read=java_pattern.local)
        return _Rule(exact, layouts, _local)
    return _Rule(partial(wall_clock_of, with_zone=False), ISO_TIMES, _local)


def _understood(option: str, text: str) -> tuple[JavaPattern, tuple[Layout, ...]]:
    """Return an option's pattern, and what of it can be read for many texts at once."""
    try:
        pattern = JavaPattern(text)
    except ValueError as err:
        raise OptionError(
            f"{option} is not understood", found=str(err), expected="a pattern of dates and times"
        ) from err
    layout = Layout.of_pattern(pattern)
    return pattern, (layout,) if layout else ()


def _without_gmt(text: str, exact: Callable[[str], int]) -> int:
    """As Spark's readers do: what is not a time as written is tried again without any `GMT`."""
    try:
        return exact(text)
    except ValueError:
        if "GMT" not in text:
            raise
        return exact(text.replace("GMT", ""))


def _days(times: Times) -> np.ndarray:
    return times.days


def _local(times: Times) -> np.ndarray:
    # A column without zone takes no text that names one.
    times.good &= ~times.zoned
    return np.asarray(times.days * DAY + times.clock)


def _instants_of_times(times: Times, zone: Zone) -> np.ndarray:
    local: np.ndarray = times.days * DAY + times.clock
    if not times.zoned.any():
        return zone.instants(local, times.days)
    named: np.ndarray = local - times.offset * 1_000_000
    # Mostly all texts of a column name a zone or no text does, and one computation is enough.
    if times.zoned.all():
        return named
    return np.where(times.zoned, named, zone.instants(local, times.days))


def _numbers(array: pa.Array) -> np.ndarray:
    return np.frombuffer(array.buffers()[1], np.int64, len(array), array.offset * 8)


def _array(values: np.ndarray, nulls: pa.Array | None, kind: pa.DataType) -> pa.Array:
    width = np.int32 if pa.types.is_date(kind) else np.int64
    mask = None if nulls is None else nulls.to_numpy(zero_copy_only=False)
    array = pa.array(values.astype(width, copy=False), mask=mask)
    return array.view(kind if pa.types.is_date(kind) else pa.timestamp("us", kind.tz)).cast(kind)


def _zone(name: str) -> Zone:
    try:
        return zone_of(name)
    except ValueError as err:
        raise OptionError(
            "timeZone is not known",
            found=name,
            expected="a region such as Europe/Berlin, or an offset such as +01:00",
        ) from err
