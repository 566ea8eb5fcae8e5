"""Time zones by Java's names, and wall clocks as instants, skipped and repeated hours included.

The one rule: an hour that a zone skips moves forward by the gap, and of an hour that it repeats the
first is meant. Both say the same: the offset before the change counts.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC as UTC_RULES
from datetime import datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from ..strings import BLANKS

DAY = 86_400_000_000
"""Length of a day in microseconds."""

_EPOCH = datetime(1970, 1, 1).toordinal()  # noqa: DTZ001 - a day has no zone
# A day within Python's calendar at both ends, so that no offset leads out of it.
_FIRST, _LAST = 2 - _EPOCH, datetime(9999, 12, 30).toordinal() - _EPOCH  # noqa: DTZ001
_CYCLE = 146_097
"""Days of 400 years, after which the calendar and the rules of summer time repeat."""

_OFFSET = re.compile(r"([+-])(\d|\d\d(?:\d\d){0,2}|\d\d(?::\d\d){1,2})\Z", re.ASCII)
_ONE_DIGIT_HOUR = re.compile(r"([+-])(\d):", re.ASCII)
_ONE_DIGIT_MINUTE = re.compile(r"([+-]\d\d:)(\d)\Z", re.ASCII)
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+\Z", re.ASCII)
_NOT_JAVAS = re.compile(r"posix|right/|localtime\Z|Factory\Z|ROC\Z")
"""What a system's zone directory may hold and Java does not know."""

_SHORT_IDS = """
ACT=Australia/Darwin AET=Australia/Sydney AGT=America/Argentina/Buenos_Aires ART=Africa/Cairo
AST=America/Anchorage BET=America/Sao_Paulo BST=Asia/Dhaka CAT=Africa/Harare CNT=America/St_Johns
CST=America/Chicago CTT=Asia/Shanghai EAT=Africa/Addis_Ababa ECT=Europe/Paris
IET=America/Indiana/Indianapolis IST=Asia/Kolkata JST=Asia/Tokyo MIT=Pacific/Apia NET=Asia/Yerevan
NST=Pacific/Auckland PLT=Asia/Karachi PNT=America/Phoenix PRT=America/Puerto_Rico
PST=America/Los_Angeles SST=Pacific/Guadalcanal VST=Asia/Ho_Chi_Minh EST=-05:00 MST=-07:00
HST=-10:00
"""
# Java's ZoneId.SHORT_IDS, which Spark takes as well.
SHORT_IDS = dict(pair.split("=") for pair in _SHORT_IDS.split())


