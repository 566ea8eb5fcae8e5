"""Cuts a JSON document that is an array into lines of one element each, without parsing it.

Quotes and brackets are counted over whole pieces at once, so that neither the document nor its
elements are held as objects. It is enough for JSON that is well formed; what might not be is
`Odd`, and the lines are parsed like any others. Not here: what becomes of odd documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ...io.whole_records import Limit

__all__ = ["MAX_DEPTH", "Elements", "Odd", "elements", "nesting", "without_escapes"]

MAX_DEPTH = 1000
"""Levels of nesting that Spark's parser takes; the array itself is one of them."""

_BLANKS = b" \t\r\n"
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


class Odd(ValueError):
    """The document is no plain array of objects, or not certainly."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Some elements in a row, a line each."""

    lines: bytes
    count: int
    position: int
    """Where the first one is in the document."""


def elements(pieces: Iterable[bytes], step: int, limit: Limit) -> Iterator[Elements]:
    """The elements of the array whose text the pieces are, in blocks of about `step` bytes.

    Raises:
        Odd: it is something else, or ends otherwise. Earlier elements may be out by then.
        Exception: an element is longer than `limit` says; its own error.
    """
    scanner, ready = _Scanner(), _Ready()
    for piece in pieces:
        ready.add(*scanner.scan(piece))
        if len(ready.lines) >= step and ready.count:
            yield ready.whole()
        ready.check(limit)
    if not scanner.ended:
        raise Odd("the array does not end")
    if ready.lines.strip():
        yield ready.last()
    elif ready.seen:
        raise Odd("a comma before the array's end")


def without_escapes(data: bytes) -> bytes:
    """`data` with blanks for what a backslash escapes."""
    return _ESCAPE.sub(b"  ", data) if b"\\" in data else data


def nesting(raw: np.ndarray, *, in_string: bool) -> tuple[np.ndarray, np.ndarray]:
    """For each byte of text without escapes, whether it is in a string, and how deep."""
    inside = np.logical_xor.accumulate(raw == ord('"')) ^ in_string
    steps = _STEPS[raw]
    steps[inside] = 0
    return inside, np.cumsum(steps, dtype=np.int32)


class _Ready:
    """Lines that are waiting, of which the last may not be whole."""

    def __init__(self) -> None:
        self.lines = bytearray()
        self.count = 0
        self.position = 0
        self.seen = False
        self._whole = 0

    def add(self, begin: int, lines: bytes, commas: np.ndarray) -> None:
        self.position += begin
        if len(commas):
            self._whole = len(self.lines) + int(commas[-1]) + 1
            self.count += len(commas)
            self.seen = True
        self.lines += lines

    def whole(self) -> Elements:
        made = Elements(bytes(self.lines[: self._whole]), self.count, self.position)
        del self.lines[: self._whole]
        self.position += self._whole
        self.count = self._whole = 0
        return made

    def check(self, limit: Limit) -> None:
        """Refuse an element that goes on for longer than it may."""
        if len(self.lines) - self._whole > limit.bytes:
            raise limit.error(self.position + self._whole)

    def last(self) -> Elements:
        return Elements(bytes(self.lines), self.count + 1, self.position)


class _Scanner:
    """Knows at the end of each piece how deep it is nested, and whether it is in a string."""

    def __init__(self) -> None:
        self.ended = False
        self._depth = 0
        self._in_string = False
        self._held = b""

    def scan(self, piece: bytes) -> tuple[int, bytes, np.ndarray]:
        """Bytes left out before the elements, the lines, and where the commas between them were."""
        data, begin = self._held + piece, 0
        self._held = b""
        if not self._depth and not self.ended:
            begin = len(data) - len(data.lstrip(_BLANKS))
            if begin == len(data):
                return begin, b"", np.empty(0, np.int64)
            if data[begin] != ord("["):
                raise Odd("no array")
            begin, self._depth = begin + 1, 1
        if self.ended:
            if data.strip(_BLANKS):
                raise Odd("text after the array")
            return 0, b"", np.empty(0, np.int64)
        return begin, *self._lines(data[begin:])

    def _lines(self, data: bytes) -> tuple[bytes, np.ndarray]:
        plain = without_escapes(data)
        # The piece was cut within an escape, whose second byte comes with the next one.
        if plain.endswith(b"\\"):
            plain, data, self._held = plain[:-1], data[:-1], b"\\"
        raw = np.frombuffer(plain, np.uint8)
        inside, depth = nesting(raw, in_string=self._in_string)
        depth += self._depth
        ends = np.flatnonzero(depth == 0)
        if len(ends):
            end = int(ends[0])
            if raw[end] != ord("]") or data[end + 1 :].strip(_BLANKS):
                raise Odd("another end than the array's")
            data, raw, inside, depth = data[:end], raw[:end], inside[:end], depth[:end]
            self.ended = True
        elif len(raw):
            self._depth, self._in_string = int(depth[-1]), bool(inside[-1])
        if len(depth) and depth.max() > MAX_DEPTH:
            raise Odd("nested too deeply")
        feeds = (raw == ord("\n")) | (raw == ord("\r"))
        # A line feed in a string is malformed, and would end a line here; single quotes are for the
        # exact path.
        if (feeds & inside).any() or ((raw == ord("'")) & ~inside).any():
            raise Odd("a string that is not plain")
        commas = np.flatnonzero((raw == ord(",")) & ~inside & (depth == 1))
        lines = np.frombuffer(data, np.uint8).copy()
        # Elements become lines: breaks within them are blanks, and the commas between them are
        # breaks.
        lines[feeds] = ord(" ")
        lines[commas] = ord("\n")
        return lines.tobytes(), commas
