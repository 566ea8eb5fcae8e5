"""What Spark's parser refuses for its size: nesting, names, strings and numbers.

Jackson's defaults (`StreamReadConstraints`). The exact path applies them where it takes the thing
(`tokenizer.py`, `json_text.py`); for the other parsers, which have no such limits, `may_exceed`
tells text that they may be given from text that they may not.
"""

from __future__ import annotations

import re

import numpy as np

MAX_DEPTH = 1000
"""Levels of nesting."""

MAX_DIGITS = 1000
"""Digits of a number, those of its exponent included."""

MAX_NAME = 50_000
"""Bytes of a name in UTF-8."""

MAX_STRING = 20_000_000
"""Characters of a string in UTF-16, of strings that are asked for."""

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_LONG = re.compile(rb"[0-9.eE+-]{%d}" % MAX_DIGITS)
_COLON = re.compile(rb"\s*:")
_STEP, _SAMPLES = 64, MAX_DIGITS // 64 - 1
_LEVELS = np.zeros(256, np.int8)
_LEVELS[[ord("["), ord("{")]] = 1
_LEVELS[[ord("]"), ord("}")]] = -1
_IN_NUMBERS = np.zeros(256, np.int32)
_IN_NUMBERS[list(b"0123456789.eE+-")] = 1


def may_exceed(data: bytes) -> bool:
    """True if something in these lines may be beyond a limit; text that is not JSON may be."""
    if len(data) < MAX_DIGITS:
        return False
    raw = np.frombuffer(data, np.uint8)
    feeds = raw == ord("\n")
    if _is_often(feeds):
        return False
    ends = np.flatnonzero(feeds)
    longest = int(np.diff(ends, prepend=-1, append=len(raw)).max())
    if longest < MAX_DIGITS:
        return False
    if _has_long_number(data, raw) or _is_deep(data, raw, ends, longest):
        return True
    return longest > MAX_NAME and _has_long_text(data, raw)


def _is_often(feeds: np.ndarray) -> bool:
    """True if every line is known to be shorter than the longest number, which is usual.

    A fourth of the time of finding the lines: each half of that length has the end of a line.
    """
    half = MAX_DIGITS // 2
    whole = len(feeds) // half * half
    return bool(feeds[:whole].reshape(-1, half).any(axis=1).all())


def _has_long_number(data: bytes, raw: np.ndarray) -> bool:
    # So many characters in a row hold so many samples in a row; in rows of many short numbers
    # that happens by chance too, so a look at the characters themselves decides.
    sums = np.concatenate(([0], np.cumsum(_IN_NUMBERS[raw[::_STEP]])))
    for first in np.flatnonzero(sums[_SAMPLES:] - sums[:-_SAMPLES] == _SAMPLES).tolist():
        begin = max(0, first - 1) * _STEP
        if _LONG.search(data, begin, first * _STEP + MAX_DIGITS + 1):
            return True
    return False


def _is_deep(data: bytes, raw: np.ndarray, ends: np.ndarray, longest: int) -> bool:
    # They differ by one bit.
    opened = (raw | 0x20) == ord("{")
    places = np.flatnonzero(opened)
    if len(places) <= MAX_DEPTH:
        return False
    # As many as are allowed take more than a line has, from any place on.
    if int((places[MAX_DEPTH:] - places[:-MAX_DEPTH]).min()) >= longest:
        return False
    begins = np.concatenate(([0], ends[ends < len(raw) - 1] + 1))
    if int(np.add.reduceat(opened, begins, dtype=np.int64).max()) <= MAX_DEPTH:
        return False
    plain = np.frombuffer(without_escapes(data), np.uint8)
    return int(nesting(plain, in_string=False)[1].max()) > MAX_DEPTH


def _has_long_text(data: bytes, raw: np.ndarray) -> bool:
    quotes = np.flatnonzero(raw == ord('"'))
    # One behind a backslash may end a string or not: left out, the string only seems longer.
    quotes = quotes[(quotes == 0) | (raw[quotes - 1] != ord("\\"))]
    lengths = np.diff(quotes, append=len(raw)) - 1
    for index in np.flatnonzero(lengths > MAX_NAME).tolist():
        end = int(quotes[index] + lengths[index]) + 2
        if lengths[index] > MAX_STRING or _COLON.match(data, end):
            return True
    return False


def without_escapes(data: bytes) -> bytes:
    """`data` with blanks for what a backslash escapes."""
    return _ESCAPE.sub(b"  ", data) if b"\\" in data else data


def nesting(raw: np.ndarray, *, in_string: bool) -> tuple[np.ndarray, np.ndarray]:
    """For each byte of text without escapes, whether it is in a string, and how deep."""
    inside = np.logical_xor.accumulate(raw == ord('"')) ^ in_string
    steps = _LEVELS[raw]
    steps[inside] = 0
    return inside, np.cumsum(steps, dtype=np.int32)