class Zone:
    """A time zone. Wall clocks and instants are microseconds since the epoch."""

    def __init__(self, rules: tzinfo | int) -> None:
        """`rules` are an offset in seconds, or a zone whose offset changes."""
        self._rules = rules
        self._known: dict[int, int] = {}

    @property
    def fixed(self) -> int | None:
        """The offset in seconds, if it never changes."""
        return self._rules if isinstance(self._rules, int) else None

    def instant(self, local: int) -> int:
        """Return the instant at which the wall clock first shows `local`, or passes it by."""
        day, clock = divmod(local, DAY)
        offset = self._of_day(day)
        if offset == _CHANGES:
            offset = self._at(_within_years(day), clock, 0)
        return local - offset * 1_000_000

    def readings(self, local: int) -> tuple[int, int]:
        """The instants that the wall clock can mean: by the offsets before and after a change."""
        if isinstance(self._rules, int):
            return self.instant(local), self.instant(local)
        day, clock = divmod(local, DAY)
        before, after = (self._at(_within_years(day), clock, fold) for fold in (0, 1))
        return local - before * 1_000_000, local - after * 1_000_000

    def instants(self, local: np.ndarray) -> np.ndarray:
        """Return the same for many."""
        if isinstance(self._rules, int) or not len(local):
            return local - (self.fixed or 0) * 1_000_000
        # The offset of a whole day is looked up; the few days on which it changes are decided text
        # by text.
        offsets = self._of_days(local // DAY)
        instants: np.ndarray = local - offsets * 1_000_000
        for index in np.flatnonzero(offsets == _CHANGES):
            instants[index] = self.instant(int(local[index]))
        return instants

    def wall_clocks(self, instants: np.ndarray) -> np.ndarray:
        """Return what a clock in the zone shows at these instants."""
        if isinstance(self._rules, int) or not len(instants):
            return instants + (self.fixed or 0) * 1_000_000
        days, which = np.unique(instants // DAY, return_inverse=True)
        starts = [self._at_instant(int(day), 0) for day in days]
        ends = [self._at_instant(int(day), DAY - 1) for day in days]
        offsets = np.array(starts, np.int64)[which]
        for index in np.flatnonzero((np.array(starts) != np.array(ends))[which]):
            offsets[index] = self._at_instant(*divmod(int(instants[index]), DAY))
        return np.asarray(instants + offsets * 1_000_000)

    def _at_instant(self, day: int, clock: int) -> int:
        day = _within_years(day)
        moment = datetime.fromordinal(day + _EPOCH) + timedelta(microseconds=clock)
        local = moment.replace(tzinfo=UTC_RULES).astimezone(self._rules)  # type: ignore[arg-type]
        return round((local.utcoffset() or timedelta()).total_seconds())

    def _of_days(self, days: np.ndarray) -> np.ndarray:
        first, last = int(days.min()), int(days.max())
        if last - first > _TABLE_DAYS:
            # Dates that mean "never" are far out; a table over the gap would be mostly empty.
            distinct, which = np.unique(days, return_inverse=True)
            table = np.array([self._of_day(int(day)) for day in distinct], np.int64)
            return np.asarray(table[which])
        table = np.zeros(last - first + 1, np.int64)
        from_first = days - first
        for day in np.flatnonzero(np.bincount(from_first)):
            table[day] = self._of_day(first + int(day))
        return np.asarray(table[from_first])

    def _of_day(self, day: int) -> int:
        """Return the offset that holds all day, or `_CHANGES`."""
        if isinstance(self._rules, int):
            return self._rules
        offset = self._known.get(day)
        if offset is None:
            near = _within_years(day)
            # The earlier reading of the first moment and the later one of the last: they agree
            # only if no change touches the day, not even one whose gap reaches across midnight.
            offset = self._at(near, 0, 0)
            if offset != self._at(near, DAY - 1, 1):
                offset = _CHANGES
            self._known[day] = offset
        return offset

    def _at(self, day: int, clock: int, fold: int) -> int:
        moment = datetime.fromordinal(day + _EPOCH) + timedelta(microseconds=clock)
        placed = moment.replace(tzinfo=self._rules, fold=fold)  # type: ignore[arg-type]
        return round((placed.utcoffset() or timedelta()).total_seconds())


_CHANGES = 1 << 20
"""Means the offset of a day on which the offset changes: no zone is ever 12 days off."""

# Two centuries, for which the table takes 640 KB.
_TABLE_DAYS = 80_000

UTC = Zone(0)


def _within_years(day: int) -> int:
    """Return a day with the same rules in the years that Python's calendar knows."""
    if day > _LAST:
        return day - -(-(day - _LAST) // _CYCLE) * _CYCLE
    return max(day, _FIRST)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> Zone:
    """Return the zone that Java, and with it Spark, means by `name`.

    Raises:
        ValueError: it means none.
    """
    # Spark's `SparkDateTimeUtils.getZoneId` permits `+1:00` and `+01:0`, which Java does not.
    text = _ONE_DIGIT_HOUR.sub(r"\g<1>0\2:", name.strip(BLANKS), count=1)
    text = _ONE_DIGIT_MINUTE.sub(r"\g<1>0\2", text)
    text = SHORT_IDS.get(text, text)
    if text in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return UTC
    prefix = next((p for p in ("UTC", "GMT", "UT", "") if text.startswith(p)), "")
    offset = _OFFSET.match(text.removeprefix(prefix))
    if offset:
        return Zone(_offset(name, offset))
    if not _REGION.match(text) or _NOT_JAVAS.match(text):
        raise ValueError(f"{name!r} is not a time zone")
    try:
        return Zone(ZoneInfo(text))
    except (KeyError, OSError, ValueError):
        raise ValueError(f"{name!r} is not a time zone") from None


def zone_in_any_case(name: str) -> Zone:
    """Return the same for a name in any case, as patterns take it. Raises ValueError."""
    for spelling in (name, name.upper()):
        with suppress(ValueError):
            return zone_of(spelling)
    return zone_of(_spellings().get(name.lower(), name))


@cache
def _spellings() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def _offset(name: str, match: re.Match[str]) -> int:
    digits = match[2].replace(":", "")
    hours, minutes, seconds = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        raise ValueError(f"{name!r} is not a time zone: offsets go up to 18:00")
    return -total if match[1] == "-" else total
