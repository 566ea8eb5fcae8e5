"""Many texts as dates and times at once, where their digits are at fixed places.

Takes only what `exact.py` would read, to the same value; any other text is left to it. Works on the
bytes of an Arrow column: each field of two digits is one look-up in a table for all texts. Tried
and left: Arrow's own cast reads no column in which texts with and without a zone meet, takes
`03:04Z` and cuts no fraction, so it needed a check of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from .exact import JavaPattern

_BAD = 255

_DIGITS = np.arange(10, dtype=np.uint16) + 48
_PAIRS = np.full(1 << 16, _BAD, np.uint8)
_PAIRS[(_DIGITS[:, None] + (_DIGITS << 8)).ravel()] = np.arange(100, dtype=np.uint8)
"""Two bytes as they are in memory, lower address first, as the number they show."""

_FIRST_OF_MONTH = (
    np.arange("0000-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
)
"""Days since the epoch, for every month of the years with four digits."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields are in the head of a text, and what may follow the head."""

    width: int
    fields: Mapping[str, int]
    """Letter -> where its digits begin: y has four, the others M d H m s two."""

    marks: tuple[tuple[int, bytes], ...]
    """Where which of these bytes has to be."""

    fraction: tuple[int, int] = (-1, -1)
    """Fewest and most digits after a point; -1 as the least where the point may be missing."""

    zones: frozenset[int] = field(default=frozenset({0}))
    """Lengths of the zones that may follow: 0 none, 1 `Z`, 3 `+hh`, 5 `+hhmm`, 6 `+hh:mm`."""

    open_end: bytes = b""
    """A byte after which anything may follow the head."""

    @classmethod
    def of_pattern(cls, pattern: JavaPattern) -> Layout | None:
        """Return the layout of a pattern with fields of fixed width only; None for any other."""
        fields, marks, width = dict[str, int](), list[tuple[int, bytes]](), 0
        pieces = list(pattern.pieces)
        zones, fraction = frozenset({0}), (-1, -1)
        # Java writes `XXX` as `Z` or as `+hh:mm`.
        if pieces and (pieces[-1].letter, pieces[-1].count) == ("X", 3):
            zones = frozenset({1, 6})
            pieces.pop()
        if pieces and pieces[-1].letter == "S" and pieces[-2:-1] and pieces[-2].text[-1:] == ".":
            fraction = (1, pieces.pop().count)
        for piece in pieces:
            if not piece.letter and piece.text.isascii():
                for char in piece.text:
                    # As in Spark, letters of the pattern's own text fit in either case.
                    marks.append((width, (char.lower() + char.upper()).encode()))
                    width += 1
            elif piece.letter in _WIDTH and piece.count == _WIDTH[piece.letter]:
                fields[piece.letter] = width
                width += piece.count
            else:
                return None
        if fraction[0] == 1:
            # The point belongs to the fraction.
            marks.pop()
            width -= 1
        if not {"y", "M", "d"} <= set(fields):
            return None
        return cls(width, fields, tuple(marks), fraction, zones)


_WIDTH = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}
_DATE = {"y": 0, "M": 5, "d": 8}
_DASHES = ((4, b"--"), (7, b"--"))
_TIME = (*_DASHES, (10, b" T"), (13, b"::"))

ISO_DATES = (Layout(10, _DATE, _DASHES), Layout(10, _DATE, _DASHES, open_end=b" T"))
ISO_TIMES = (
    Layout(
        19,
        {**_DATE, "H": 11, "m": 14, "s": 17},
        (*_TIME, (16, b"::")),
        fraction=(-1, 1 << 20),
        zones=frozenset({0, 1, 3, 5, 6}),
    ),
    Layout(10, _DATE, _DASHES),
    Layout(16, {**_DATE, "H": 11, "m": 14}, _TIME),
)


