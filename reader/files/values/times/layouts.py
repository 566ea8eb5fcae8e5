"""Many texts as dates and times at once, by Arrow's casts.

Takes only what `exact.py` would read, to the same value; any other text is left to it. Arrow reads
ISO 8601 no laxer than that, but for zones: it takes one behind an hour or a minute, and any offset.
Texts in a pattern of fixed width are rearranged into ISO 8601, as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .exact import JavaPattern

LOCAL, INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
_DATE_HEAD = r"^\d{4}-\d\d-\d\d"
_CLOCK = r"[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_WITHOUT_ZONE = rf"{_DATE_HEAD}(?:[T ]\d\d:\d\d|{_CLOCK})?$"
# Java's `ZoneOffset` ends at 18 hours.
_WITH_ZONE = rf"{_DATE_HEAD}{_CLOCK}(?:Z|[+-](?:(?:0\d|1[0-7])(?::?[0-5]\d)?|18(?::?00)?))$"
_FINER = r"^(.{19}\.\d{6})\d+"
_FEW = 16
_LONGEST = len("2024-01-02T03:04:05.123456")

_HEAD = b"0000-00-00T00:00:00"
"""Form that texts are rearranged into; digits that a pattern lacks stay zero."""

_PLACES = {"y": (0, 4), "M": (5, 2), "d": (8, 2), "H": (11, 2), "m": (14, 2), "s": (17, 2)}
"""Letter of a pattern -> where its digits are in ISO 8601, and how many."""


def days(texts: pa.Array) -> pa.Array:
    """Return dates in ISO 8601; null where a text has to be read exactly."""
    dates = cast_or_none(texts, pa.date32())
    if dates is not None:
        return dates
    is_date = pc.match_substring_regex(texts, rf"{_DATE_HEAD}(?:[ T]|$)")
    return _cast(pc.utf8_slice_codeunits(texts, 0, 10), is_date, pa.date32())


def wall_clocks(texts: pa.Array) -> pa.Array:
    """Return timestamps without zone in ISO 8601; null as in `days`."""
    times = cast_or_none(texts, LOCAL)
    if times is not None:
        return times
    texts = _cut(texts)
    return _cast(texts, pc.match_substring_regex(texts, _WITHOUT_ZONE), LOCAL)


def named_instants(texts: pa.Array) -> pa.Array:
    """Return timestamps with a zone in ISO 8601; null as in `days`."""
    times = cast_or_none(texts, INSTANT) if _have_plain_zones(texts) else None
    if times is not None:
        return times
    texts = _cut(texts)
    return _cast(texts, pc.match_substring_regex(texts, _WITH_ZONE), INSTANT)


def cast_or_none(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return texts as Arrow reads them; None if it refuses one."""
    try:
        # Arrow takes a microsecond for each value that it refuses, before it says so.
        texts[:_FEW].cast(kind)
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def _cast(texts: pa.Array, chosen: pa.Array, kind: pa.DataType) -> pa.Array:
    times = cast_or_none(pc.if_else(chosen, texts, None), kind)
    # Without any, at least one is a time that there is not.
    return pa.nulls(len(texts), kind) if times is None else times


def _cut(texts: pa.Array) -> pa.Array:
    """Leave out what is finer than a microsecond."""
    if (pc.max(pc.binary_length(texts)).as_py() or 0) <= _LONGEST:
        return texts
    return pc.replace_substring_regex(texts, pattern=_FINER, replacement=r"\1")


def _have_plain_zones(texts: pa.Array) -> bool:
    """Return whether all have seconds, and `Z` or an offset such as +02:00 where a zone may be."""
    raw, starts, lengths = _bytes_of(texts.drop_null())
    if not len(lengths) or lengths.min() <= len(_HEAD):
        return False
    last = starts + lengths
    sign, tens, hours = (raw[last - back] for back in (6, 5, 4))
    has_offset = ((sign == ord("+")) | (sign == ord("-"))) & (raw[last - 3] == ord(":"))
    has_offset &= (tens == ord("0")) | ((tens == ord("1")) & (hours < ord("8")))
    zoned = (raw[last - 1] == ord("Z")) | has_offset
    return bool((zoned & (raw[starts + 16] == ord(":"))).all())


