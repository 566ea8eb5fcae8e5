"""What one text means as a date or a timestamp: ISO 8601 as Spark's casts take it, Java's patterns.

Of ISO 8601 any part after the year may be missing, and months to seconds may have one digit. What
Spark refuses in a pattern is refused here, by name. As in Spark a pattern has to fit the whole
text, letters fit in either case, and a fraction (`SSS`) takes one to as many digits as letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from ..strings import BLANKS
from .zones import DAY, SHORT_IDS, Zone, zone_in_any_case, zone_of

_BLANKS = BLANKS + "\x7f"
"""What Spark trims: white space and control characters of ASCII."""

Read = Callable[[str], tuple[int, Zone | None]]
"""From text to what `local_of` returns."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d\d?)(?:-(\d\d?)(?:[ T].*)?)?)?\Z", re.ASCII | re.DOTALL)
_TIME = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d\d?)(?:-(\d\d?)"
    r"(?:[ T](\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*))?([^\d.].*)?)?)?)?)?)?\Z",
    re.ASCII | re.DOTALL,
)


def day_of(text: str) -> int:
    """Return a date as days since the epoch; a time of day behind it is not looked at.

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


def instant_of(text: str, zone: Zone, read: Read = local_of) -> int:
    """Return a timestamp as microseconds since the epoch; text that names no zone is in `zone`.

    Raises:
        ValueError: it is not one, or beyond 64 bits.
    """
    local, named = read(text)
    return checked((named or zone).instant(local), 64)


def wall_clock_of(text: str, *, with_zone: bool, read: Read = local_of) -> int:
    """A timestamp without zone. One that `text` names is left out if `with_zone`, else refused.

    Raises:
        ValueError: it is not one, or beyond 64 bits.
    """
    local, named = read(text)
    if named is not None and not with_zone:
        raise ValueError(f"{text!r} names a zone where the column has none")
    return checked(local, 64)


def days_of(year: int, month: int, day: int) -> int:
    """Return a day of the proleptic Gregorian calendar, of any year, as days since the epoch."""
    cycles, within = divmod(year, 400)
    # 400 years have 146,097 days; Python's own calendar begins with the year 1.
    return date(within + 400, month, day).toordinal() - _EPOCH_DAY + (cycles - 1) * 146_097


def clock_of(hour: int, minute: int, second: int, micros: int) -> int:
    """Return a time of day in microseconds. Raises ValueError if a day has no such time."""
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{hour}:{minute}:{second} is not a time of day")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def checked(value: int, bits: int) -> int:
    """Return the value itself. Raises ValueError if it does not fit; Spark reads null there."""
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError("a time beyond the range of its type")
    return value


def _signed(match: re.Match[str]) -> int:
    return -int(match[2]) if match[1] == "-" else int(match[2])


_MONTHS = "January February March April May June July August September October November December"
_SHORT = [name[:3] for name in _MONTHS.split()]
_NUMBER = {name[:3].lower(): number for number, name in enumerate(_SHORT, 1)}
# As many digits as `DateTimeFormatterBuilder.appendValue` takes without a width.
_PLAIN = r"(\d{1,19})"
_OFFSETS = {
    1: r"[+-]\d{2}(?:\d{2})?",
    2: r"[+-]\d{4}",
    3: r"[+-]\d{2}:\d{2}",
    4: r"[+-]\d{4}(?:\d{2})?",
    5: r"[+-]\d{2}:\d{2}(?::\d{2})?",
}
_OFFSET_ID = r"(?:UTC|GMT|UT)?[+-]\d{2}:\d{2}(?::\d{2})?"
_REGION = rf"(?!(?:UTC|GMT|UT)[+-]|(?:{'|'.join(SHORT_IDS)})(?![\w/+-]))[A-Z][\w/+-]*"
_Z_REGION = rf"(?!Etc/GMT[0+-]){_REGION}"
_NAMES = {name: SHORT_IDS[name] for name in ["AET", "CAT", "CST", "EAT", "HST", "JST", "PST"]}
_NAMES |= {"EST": "America/New_York", "MST": "America/Denver"}
"""What the letter z takes in addition to regions. Other names, such as IST, mean several zones."""

_NAME = f"(?:{'|'.join(_NAMES)})(?![\\w/+-])"
_SPELLINGS = {
    "y": {1: r"(-?\d{1,10})", 2: r"(\d{2})", 3: r"(-?\d{3,10})"},
    "M": {
        1: _PLAIN,
        2: r"(\d{2})",
        3: f"({'|'.join(_SHORT)})",
        4: f"({_MONTHS.replace(' ', '|')})",
    },
    "D": {1: _PLAIN, 2: r"(\d{2,3})", 3: r"(\d{3})"},
    "a": {1: "(AM|PM)"},
    "X": {count: f"(Z|{offset})" for count, offset in _OFFSETS.items()},
    "x": {count: f"({offset})" for count, offset in _OFFSETS.items()},
    "Z": dict.fromkeys((1, 2, 3), r"([+-]\d{4})")
    | {4: r"(GMT(?:[+-]\d{2}:\d{2})?)", 5: r"(Z|[+-]\d{2}:\d{2}(?::\d{2})?)"},
    "O": {1: r"(GMT(?:[+-]\d{1,2}(?::\d{2})?)?)", 4: r"(GMT(?:[+-]\d{2}:\d{2})?)"},
    "z": dict.fromkeys((1, 2, 3), f"({_OFFSET_ID}|{_NAME}|{_Z_REGION})")
    | {4: f"({_OFFSET_ID}|{_Z_REGION})"},
    "V": {2: f"({_OFFSET_ID}|{_REGION})"},
}
_SPELLINGS |= {letter: {1: _PLAIN, 2: r"(\d{2})"} for letter in "dHhkKms"}
_ZONES = "XxZOzV"


@dataclass(frozen=True, slots=True)
class PatternPart:
    """One part of a pattern: so many times a letter, `[` or `]`, or with no letter plain text."""

    letter: str
    count: int
    text: str = ""


class JavaPattern:
    """A pattern of Java's DateTimeFormatter.

    Letters y M L d D H h k K m s S a X x Z O z V, quoted text, `[...]` around what may be missing.
    """

    def __init__(self, pattern: str) -> None:
        """Raises ValueError for a pattern that Spark refuses or that is not understood."""
        self.pattern = pattern
        self.pieces = list(_pieces(pattern))
        self._names: list[str] = []
        regex = "".join(map(self._regex_of, self.pieces))
        try:
            self._regex = re.compile(regex + r"\Z", re.IGNORECASE | re.ASCII)
        except re.error:
            raise ValueError(f"pattern {pattern!r} has an open bracket") from None

    def local(self, text: str) -> tuple[int, Zone | None]:
        """The wall clock that `text` shows in microseconds since the epoch, and its zone, if any.

        Raises:
            ValueError: `text` does not fit.
        """
        match = self._regex.match(text)
        if not match:
            raise ValueError(f"{text!r} does not fit the pattern {self.pattern}")
        groups = zip(self._names, match.groups(), strict=True)
        parts = {name: value for name, value in groups if value is not None}
        named = next((parts[name] for name in parts if name in _ZONES), None)
        zone = zone_in_any_case(_NAMES.get(named.upper(), named)) if named else None
        return _day(parts) * DAY + _clock(parts), zone

    def day(self, text: str) -> int:
        """`text` as days since the epoch. Raises ValueError if it does not fit."""
        return checked(self.local(text)[0] // DAY, 32)

    def _regex_of(self, piece: PatternPart) -> str:
        if not piece.letter:
            return re.escape(piece.text)
        if piece.letter in "[]":
            return "(?:" if piece.letter == "[" else ")?"
        return self._letter(piece.letter, piece.count)

    def _letter(self, letter: str, count: int) -> str:
        # Java knows L as the month without a day, which is spelled the same in English.
        letter = {"L": "M"}.get(letter, letter)
        if letter in self._names:
            raise ValueError(f"pattern {self.pattern!r} contains {letter} twice")
        self._names.append(letter)
        if letter == "S" and count <= 9:
            return rf"(\d{{1,{count}}})"
        # `SignStyle.EXCEEDS_PAD`: more digits than letters need a sign.
        if letter == "y" and count >= 4:
            return rf"(\d{{{count}}}|\+\d{{{count + 1},10}}|-\d{{{count},10}})"
        spelling = _SPELLINGS.get(letter, {}).get(count)
        if spelling is None:
            letters = letter * count
            raise ValueError(f"pattern {self.pattern!r}: {letters} is not supported")
        return spelling


def _pieces(pattern: str) -> Iterator[PatternPart]:
    for match in re.finditer(
        r"'((?:[^']|'')*)'|([A-Za-z])\2*|([\[\]])|([^A-Za-z'\[\]]+)|'", pattern
    ):
        quoted, letter, bracket, plain = match.groups()
        if quoted is not None:
            yield PatternPart("", 0, quoted.replace("''", "'") or "'")
        elif letter:
            yield PatternPart(letter, len(match[0]))
        elif bracket:
            yield PatternPart(bracket, 1)
        elif plain is None:
            raise ValueError(f"pattern {pattern!r} has an open quote")
        elif {"#", "{", "}"} & set(plain):
            raise ValueError(f"pattern {pattern!r}: # {{ and }} are reserved")
        else:
            yield PatternPart("", 0, plain)


def _day(parts: dict[str, str]) -> int:
    # `DateTimeFormatterHelper` fills what the pattern leaves out: 1 January 1970, and midnight.
    text = parts.get("y", "1970")
    # Two digits are a year from 2000 on in Java (`ReducedPrinterParser`); Spark has no other base.
    year = int(text) + 2000 * (len(text) == 2)
    month = parts.get("M", "1")
    number = int(month) if month.isdigit() else _NUMBER[month[:3].lower()]
    if "D" not in parts:
        return days_of(year, number, int(parts.get("d", 1)))
    first, nth = days_of(year, 1, 1), int(parts["D"])
    if not 1 <= nth <= days_of(year + 1, 1, 1) - first:
        raise ValueError(f"the year {year} has no day {nth}")
    return first + nth - 1


def _clock(parts: dict[str, str]) -> int:
    hour = int(parts.get("H", 0))
    half = 12 * (parts.get("a", "am").lower() == "pm")
    if "k" in parts:
        hour = _in(parts["k"], 1, 24) % 24
    elif "h" in parts:
        hour = _in(parts["h"], 1, 12) % 12 + half
    elif "K" in parts:
        hour = _in(parts["K"], 0, 11) + half
    elif "H" not in parts:
        hour = half
    micros = int(parts.get("S", "").ljust(6, "0")[:6])
    return clock_of(hour, int(parts.get("m", 0)), int(parts.get("s", 0)), micros)


def _in(text: str, least: int, most: int) -> int:
    number = int(text)
    if not least <= number <= most:
        raise ValueError(f"{text} is not an hour from {least} to {most}")
    return number