@dataclass(slots=True)
class Times:
    """What was read of each text; where `good` is false the value means nothing."""

    days: np.ndarray
    clock: np.ndarray
    """Microseconds since midnight."""

    offset: np.ndarray
    """Seconds, where `zoned`."""

    zoned: np.ndarray
    good: np.ndarray

    @classmethod
    def none(cls, count: int) -> Times:
        """Return places for `count` texts, of which no text is read."""
        wide = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
        return cls(*wide, np.zeros(count, np.bool_), np.zeros(count, np.bool_))

    def put(self, where: np.ndarray | slice, part: Times) -> None:
        """Take over what was read of some of the texts."""
        for name in ("days", "clock", "offset", "zoned", "good"):
            getattr(self, name)[where] = getattr(part, name)


def read(texts: pa.Array, layouts: tuple[Layout, ...]) -> Times:
    """What the layouts make of texts; each goes by the first that has room for its length."""
    times = Times.none(len(texts))
    if not len(texts):
        return times
    raw, starts, lengths = _bytes_of(texts)
    # Longer texts are counted as one length, which is left to the exact way.
    for length in np.flatnonzero(np.bincount(np.minimum(lengths, _LONGEST))):
        layout = next((known for known in layouts if _fits(known, int(length))), None)
        if layout is None or length == _LONGEST:
            continue
        where = np.flatnonzero(lengths == length)
        if len(where) == len(starts):
            return _of_length(raw, starts, int(length), layout)
        times.put(where, _of_length(raw, starts[where], int(length), layout))
    return times


_LONGEST = 64


def _fits(layout: Layout, length: int) -> bool:
    if layout.open_end:
        return length > layout.width
    least = 0 if layout.fraction[0] < 0 else layout.fraction[0] + 1
    longest = layout.fraction[1] + 1 + max(layout.zones)
    return layout.width + least + min(layout.zones) <= length <= layout.width + longest


def _bytes_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all bytes, and where each text begins in them and how long it is."""
    if not pa.types.is_string(texts.type):
        texts = texts.cast(pa.string())
    _, offsets, data = texts.buffers()
    borders = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4).astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return raw, borders[:-1], np.diff(borders)


class _Columns:
    """Texts of one width below each other: their n-th bytes are one column of numbers."""

    def __init__(self, raw: np.ndarray, starts: np.ndarray, width: int) -> None:
        self._count = len(starts)
        step = int(starts[1] - starts[0]) if self._count > 1 else width
        self._raw, self._first, self._step = raw, int(starts[0]), step
        # Texts at equal distances are columns as they lie; others are copied below each other
        # first.
        if self._count > 2 and (np.diff(starts) != step).any():
            windows = np.ndarray((len(raw) - width + 1,), f"V{width}", raw, strides=(1,))
            self._raw, self._first, self._step = windows[starts].view(np.uint8), 0, width

    def byte(self, at: int) -> np.ndarray:
        return np.ndarray((self._count,), np.uint8, self._raw, self._first + at, (self._step,))

    def pair(self, at: int) -> np.ndarray:
        pairs = np.ndarray((self._count,), "<u2", self._raw, self._first + at, (self._step,))
        return np.asarray(_PAIRS[pairs])

    def digits(self, at: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the number that `count` digits show, and where they are digits."""
        number, good = np.zeros(self._count, np.int32), np.ones(self._count, np.bool_)
        for pair in range(at, at + count - 1, 2):
            value = self.pair(pair)
            number = number * 100 + value
            good &= value != _BAD
        if count % 2:
            # What is below the digits wraps around, beyond 9.
            value = self.byte(at + count - 1) - np.uint8(48)
            number = number * 10 + value
            good &= value < 10
        return number, good


