"""Text to dates and timestamps as the options say, a column or a value at a time."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from .....errors import OptionError
from ...options import ReaderOptions
from . import instants
from .instants import JavaPattern


class Temporal:
    """The patterns and the zone of one reader."""

    def __init__(self, options: ReaderOptions) -> None:
        """Raises OptionError for a pattern or zone that is not understood."""
        self.zone = options.time_zone or "UTC"
        self._date = _pattern("dateFormat", options.date_format)
        self._instant = _pattern("timestampFormat", options.timestamp_format)
        self._local = _pattern("timestampNTZFormat", options.timestamp_ntz_format)
        try:
            instants.zone_of(self.zone)
        except ValueError as err:
            raise OptionError("timeZone is not known", found=self.zone) from err

    def column(self, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        """Strings as dates or timestamps. Raises ValueError if any is not one."""
        custom = self._custom(kind)
        if custom is not None:
            values = [None if text is None else custom(text) for text in texts.to_pylist()]
            return _integers(values, kind)
        if pa.types.is_date(kind):
            return instants.dates(texts)
        if kind.tz is not None:
            return instants.instants(texts, self.zone)
        return texts.cast(kind)

    def value(self, text: str, kind: pa.DataType) -> int:
        """One text as days or microseconds since the epoch. Raises ValueError if it is not one."""
        custom = self._custom(kind)
        if custom is not None:
            return custom(text)
        if pa.types.is_date(kind):
            return instants.day_of(text)
        return instants.micros_of(text, self.zone, with_zone=kind.tz is not None)

    def _custom(self, kind: pa.DataType) -> Callable[[str], int] | None:
        if pa.types.is_date(kind):
            return self._date.day if self._date else None
        with_zone = kind.tz is not None
        pattern = self._instant if with_zone else self._local
        if pattern is None:
            return None
        return lambda text: pattern.micros(text, self.zone, with_zone=with_zone)


def _integers(values: list[int | None], kind: pa.DataType) -> pa.Array:
    storage = pa.int32() if pa.types.is_date(kind) else pa.int64()
    return pa.array(values, storage).cast(kind)


def _pattern(option: str, text: str) -> JavaPattern | None:
    if not text:
        return None
    try:
        return JavaPattern(text)
    except ValueError as err:
        raise OptionError(
            f"{option} is not understood", found=str(err), expected="a pattern of dates and times"
        ) from err
