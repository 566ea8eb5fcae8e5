"""What the tail of an ORC file says: stripes, types, calendar, zones, and the span of its times.

Follows the ORC v1 specification, "File Tail": a postscript that is never compressed, before it the
footer. Arrow hands out too little of it. Data is decoded by Arrow, not here.

Arrow is handed another footer where its reading of the types would lose. It turns ORC's timestamps
into wall clocks by the writer's zone, after which the two hours of a clock set back are one. As a
timestamp of an instant, which differs by one number in the footer, the same bytes come out as they
are stored. And it selects columns by dotted names, which say too little where names have dots: then
columns are called by their number in the footer.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from ...io.source_file import AsFile, RandomAccess
from ...io.varints import unzigzag
from ...values.times.zones import zone_of
from ..api import TimeSpan
from ..time_columns import PER_UNIT, TimeColumn, span_of
from .encoding import (
    UNDECODED,
    Field,
    Value,
    expand,
    fields,
    message,
    number,
    numbers,
    stored,
    text,
)

LONG, TIMESTAMP, DECIMAL, DATE, INSTANT = 4, 9, 14, 15, 18
"""Kinds of types, by their numbers in the footer."""

_INTEGERS = {1, 2, 3, LONG}

MAGIC = b"ORC"
_MAX_FOOTER = 256 * 1024 * 1024
_MOST_POSTSCRIPT = 256
_PROLEPTIC_GREGORIAN = 2
_WHOLE_BLOCK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Stripe:
    """One stripe: its position and its number of rows."""

    offset: int
    rows: int
    footer: int = 0
    """Where the stripe's own footer begins."""

    footer_length: int = 0


@dataclass(frozen=True, slots=True)
class Type:
    """One node of the tree of types; a file's columns are below the first."""

    kind: int
    children: tuple[int, ...]
    names: tuple[str, ...]
    notes: dict[str, str]
    """The writer's own key-value pairs."""

    precision: int
    """Digits of a decimal; 0 if Hive 0.11 wrote it, which did not say."""

    @property
    def is_local_time(self) -> bool:
        """Return whether Spark has written timestamps without zone as numbers of microseconds."""
        return self.kind == LONG and self.type_of_spark == "timestamp_ntz"

    @property
    def type_of_spark(self) -> str:
        """The name of the type that Spark has written as another one; empty if it is the same."""
        return self.notes.get("spark.sql.catalyst.type", "")


@dataclass(frozen=True, slots=True)
class OrcTail:
    """The parsed tail of one file."""

    stripes: list[Stripe]
    types: list[Type]
    is_proleptic: bool
    """Whether dates and timestamps are of the proleptic Gregorian calendar, not the hybrid one."""

    codec: int
    block: int
    footer: list[Field]
    postscript: list[Field]
    start: int
    """Where the footer begins."""


def read_tail(source: pa.NativeFile) -> OrcTail | None:
    """Return the tail of the file; None if LZO or Brotli hides it.

    Raises:
        ValueError: the tail is not that of an ORC file.
    """
    size = source.size()
    # The last byte is the length of the postscript, so both have at most 256 bytes.
    source.seek(max(0, size - _MOST_POSTSCRIPT))
    end = source.read()
    length = end[-1] if end else 0
    postscript = end[-1 - length : -1]
    # Files of the oldest version say what they are at their beginning only.
    if len(end) <= length or not (postscript.endswith(MAGIC) or _begins_with_magic(source)):
        raise ValueError("no ORC postscript at the end")
    postscript_fields = list(fields(postscript))
    noted = dict(postscript_fields)
    footer_length = number(noted.get(1))
    start = size - 1 - length - footer_length
    # A damaged length must not ask for more memory than there is.
    if not 0 <= start < size or footer_length > _MAX_FOOTER:
        raise ValueError(f"a footer of {footer_length} bytes in a file of {size}")
    codec = number(noted.get(2))
    if codec in UNDECODED:
        return None
    source.seek(start)
    block = number(noted.get(3)) or _WHOLE_BLOCK
    footer = list(fields(expand(source.read(footer_length), codec, block)))
    totals = dict(footer)
    stripes = [_stripe(value) for field, value in footer if field == 3]
    # Fields 1 and 2 are the lengths of header and content.
    if not stripes and number(totals.get(2)) > number(totals.get(1)):
        raise ValueError("a footer without stripes, before which there is content")
    return OrcTail(
        stripes,
        [_type(value) for field, value in footer if field == 4],
        # Older writers say nothing of the calendar, and theirs is the hybrid one.
        number(totals.get(10)) == _PROLEPTIC_GREGORIAN,
        codec,
        block,
        footer,
        postscript_fields,
        start,
    )


def writer_zone(source: pa.NativeFile, tail: OrcTail, stripe: Stripe) -> str:
    """Return the zone that the writer of a stripe was in; nothing if the stripe does not say.

    Raises:
        ValueError: the stripe's footer does not parse.
    """
    source.seek(stripe.footer)
    data = source.read(stripe.footer_length)
    return text(dict(fields(expand(data, tail.codec, tail.block))).get(3))