def _bytes_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all bytes, and where each text begins in them and how long it is."""
    _, offsets, data = texts.buffers()
    borders = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4).astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return raw, borders[:-1], np.diff(borders)


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of a pattern's fields in the head of a text, and what may follow the head."""

    width: int
    fields: Mapping[str, int]
    """Letter -> where its digits begin."""

    marks: tuple[tuple[int, bytes], ...]
    """Where which of these bytes has to be."""

    fraction: int
    """Most digits behind a point that follows; 0 without a point."""

    has_zone: bool
    """True if `Z` or an offset such as +02:00 follows."""

    @classmethod
    def of_pattern(cls, pattern: JavaPattern) -> Layout | None:
        """Return the layout of a pattern with fields of fixed width only; None for any other."""
        fields, marks, width, fraction = dict[str, int](), list[tuple[int, bytes]](), 0, 0
        pieces = list(pattern.pieces)
        # Java writes `XXX` as `Z` or as `+hh:mm`.
        has_zone = bool(pieces) and (pieces[-1].letter, pieces[-1].count) == ("X", 3)
        if has_zone:
            pieces.pop()
        if pieces and pieces[-1].letter == "S" and pieces[-2:-1] and pieces[-2].text[-1:] == ".":
            fraction = pieces.pop().count
        for piece in pieces:
            if not piece.letter and piece.text.isascii():
                for char in piece.text:
                    # As in Spark, letters of the pattern's own text fit in either case.
                    marks.append((width, (char.lower() + char.upper()).encode()))
                    width += 1
            elif piece.letter in _PLACES and piece.count == _PLACES[piece.letter][1]:
                fields[piece.letter] = width
                width += piece.count
            else:
                return None
        if not {"y", "M", "d"} <= set(fields) or fraction > 6:
            return None
        if fraction:
            # The point belongs to the fraction.
            marks.pop()
        return cls(width - bool(fraction), fields, tuple(marks), fraction, has_zone)

    def as_iso(self, texts: pa.Array) -> pa.Array:
        """Return texts in ISO 8601; null for one that does not fit."""
        raw, starts, lengths = _bytes_of(texts)
        if raw.max(initial=0) > 127:
            return pa.nulls(len(texts), pa.string())
        parts, places = [pa.nulls(1, pa.string())], np.zeros(len(texts), np.int64)
        for length, rest in self._lengths(np.flatnonzero(np.bincount(lengths)).tolist()):
            chosen = np.flatnonzero(lengths == length)
            windows = np.ndarray((len(raw) - length + 1,), f"V{length}", raw, strides=(1,))
            rows = windows[starts[chosen]].view(np.uint8).reshape(len(chosen), length)
            good = self._fit(rows, rest)
            if not good.all():
                rows, chosen = rows[good], chosen[good]
            iso = np.empty((len(rows), len(_HEAD) + rest), np.uint8)
            iso[:, : len(_HEAD)] = np.frombuffer(_HEAD, np.uint8)
            for letter, at in self.fields.items():
                place, count = _PLACES[letter]
                iso[:, place : place + count] = rows[:, at : at + count]
            iso[:, len(_HEAD) :] = rows[:, self.width :]
            offsets = np.arange(len(iso) + 1, dtype=np.int32) * np.int32(iso.shape[1])
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(iso)]
            part = pa.Array.from_buffers(pa.string(), len(iso), buffers)
            if len(part) == len(texts):
                return part
            places[chosen] = sum(map(len, parts)) + np.arange(len(part))
            parts.append(part)
        return pa.concat_arrays(parts).take(pa.array(places))

    def _lengths(self, lengths: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the lengths that a text may have, and how much of it is behind the head."""
        longest = (self.fraction and self.fraction + 1) + 6 * self.has_zone
        for length in lengths:
            if self.width <= length <= self.width + longest:
                yield length, length - self.width

    def _fit(self, rows: np.ndarray, rest: int) -> np.ndarray:
        """Return which texts of one length have the marks, a fraction and a zone."""
        good = np.ones(len(rows), np.bool_)
        for at, allowed in self.marks:
            good &= (rows[:, at] == allowed[0]) | (rows[:, at] == allowed[-1])
        zone = np.zeros(len(rows), np.int64)
        if self.has_zone:
            is_z = rows[:, -1] == ord("Z")
            zone = np.where(is_z, 1, 6)
            good &= is_z | (rows[:, -3] == ord(":"))
        digits = rest - zone - bool(self.fraction)
        good &= (digits >= bool(self.fraction)) & (digits <= self.fraction)
        if self.fraction and rest:
            good &= rows[:, self.width] == ord(".")
        return good
