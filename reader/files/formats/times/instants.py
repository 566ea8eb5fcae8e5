"""Dates and timestamps from text: Arrow's kernels for ISO 8601, Java patterns for the rest.

Not here: where the text comes from. Everything raises ValueError (`pa.ArrowInvalid` is one) for
text that is no date or time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock times have no zone by nature
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICRO = timedelta(microseconds=1)

_ISO_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\s*\Z")
_ISO_TIME = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?\s*([A-Za-z+-].*)?)?)?)?\s*\Z"
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?\Z")


def zone_of(name: str) -> tzinfo:
    """The time zone Java means by `name`."""
    text = name.strip()
    if text in ("", "Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return UTC
    match = _OFFSET.match(text)
    if match:
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(text)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"{name!r} is no time zone") from None


def dates(texts: pa.Array) -> pa.Array:
    """ISO dates as date32."""
    return texts.cast(pa.date32())


def instants(texts: pa.Array, zone: str) -> pa.Array:
    """ISO timestamps as UTC; text that names no zone is in `zone`."""
    target = pa.timestamp("us", "UTC")
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        return localised(texts.cast(pa.timestamp("us")), zone)


def localised(local: pa.Array, zone: str) -> pa.Array:
    """Wall clock times as instants, where a zone skips or repeats hours as Java takes them."""
    if zone_of(zone or "UTC") is UTC:
        return local.cast(pa.timestamp("us", "UTC"))
    match = _OFFSET.match(zone)
    if match:
        offset = zone_of(zone).utcoffset(None) or timedelta()
        shifted = pc.subtract(local, pa.scalar(offset, pa.duration("us")))
        return shifted.cast(pa.timestamp("us", "UTC"))
    try:
        placed = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise")
    except ValueError:
        # An hour that the zone skips: Java moves such times forward by the gap.
        known = zone_of(zone)
        moments = (None if m is None else _micros(m, known) for m in local.to_pylist())
        return pa.array(moments, pa.timestamp("us", "UTC"))
    return placed.cast(pa.timestamp("us", "UTC"))


def day_of(text: str) -> int:
    """An ISO date as days since the epoch."""
    match = _ISO_DATE.match(text)
    if not match:
        raise ValueError(f"{text!r} is no date")
    return date(*(int(part or 1) for part in match.groups())).toordinal() - _EPOCH_DAY


def micros_of(text: str, zone: str, *, with_zone: bool) -> int:
    """An ISO timestamp as microseconds since the epoch; a fraction beyond is cut off."""
    match = _ISO_TIME.match(text)
    if not match:
        raise ValueError(f"{text!r} is no timestamp")
    year, month, day = (int(part or 1) for part in match.groups()[:3])
    hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
    micros = int((match[7] or "").ljust(6, "0")[:6])
    moment = datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001
    if match[8] and not with_zone:
        raise ValueError(f"{text!r} names a zone where the column has none")
    return _micros(moment, (zone_of(match[8] or zone) if with_zone else None))


def _micros(moment: datetime, zone: tzinfo | None) -> int:
    if zone is None or zone is UTC:
        return (moment - _EPOCH) // _MICRO
    placed = moment.replace(tzinfo=zone)
    offset = placed.utcoffset() or timedelta()
    # A skipped hour: Java moves forward by the gap, which is what the offset before it gives.
    return (moment - offset - _EPOCH) // _MICRO


_MONTHS = "January February March April May June July August September October November December"
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTH_NUMBER = {name[:3].lower(): i for i, name in enumerate(_MONTHS.split(), 1)}


def _names(names: str, *, short: bool) -> str:
    return "|".join(name[:3] if short else name for name in names.split())


class JavaPattern:
    """A pattern of Java's DateTimeFormatter, as far as data uses them.

    Letters y u M L d D H h k K m s S a E X x Z z V and quoted text; `[...]` is optional.
    """

    def __init__(self, pattern: str) -> None:
        """Raises ValueError for a letter that is not understood."""
        self.pattern = pattern
        self._fields: list[str] = []
        self._regex = re.compile(self._translate(pattern) + r"\Z", re.IGNORECASE)

    def moment(self, text: str) -> tuple[datetime, tzinfo | None]:
        """The wall clock time `text` says, and its zone if it names one."""
        match = self._regex.match(text)
        if not match:
            raise ValueError(f"{text!r} does not fit the pattern {self.pattern}")
        found = {
            name: value
            for name, value in zip(self._fields, match.groups(), strict=True)
            if value is not None
        }
        year = int(found.get("y", 1970))
        if len(found.get("y", "1970")) == 2:
            year += 2000
        month = found.get("M", "1")
        number = int(month) if month.isdigit() else _MONTH_NUMBER[month[:3].lower()]
        hour = int(found.get("H", 0))
        if "k" in found:
            hour = int(found["k"]) % 24
        elif "h" in found or "K" in found:
            hour = int(found.get("h", found.get("K", 0))) % 12
            hour += 12 * (found.get("a", "am").lower() == "pm")
        micros = int(found.get("S", "").ljust(6, "0")[:6])
        clock = (hour, int(found.get("m", 0)), int(found.get("s", 0)), micros)
        if "D" in found:
            moment = datetime(year, 1, 1, *clock) + timedelta(days=int(found["D"]) - 1)  # noqa: DTZ001
        else:
            moment = datetime(year, number, int(found.get("d", 1)), *clock)  # noqa: DTZ001
        return moment, zone_of(found["X"]) if "X" in found else None

    def day(self, text: str) -> int:
        """`text` as days since the epoch."""
        return self.moment(text)[0].toordinal() - _EPOCH_DAY

    def micros(self, text: str, zone: str, *, with_zone: bool) -> int:
        """`text` as microseconds since the epoch."""
        moment, named = self.moment(text)
        return _micros(moment, (named or zone_of(zone)) if with_zone else None)

    def _translate(self, pattern: str) -> str:
        out, at = [], 0
        while at < len(pattern):
            char = pattern[at]
            if char == "'":
                end = pattern.find("'", at + 1)
                if end < 0:
                    raise ValueError(f"pattern {pattern!r} has an open quote")
                out.append(re.escape(pattern[at + 1 : end]) if end > at + 1 else "'")
                at = end + 1
            elif char in "[]":
                out.append("(?:" if char == "[" else ")?")
                at += 1
            elif char.isalpha():
                count = len(pattern[at:]) - len(pattern[at:].lstrip(char))
                out.append(self._letter(char, count))
                at += count
            else:
                out.append(re.escape(char))
                at += 1
        return "".join(out)

    def _letter(self, char: str, count: int) -> str:
        exact = rf"(\d{{{count}}})"
        digits = exact if count > 1 else r"(\d{1,2})"
        table: dict[str, Callable[[], tuple[str, str]]] = {
            "y": lambda: ("y", r"(\d{2})" if count == 2 else r"(\d{4})"),
            "M": lambda: ("M", digits if count < 3 else f"({_names(_MONTHS, short=count == 3)})"),
            "S": lambda: ("S", exact),
            "D": lambda: ("D", exact if count > 1 else r"(\d{1,3})"),
            "a": lambda: ("a", "(AM|PM)"),
            "E": lambda: ("E", f"({_names(_DAYS, short=count < 4)})"),
            "X": lambda: ("X", r"(Z|[+-]\d{2}(?::?\d{2}){0,2})"),
            "x": lambda: ("X", r"([+-]\d{2}(?::?\d{2}){0,2})"),
            "Z": lambda: ("X", r"([+-]\d{4}|(?:GMT|UTC)?[+-]\d{2}:?\d{2}|Z|GMT)"),
            "z": lambda: ("X", r"([A-Za-z][A-Za-z/_+-]*(?:\d{1,2}(?::?\d{2})?)?)"),
        }
        same = {"u": "y", "L": "M", "V": "z", "O": "Z"}
        key = same.get(char, char)
        if key in "dHhkKms":
            name, regex = key, digits
        elif key in table:
            name, regex = table[key]()
        else:
            raise ValueError(f"pattern {self.pattern!r}: the letter {char} is not supported")
        self._fields.append(name)
        return regex
