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
        return not _is_quoted(np.flatnonzero(raw == 10), quotes).any()
    return True


def _is_quoted(places: np.ndarray, quotes: np.ndarray) -> np.ndarray:
    """For each of `places` whether an odd number of quotes stands before it."""
    odd: np.ndarray = np.searchsorted(quotes, places) % 2 == 1
    return odd


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
    places = np.concatenate([places_of(data, blank) for blank in " \t" if blank != sep])
    if not len(places):
        return False
    if places.min() == 0 or places.max() == len(raw) - 1:
        return True
    before, after = raw[places - 1], raw[places + 1]
    if len(quotes):
        quote = data[quotes[0]]
        if (before == quote).any() or (after == quote).any():
            return True
    is_edge = np.zeros(256, np.bool_)
    is_edge[[ord(sep), 10, 13]] = True
    # Inside of quotes a separator is text, and there are blanks behind many a comma.
    at_edge = places[is_edge[before] | is_edge[after]]
    return not _is_quoted(at_edge, quotes).all()
