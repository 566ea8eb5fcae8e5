"""The event time of a file: the time that its path names.

A pure function of path and options, so that nothing has to be kept: a restart, on any host, gives
each file the time it had.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias
from urllib.parse import unquote

from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileVersion
from .....checkpoint_meta.storage.urls import shown_path
from .....checkpoint_meta.storage.written_values import without_retries
from .....errors import SourceUnavailable

Moment: TypeAlias = Callable[[str], int]
"""Text such as 2026-01-02T03:00:00 -> microseconds since the epoch, in the zone of the paths."""

_DIGITS = {
    "yyyy": r"\d{4}",
    "MM": r"0[1-9]|1[0-2]",
    "dd": r"0[1-9]|[12]\d|3[01]",
    "HH": r"[01]\d|2[0-3]",
    "mm": r"[0-5]\d",
    "ss": r"[0-5]\d",
}
"""Fields of a pattern, from the longest unit to the shortest."""

_FIELD = re.compile(r"\{(.*?)\}|([^{]+|\{)", re.DOTALL)
_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d)(?::?(\d\d)(?::?(\d\d)(?:\.\d+)?)?)?)?|(\d{4})(\d\d)(\d\d)"
)
_DAY_KEYS = ("date", "dt", "ds", "day")
_OTHER_KEYS = {
    "MM": ("month",),
    "dd": ("day",),
    "HH": ("hour", "hr"),
    "mm": ("minute",),
}

_HOUR = 3_600_000_000
_LONGEST = tuple(hours * _HOUR for hours in (366 * 24, 31 * 24 + 1, 25, 2, 1, 1))
"""Microseconds that a year, a month ... lasts at most, where clocks are changed."""

Fields: TypeAlias = tuple[str, ...]
"""Year, month, day, hour, minute and second as far as they are named."""


def pattern_expression(pattern: str) -> re.Pattern[str]:
    """The expression that finds the fields of `pattern` in a path, as named groups.

    Raises:
        ValueError: the pattern names no time.
    """
    # Digits around it would make it a part of a longer number.
    pieces, seen = [r"(?<!\d)"], list[str]()
    for match in _FIELD.finditer(pattern):
        name, text = match[1], match[2]
        if name is None:
            first, *others = map(re.escape, text.split("*"))
            pieces = [*pieces[:-1], pieces[-1] + first, *others]
            continue
        if name not in _DIGITS or name in seen:
            field_names = ", ".join(f"{{{field}}}" for field in _DIGITS)
            problem = "occurs twice" if name in seen else f"is not one of {field_names}"
            message = f"a pattern in which {{{name}}} {problem}; expected each field once at most"
            raise ValueError(message)
        seen.append(name)
        pieces[-1] += f"(?P<{name}>{_DIGITS[name]})"
    if not seen or sorted(seen, key=list(_DIGITS).index) != list(_DIGITS)[: len(seen)]:
        message = (
            "a pattern that does not name a time; expected {yyyy}, with {MM} where {dd} is, {dd} "
            "where {HH} is, and so on: {yyyy}/{MM}/{dd}/{HH}"
        )
        raise ValueError(message)
    pieces[-1] += r"(?!\d)"
    return re.compile(without_retries(pieces, "[^/]"))


class FileTimes(Protocol):
    """The event time of each file."""

    may_be_missing: bool = False
    """True if `find` may return None."""

    longest: int = 0
    """Most microseconds between two rows of one file, of those seen; 0 if files do not say."""

    def find(self, file: FileVersion) -> int | None:
        """Microseconds since the epoch; None if the modification time has to serve.

        Raises:
            SourceUnavailable: the file has no event time, which is an error.
        """

    def forget(self, paths: Iterable[str]) -> None:
        """These files are read; their times are not needed any more."""
        del paths


class EventTimes(FileTimes):
    """Finds the times of files, by a pattern or else by Hive's partitions."""

    def __init__(
        self,
        pattern: str,
        bases: Sequence[str],
        zone: str,
        moment: Moment,
        *,
        may_be_missing: bool = False,
    ) -> None:
        """`bases` are the loaded paths as file paths begin; `moment` reads times of `zone`."""
        self.may_be_missing = may_be_missing
        self._pattern = pattern
        self._expression = pattern_expression(pattern) if pattern else None
        self._bases = tuple(bases)
        self._zone = zone
        # Files of one partition share their time.
        self._moment = lru_cache(maxsize=100_000)(lambda fields: _instant(fields, moment))

    def __repr__(self) -> str:
        """All that decides about times: part of what a listing is identified by."""
        return f"EventTimes({self._pattern!r}, {self._bases!r}, {self._zone!r})"

    def below(self, path: str) -> str:
        """The path of a file below the outermost loaded path that leads to it."""
        shown = shown_path(path)
        inside = (base for base in self._bases if shown.startswith(f"{base}/"))
        # So the time of a file does not depend on which of several nested paths found it.
        base = min(inside, key=len, default="")
        return shown[len(base) :].lstrip("/")

    @override
    def find(self, file: FileVersion) -> int | None:
        return self._found(file.path) if self.may_be_missing else self.of(file.path)

    def of(self, path: str) -> int:
        """Microseconds since the epoch.

        Raises:
            SourceUnavailable: the path names no time.
        """
        time = self._found(path)
        if time is None:
            raise self._no_time(path)
        return time

    def _found(self, path: str) -> int | None:
        below = self.below(path)
        fields = self._by_pattern(below) if self._expression is not None else _by_partitions(below)
        return self._moment(fields) if fields else None

    def span_below(self, directory: str) -> tuple[int, int] | None:
        """Between which times files in a directory (below the loaded path) are; None if unknown.

        Said of Hive's partition `date` only: the others give way to it, and it may come below them.
        """
        value = _partition_values(directory).get(_DAY_KEYS[0], "")
        if self._expression is not None or not _DATE.fullmatch(value):
            return None
        fields = _by_partitions(directory)
        first = self._moment(fields)
        return None if first is None else (first, first + _LONGEST[len(fields) - 1])

    def _by_pattern(self, below: str) -> Fields:
        assert self._expression is not None
        match = self._expression.search(below)
        if match is None:
            return ()
        return tuple(match[name] for name in _DIGITS if name in match.re.groupindex)

    def _no_time(self, path: str) -> SourceUnavailable:
        expected = (
            f"a time as eventTimePattern={self._pattern} says"
            if self._pattern
            else "partitions such as date=2026-01-02/hour=03 or year=2026/month=01/day=02"
        )
        return SourceUnavailable(
            "the path of a file names no event time",
            path,
            "no time below the loaded path",
            expected,
            "Set eventTimePattern to where the time is, onMissingEventTime=mtime to use the "
            "modification time, or leave the file out with pathGlobFilter or "
            "ignoredPathSegmentRegex. If it is known already, order by fileOrder=mtime, or remove "
            "it with sluice forget.",
        )


