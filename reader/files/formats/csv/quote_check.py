"""What the bytes of CSV look like, judged without parsing: where a fast parser may be trusted.

Everything here looks at a block of some hundred kilobytes at memory speed and errs on one side: it
may doubt what is clean, never the reverse. Places are sets of bits, one for each byte and 64 in a
word, so that what is next to what, or within quotes, is a shift and an AND: places as numbers,
which are found and gathered one by one, took five times as long.
"""

from __future__ import annotations

import numpy as np

from ...options import ReaderOptions
from ...values.strings import BLANKS

_BLANKS = BLANKS.encode()
_WORD = 64


def doubles_quotes(options: ReaderOptions) -> bool:
    """Return whether two quotes within a field mean one."""
    return bool(options.quote) and options.escape == options.quote


class DelimiterBitmap:
    """The positions of quotes, separators, line breaks and blanks in a block of whole records."""

    def __init__(self, data: bytes, sep: str, quote: str) -> None:
        """`sep` and `quote` are ASCII characters; there may be no `quote`."""
        self._data, self._sep = data, sep
        self._raw = np.frombuffer(data, np.uint8)
        self.has_quotes = bool(quote) and quote.encode() in data
        self.feeds = self._places(b"\n")
        edges = self._places(sep.encode()) | self.feeds
        if b"\r" in data:
            edges |= self._places(b"\r")
        end, bit = divmod(len(data), _WORD)
        # The end of the block ends a field as a separator does.
        edges[end] |= np.uint64(1 << bit)
        self._after_edge = _next(edges)
        # The first field has no separator before it.
        self._after_edge[0] |= np.uint64(1)
        self._before_edge = _previous(edges)
        if self.has_quotes:
            quotes = self._places(quote.encode())
            self.within = _parity(quotes)
            """Behind an odd number of quotes: from each that opens on, without what closes it."""
            self._opening = quotes & self.within
            self._closing = quotes & ~self.within

    def cut(self, end: int) -> None:
        """Forget what is from `end` on, where `end_of_last` says that a record begins."""
        self._data, self._raw = self._data[:end], self._raw[:end]
        last, bit = divmod(end, _WORD)
        for name, bits in list(vars(self).items()):
            # All other arrays are sets of bits, which end where the block does.
            if isinstance(bits, np.ndarray) and bits is not self._raw:
                bits[last] &= np.uint64((1 << bit) - 1)
                setattr(self, name, bits[: last + 1])
        # All quotes may have been behind the cut; without any the parser is faster.
        if self.has_quotes:
            self.has_quotes = bool((self._opening | self._closing).any())

    def _places(self, characters: bytes) -> np.ndarray:
        """Return one bit for each byte that is among `characters`, and at least one bit more."""
        places = self._raw == characters[0]
        for character in characters[1:]:
            places |= self._raw == character
        bits = np.zeros(len(places) // _WORD + 1, np.uint64)
        packed = np.packbits(places, bitorder="little")
        bits.view(np.uint8)[: len(packed)] = packed
        return bits

    def are_trusted(self, options: ReaderOptions, *, lines: bool) -> bool:
        """Return whether pyarrow's parser reads the quotes as Spark's does."""
        if not self.has_quotes:
            return True
        double = doubles_quotes(options)
        if double and options.char_to_escape_quote_escaping:
            return False
        if not double and options.escape and options.escape.encode() in self._data:
            return False
        # To Arrow an empty value in quotes is null; to Spark it is `emptyValue`.
        is_empty = options.quote.encode() * 2 in self._data
        if is_empty and (options.null_value or options.empty_value):
            return False
        return self.is_regular(double=double, lines=lines)

    def is_regular(self, *, double: bool, lines: bool) -> bool:
        """True if every quote opens or closes a field, so that all parsers agree on the fields.

        With `double` two quotes within a field mean one; with `lines` no field spans lines.
        """
        if not self.has_quotes:
            return True
        # Still within quotes at the end: there is an odd number of them.
        if int(self.within[-1]) >> (_WORD - 1):
            return False
        opened, closed = self._after_edge, self._before_edge
        if double:
            # The second of a doubled pair looks like an opening quote.
            opened = opened | _next(self._closing)
            closed = closed | _previous(self._opening)
        if (self._opening & ~opened).any() or (self._closing & ~closed).any():
            return False
        return not (lines and (self.feeds & self.within).any())

    def has_doubtful_numbers(self) -> bool:
        """Return whether blanks are at the edge of a field, or something might be hexadecimal.

        Arrow takes both for numbers, Java takes neither.
        """
        for mark in (b"x", b"X"):
            if mark in self._data and (_next(self._places(b"0")) & self._places(mark)).any():
                return True
        # Java's integers take no blanks, Arrow's do; other control characters neither takes.
        blanks = bytes(c for c in b" \t" if c != ord(self._sep) and c in self._data)
        if not blanks:
            return False
        places = self._places(blanks)
        # Inside of quotes a separator is text, and there are blanks behind many a comma.
        at_edge = self._after_edge | self._before_edge
        if self.has_quotes:
            first = _next(self._opening & self._after_edge)
            last = _previous(self._closing & self._before_edge)
            at_edge = (at_edge & ~self.within) | first | last
        return bool((places & at_edge).any())

    def end_of_last(self, feed: str) -> int:
        """Return the end of the last of these characters outside of quotes; 0 without."""
        places = self._places(feed.encode())
        if self.has_quotes:
            places &= ~self.within
        words = np.flatnonzero(places)
        return int(words[-1]) * _WORD + int(places[words[-1]]).bit_length() if len(words) else 0

    def has_lone_feeds(self) -> bool:
        """Return whether outside of quotes a line feed is without a carriage return before it."""
        lone = self.feeds & ~_next(self._places(b"\r"))
        if self.has_quotes:
            lone &= ~self.within
        return bool(lone.any())


def _next(bits: np.ndarray) -> np.ndarray:
    """Return the places behind those of `bits`."""
    # `packbits` makes the first byte the lowest bit, so what is behind is to the left.
    shifted = bits << 1
    shifted[1:] |= bits[:-1] >> (_WORD - 1)
    return shifted


def _previous(bits: np.ndarray) -> np.ndarray:
    """Return the places before those of `bits`."""
    shifted = bits >> 1
    shifted[:-1] |= bits[1:] << (_WORD - 1)
    return shifted


def _parity(bits: np.ndarray) -> np.ndarray:
    """Return the places at or before which an odd number of `bits` is set."""
    # Six doublings give each bit of a word the parity of all bits up to it.
    odd = bits.copy()
    for distance in (1, 2, 4, 8, 16, 32):
        odd ^= odd << distance
    # A word that ends odd turns all words behind it.
    turns = np.bitwise_xor.accumulate(odd >> (_WORD - 1))
    odd[1:] ^= np.negative(turns[:-1])
    return odd


def has_blank_line(data: bytes) -> bool:
    """Return whether a line that is not empty holds nothing but blanks and control characters."""
    raw = np.frombuffer(data, np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(raw == 10) + 1))
    starts = starts[starts < len(raw)]
    first = raw[starts]
    for start in starts[(first <= 32) & (first != 10)].tolist():
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else len(data)]
        # A carriage return belongs to the line's end.
        if line != b"\r" and not line.strip(_BLANKS):
            return True
    return False
