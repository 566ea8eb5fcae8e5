"""What ISO 8601 text means as a date or a timestamp: the rules of Spark's casts, value by value.

Any part after the year may be missing, and months to seconds may have one digit. Not here: many
values at a time (`layouts.py`), patterns (`patterns.py`).
"""

from __future__ import annotations

import re
from datetime import date

from ..strings import BLANKS
from .zones import DAY, Zone, zone_of

_BLANKS = BLANKS + "\x7f"
"""What Spark trims: white space and control characters of ASCII."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d\d?)(?:-(\d\d?)(?:[ T].*)?)?)?\Z", re.ASCII | re.DOTALL)
_TIME = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d\d?)(?:-(\d\d?)"
    r"(?:[ T](\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*))?([^\d.].*)?)?)?)?)?)?\Z",
    re.ASCII | re.DOTALL,
)


def day_of(text: str) -> int:
    """A date as days since the epoch; a time of day behind it is not looked at.

    Raises:
        ValueError: it is not a timestamp, or beyond Spark's calendar.
    """
    match = _DATE.match(text.strip(_BLANKS))
    if not match:
        raise ValueError(f"{text!r} is not a date")
    return checked(days_of(_signed(match), int(match[3] or 1), int(match[4] or 1)), 32)


def local_of(text: str) -> tuple[int, Zone | None]:
    """The wall clock as microseconds since the epoch, cut off after those, and the zone it names.

    A time without a date is refused: Spark takes the day on which it is read, which is another
    one in a replay.

    Raises:
        ValueError: it is not one.
    """
    match = _TIME.match(text.strip(_BLANKS))
    if not match:
        raise ValueError(f"{text!r} is not a timestamp")
    day = days_of(_signed(match), int(match[3] or 1), int(match[4] or 1))
    hour, minute, second = (int(part or 0) for part in match.groups()[4:7])
    micros = int((match[8] or "").ljust(6, "0")[:6])
    zone = zone_of(match[9]) if match[9] else None
    return day * DAY + clock_of(hour, minute, second, micros), zone


def instant_of(text: str, zone: Zone) -> int:
    """A timestamp as microseconds since the epoch; text that names no zone is in `zone`.

    Raises:
        ValueError: it is not one, or beyond 64 bits.
    """
    local, named = local_of(text)
    return checked((named or zone).instant(local), 64)


def wall_clock_of(text: str, *, with_zone: bool) -> int:
    """A timestamp without zone. One that `text` names is left out if `with_zone`, else refused.

    Raises:
        ValueError: it is not one, or beyond 64 bits.
    """
    local, named = local_of(text)
    if named is not None and not with_zone:
        raise ValueError(f"{text!r} names a zone where the column has none")
    return checked(local, 64)


def days_of(year: int, month: int, day: int) -> int:
    """A day of the proleptic Gregorian calendar, of any year, as days since the epoch."""
    cycles, within = divmod(year, 400)
    # 400 years have 146,097 days; Python's own calendar begins with the year 1.
    return date(within + 400, month, day).toordinal() - _EPOCH_DAY + (cycles - 1) * 146_097


def clock_of(hour: int, minute: int, second: int, micros: int) -> int:
    """A time of day in microseconds. Raises ValueError if a day has no such time."""
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{hour}:{minute}:{second} is not a time of day")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def checked(value: int, bits: int) -> int:
    """The value itself. Raises ValueError if it does not fit; Spark reads null there."""
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError("a time beyond the range of its type")
    return value


def _signed(match: re.Match[str]) -> int:
    return -int(match[2]) if match[1] == "-" else int(match[2])