def _partition_values(below: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in below.split("/")[:-1]:
        key, equals, text = part.partition("=")
        if equals:
            # Spark and Hive quote special characters of partitions as in URLs.
            values.setdefault(unquote(key).lower(), unquote(text))
    return values


def _by_partitions(below: str) -> Fields:
    values = _partition_values(below)
    for key in _DAY_KEYS:
        match = _DATE.fullmatch(values.get(key, ""))
        if match is not None:
            # The groups of the other way to write a date are None.
            fields = [field for field in match.groups() if field is not None]
            return _with_more(fields, values)
    return _with_more([values["year"]], values) if "year" in values else ()


def _with_more(fields: list[str], values: dict[str, str]) -> Fields:
    """`fields`, with the shorter units that have partitions of their own."""
    for unit in list(_DIGITS)[len(fields) :]:
        keys = _OTHER_KEYS.get(unit, ())
        value = next((values[key] for key in keys if key in values), None)
        if value is None:
            break
        fields.append(value)
    return tuple(fields)


def _instant(fields: Fields, moment: Moment) -> int | None:
    # Other scripts have digits, too, and a superscript is one that has no value.
    if not all(field.isascii() and field.isdigit() for field in fields):
        return None
    year, month, day, hour, minute, second = (
        *map(int, fields),
        *(1, 1, 0, 0, 0)[len(fields) - 1 :],
    )
    try:
        return moment(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    # A day that does not exist, such as 31 February.
    except ValueError:
        return None