def _begins_with_magic(source: pa.NativeFile) -> bool:
    source.seek(0)
    return bool(source.read(len(MAGIC)) == MAGIC)


def _stripe(value: Value) -> Stripe:
    entries = dict(fields(value))
    offset, index, data, footer, rows = (number(entries.get(i)) for i in range(1, 6))
    return Stripe(offset, rows, offset + index + data, footer)


def _type(value: Value) -> Type:
    entries = list(fields(value))
    noted = dict(entries)
    pairs = [dict(fields(pair)) for i, pair in entries if i == 7]
    return Type(
        number(noted.get(1)),
        tuple(numbers(entries, 2)),
        tuple(text(name) for i, name in entries if i == 3),
        {text(pair.get(1)): text(pair.get(2)) for pair in pairs},
        number(noted.get(5)),
    )


_TYPES, _NAMES = 4, 3
"""Fields of the footer and of a type in it."""


def with_rewritten_footer(
    source: pa.NativeFile, tail: OrcTail, *, numbered: bool, instants: bool
) -> pa.NativeFile:
    """The file with its columns called "0", "1" and so on, and with its timestamps as instants."""
    entries: list[Field] = []
    root = True
    for field, value in tail.footer:
        if field == _TYPES and isinstance(value, bytes):
            pairs = list(fields(value))
            # The first type is the row itself, so its fields are the columns.
            if root and numbered:
                count = sum(number == _NAMES for number, _ in pairs)
                pairs = [pair for pair in pairs if pair[0] != _NAMES]
                pairs += [(_NAMES, str(index).encode()) for index in range(count)]
            root = False
            entries.append((field, message(_as_instant(pairs) if instants else pairs)))
        else:
            entries.append((field, value))
    footer = stored(message(entries), tail.codec, tail.block)
    lengths: dict[int, Value] = {1: len(footer)}
    postscript = message([(field, lengths.get(field, value)) for field, value in tail.postscript])
    end = footer + postscript + bytes([len(postscript)])
    # The file is small, and in memory as a whole already.
    if isinstance(source, pa.BufferReader):
        source.seek(0)
        return pa.BufferReader(source.read(tail.start) + end)
    return pa.PythonFile(AsFile(_Spliced(source, tail.start, end), tail.start + len(end)), "r")


def _as_instant(pairs: list[Field]) -> list[Field]:
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
        """Do nothing: who has opened the file closes it."""


def time_span(source: pa.NativeFile, column: TimeColumn, session: str) -> TimeSpan | None:
    """Return what `FileFormat.time_span` promises, of an open file.

    `session` is the zone of stripes that name none.

    Raises:
        ValueError: the tail is not that of an ORC file.
    """
    tail = read_tail(source)
    if tail is None:
        raise column.unusable("a footer that is compressed with LZO or Brotli")
    if not tail.stripes:
        return None
    try:
        top = tail.types[0]
        index = top.children[column.index_in(top.names)]
        kind = tail.types[index]
    except IndexError as error:
        raise ValueError("a footer that names columns without types") from error
    statistics = [dict(fields(value)) for field, value in tail.footer if field == 7]
    of_column = statistics[index] if index < len(statistics) else {}
    # Statistics of no value: there are only nulls.
    if of_column and not number(of_column.get(1)):
        return None
    if kind.kind == TIMESTAMP:
        zones = {writer_zone(source, tail, stripe) or session for stripe in tail.stripes}
        return _from_wall_clock(_bounds(of_column, 9, 3, column), zones)
    if kind.kind == INSTANT:
        return _from_milliseconds(_bounds(of_column, 9, 3, column))
    if kind.kind == DATE:
        return span_of(*_bounds(of_column, 7, 1, column), PER_UNIT["day"])
    if kind.kind in _INTEGERS:
        each = PER_UNIT["us"] if kind.is_local_time else column.per_integer()
        return span_of(*_bounds(of_column, 2, 1, column), each)
    other = "with columns or values within it" if kind.children else "of another type"
    raise column.unusable(f"{column.name} {other}")


def _bounds(
    statistics: dict[int, Value], field: int, low: int, column: TimeColumn
) -> tuple[int, int]:
    """Two neighbouring fields of the statistics of one kind."""
    own = dict(fields(statistics.get(field, b"")))
    least, most = own.get(low), own.get(low + 1)
    if not isinstance(least, int) or not isinstance(most, int):
        raise column.unusable(f"no statistics of {column.name}")
    return unzigzag(least), unzigzag(most)


def _from_milliseconds(bounds: tuple[int, int]) -> TimeSpan:
    least, most = bounds
    # What is finer than a millisecond is cut off.
    return TimeSpan(least * 1000, most * 1000 + 999)


def _from_wall_clock(bounds: tuple[int, int], zones: set[str]) -> TimeSpan:
    # The stripes of files that were concatenated may be of different zones, and an hour that a zone
    # repeats may be the first or the second.
    first, last = _from_milliseconds(bounds)
    time_zones = [zone_of(name) for name in zones]
    return TimeSpan(
        min(min(zone.readings(first)) for zone in time_zones),
        max(max(zone.readings(last)) for zone in time_zones),
    )