def _of_length(raw: np.ndarray, starts: np.ndarray, length: int, layout: Layout) -> Times:
    columns = _Columns(raw, starts, length)
    times = Times.none(len(starts))
    good = times.good
    good[:] = True
    for at, allowed in layout.marks:
        good &= _is_one_of(columns.byte(at), allowed)
    fields = layout.fields
    high, low = columns.pair(fields["y"]), columns.pair(fields["y"] + 2)
    month, day = columns.pair(fields["M"]), columns.pair(fields["d"])
    good &= (high < 100) & (low < 100) & (month > 0) & (month < 13) & (day > 0)
    which = (high.astype(np.int32) * 100 + low) * 12 + month - 1
    # Where a field is bad, the number of the month may be anything.
    first = _FIRST_OF_MONTH.take(which, mode="clip")
    good &= day <= _FIRST_OF_MONTH.take(which + 1, mode="clip") - first
    times.days = first.astype(np.int64) + day - 1
    seconds = np.zeros(len(starts), np.int32)
    for name, scale, most in (("H", 3600, 24), ("m", 60, 60), ("s", 1, 60)):
        if name in fields:
            value = columns.pair(fields[name])
            good &= value < most
            seconds += value.astype(np.int32) * scale
    times.clock = seconds * np.int64(1_000_000)
    if layout.open_end:
        good &= _is_one_of(columns.byte(layout.width), layout.open_end)
    elif length > layout.width or layout.fraction[0] > 0 or 0 not in layout.zones:
        _tail(times, columns, layout, length)
    return times


def _is_one_of(column: np.ndarray, allowed: bytes) -> np.ndarray:
    matches: np.ndarray = column == allowed[0]
    return matches if allowed[0] == allowed[-1] else matches | (column == allowed[-1])


def _tail(times: Times, columns: _Columns, layout: Layout, length: int) -> None:
    """Fraction and zone, of any length, which together are what follows the head."""
    rest = length - layout.width
    left = np.ones(len(times.good), np.bool_)
    for zone in sorted(layout.zones, reverse=True):
        digits = rest - zone - 1
        if not max(-1, layout.fraction[0]) <= digits <= layout.fraction[1]:
            continue
        is_zone = left & _is_zone(columns, length, zone)
        if not is_zone.any():
            continue
        left &= ~is_zone
        good = is_zone.copy()
        if digits >= 0:
            micros, is_fraction = _fraction(columns, layout.width, digits)
            good &= is_fraction
            times.clock += np.where(good, micros, 0)
        if zone:
            times.zoned |= good
        if zone > 1:
            offset, is_offset = _offset(columns, length, zone)
            good &= is_offset
            times.offset += np.where(good, offset, 0)
        times.good &= good | ~is_zone
    times.good &= ~left


def _is_zone(columns: _Columns, length: int, zone: int) -> np.ndarray:
    """Return where the last bytes are a zone of this length, and of no longer one."""
    if not zone:
        # 58 follows the digit 9: a letter would be a zone.
        return np.asarray(columns.byte(length - 1) < 58)
    if zone == 1:
        return np.asarray(columns.byte(length - 1) == ord("Z"))
    is_zone = _is_one_of(columns.byte(length - zone), b"+-")
    return is_zone & (columns.byte(length - 3) == ord(":")) if zone == 6 else is_zone


def _fraction(columns: _Columns, at: int, digits: int) -> tuple[np.ndarray, np.ndarray]:
    number, good = columns.digits(at + 1, min(digits, 6))
    micros = number * np.int32(10 ** max(0, 6 - digits))
    if digits > 6:
        # What is finer than a microsecond is cut off, but has to be digits.
        for beyond in range(7, digits + 1):
            good &= columns.byte(at + beyond) - np.uint8(48) < 10
    good &= columns.byte(at) == ord(".")
    return micros, good


def _offset(columns: _Columns, length: int, zone: int) -> tuple[np.ndarray, np.ndarray]:
    at = length - zone
    hours = columns.pair(at + 1).astype(np.int64)
    minutes = columns.pair(length - 2).astype(np.int64) if zone > 3 else np.zeros_like(hours)
    seconds = hours * 3600 + minutes * 60
    # Java's `ZoneOffset` ends at 18 hours.
    good = (minutes < 60) & (seconds <= 18 * 3600)
    return np.where(columns.byte(at) == ord("-"), -seconds, seconds), good
