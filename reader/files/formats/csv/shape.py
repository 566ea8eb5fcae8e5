"""What the bytes of CSV look like, judged without parsing: where a fast parser may be trusted.

Everything here looks at a block of some hundred kilobytes at memory speed and errs on one side: it
may doubt what is clean, never the reverse.
"""

from __future__ import annotations

import numpy as np

from .rules import BLANKS

__all__ = ["are_regular", "has_blank_line", "has_doubtful_numbers", "places_of"]

_BLANKS = BLANKS.encode()


def places_of(data: bytes, character: str) -> np.ndarray:
    """Where an ASCII character stands in `data`; nowhere if it is empty."""
    if not character or character.encode() not in data:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.frombuffer(data, np.uint8) == ord(character))


def are_regular(data: bytes, quotes: np.ndarray, sep: str, *, double: bool, lines: bool) -> bool:
    """True if every quote opens or closes a field, so that all parsers agree on the fields.

    With `double` two quotes within a field stand for one; with `lines` no field spans lines.
    """
    if len(quotes) % 2:
        return False
    raw = np.frombuffer(data, np.uint8)
    opens, closes = quotes[0::2], quotes[1::2]
    before = raw[np.maximum(opens - 1, 0)]
    opened = (before == ord(sep)) | (before == 10) | (opens == 0)
    after = raw[np.minimum(closes + 1, len(raw) - 1)]
    closed = (after == ord(sep)) | (after == 10) | (after == 13) | (closes == len(raw) - 1)
    if double:
        # The second of a doubled pair looks like an opening quote.
        pairs = np.zeros(len(opens), np.bool_)
        pairs[1:] = opens[1:] == closes[:-1] + 1
        opened |= pairs
        closed[:-1] |= pairs[1:]
    if not (opened.all() and closed.all()):
        return False
    if lines:
        feeds = np.flatnonzero(raw == 10)
        return bool((np.searchsorted(feeds, opens) == np.searchsorted(feeds, closes)).all())
    return True


def has_blank_line(data: bytes) -> bool:
    """True if a line that is not empty holds nothing but blanks and control characters."""
    raw = np.frombuffer(data, np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(raw == 10) + 1))
    starts = starts[starts < len(raw)]
    first = raw[starts]
    for start in starts[(first <= 32) & (first != 10)].tolist():
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else len(data)]
        if line != b"\r" and not line.strip(_BLANKS):
            return True
    return False


def has_doubtful_numbers(data: bytes, quotes: np.ndarray, sep: str) -> bool:
    """True if blanks stand at the edge of a field, or something might be a hexadecimal number.

    Arrow takes both for numbers, Java takes neither.
    """
    raw = np.frombuffer(data, np.uint8)
    zeros = None
    for mark in b"xX":
        if mark in data:
            zeros = raw[:-1] == ord("0") if zeros is None else zeros
            if (zeros & (raw[1:] == mark)).any():
                return True
    blanks = [blank for blank in b" \t" if blank != ord(sep) and blank in data]
    if not blanks:
        return False
    is_blank, is_edge = _any_of(raw, blanks), _any_of(raw, [ord(sep), 10, 13])
    if is_blank[0] or is_blank[-1]:
        return True
    if len(quotes) and (is_blank[quotes[:-1] + 1].any() or is_blank[quotes - 1].any()):
        return True
    for hits in (is_edge[:-1] & is_blank[1:], is_blank[:-1] & is_edge[1:]):
        # Inside of quotes a separator is text, and there are blanks behind many a comma.
        if hits.any() and (np.searchsorted(quotes, np.flatnonzero(hits)) % 2 == 0).any():
            return True
    return False


def _any_of(raw: np.ndarray, values: list[int]) -> np.ndarray:
    found: np.ndarray = raw == values[0]
    for value in values[1:]:
        found |= raw == value
    return found
