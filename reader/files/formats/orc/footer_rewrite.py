"""Hands an ORC file to Arrow with another footer, where Arrow's reading of the types would lose.

Arrow turns ORC's timestamps into wall clocks by the writer's zone, after which the two hours of a
clock set back are one. As a timestamp of an instant, which differs by one number in the footer, the
same bytes come out as they are stored. And it selects columns by dotted names, which say too little
where names have dots: then columns are called by their number in the footer.
"""

from __future__ import annotations

import pyarrow as pa
from typing_extensions import override

from ...io.source_file import AsFile, RandomAccess
from .compression import stored
from .protobuf import Field, Value, fields, message, number
from .tail import Tail

TIMESTAMP = 9
INSTANT = 18
_TYPES = 4
_NAMES = 3


def patched(source: pa.NativeFile, tail: Tail, *, numbered: bool, instants: bool) -> pa.NativeFile:
    """The file with its columns called "0", "1" and so on, and with its timestamps as instants."""
    found: list[Field] = []
    root = True
    for field, value in tail.footer:
        if field == _TYPES and isinstance(value, bytes):
            pairs = list(fields(value))
            if root and numbered:
                count = sum(number == _NAMES for number, _ in pairs)
                pairs = [pair for pair in pairs if pair[0] != _NAMES]
                pairs += [(_NAMES, str(index).encode()) for index in range(count)]
            root = False
            found.append((field, message(_type(pairs) if instants else pairs)))
        else:
            found.append((field, value))
    footer = stored(message(found), tail.codec, tail.block)
    lengths: dict[int, Value] = {1: len(footer)}
    postscript = message([(field, lengths.get(field, value)) for field, value in tail.postscript])
    end = footer + postscript + bytes([len(postscript)])
    if isinstance(source, pa.BufferReader):
        source.seek(0)
        return pa.BufferReader(source.read(tail.start) + end)
    return pa.PythonFile(AsFile(_Spliced(source, tail.start, end), tail.start + len(end)), "r")


def _type(pairs: list[Field]) -> list[Field]:
    is_timestamp = number(dict(pairs).get(1)) == TIMESTAMP
    return [(1, INSTANT) if is_timestamp and pair[0] == 1 else pair for pair in pairs]


class _Spliced(RandomAccess):
    """The beginning of a file, and another end."""

    def __init__(self, source: pa.NativeFile, start: int, end: bytes) -> None:
        self._source = source
        self._start = start
        self._end = end

    @override
    def read_at(self, position: int, count: int) -> bytes:
        stop = position + count
        data = b""
        if position < self._start:
            self._source.seek(position)
            data = self._source.read(min(stop, self._start) - position)
        if stop > self._start:
            data += self._end[max(0, position - self._start) : stop - self._start]
        return data

    @override
    def close(self) -> None:
        """Who has opened the file closes it."""
