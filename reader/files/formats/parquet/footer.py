"""What a Parquet footer says of row groups and of the span of their times, parsed here.

Arrow reads data with every failure caught, but a damaged footer makes its Python objects for column
chunks end the whole process. So boundaries and statistics come from this parser of Thrift's compact
protocol, which can only raise. Follows `parquet.thrift`; data is decoded by Arrow.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from ...io.varints import read_varint, unzigzag
from ...values.map_nested import Path
from ..api import TimeSpan
from ..time_columns import PER_UNIT, TimeColumn, span_of

MAGIC = b"PAR1"
_STRUCT = 12
_BYTE_ARRAY = 6
# PLAIN_DICTIONARY and RLE_DICTIONARY of `parquet.thrift`.
_DICTIONARIES = {2, 8}


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of a row group, as the footer describes it."""

    kind: int
    """The physical type."""

    encodings: frozenset[int]
    values: int
    """Values of all rows, those of lists counted singly."""

    uncompressed: int
    compressed: int
    low: bytes | None
    """Bounds as stored; None where the footer has none, or says no order of them."""

    high: bytes | None
    nulls: int | None

    @property
    def may_repeat(self) -> bool:
        """True if a dictionary holds texts, of which each may be in any number of rows."""
        return self.kind == _BYTE_ARRAY and not self.encodings.isdisjoint(_DICTIONARIES)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group: where its first column chunk begins, and its rows."""

    start: int
    rows: int
    chunks: dict[Path, Chunk]
    """By the path of the column's names."""


def row_groups(source: pa.NativeFile) -> list[RowGroup]:
    """Return the row groups of the file, in order.

    Raises:
        ValueError: no Parquet footer, or one that does not parse.
    """
    with parsing():
        footer = Compact(footer_of(source)).struct()
        # Without column orders the meaning of the bounds is not defined.
        ordered = 7 in footer
        groups = [_row_group(group, ordered=ordered) for group in footer.get(4, [])]
    # Some writers leave the file's own count at 0; no reader but this one looks at it.
    total = footer.get(3)
    if total not in (0, sum(group.rows for group in groups)):
        raise ValueError(f"row groups whose rows do not add up to the {total} rows of the file")
    return groups


@contextmanager
def parsing() -> Iterator[None]:
    """Turn what a damaged footer leads to into one error."""
    try:
        yield
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as err:
        raise ValueError(f"the Parquet footer does not parse ({err})") from err


def footer_of(source: pa.NativeFile) -> bytes:
    """Return the bytes of the file's footer.

    Raises:
        ValueError: no Parquet footer.
    """
    size = source.size()
    source.seek(max(0, size - 8))
    end = source.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or length > size - 8:
        raise ValueError("no Parquet footer at the end")
    source.seek(size - 8 - length)
    return bytes(source.read(length))


def _row_group(group: dict[int, Any], *, ordered: bool) -> RowGroup:
    chunks = [chunk[3] for chunk in group[1] if 3 in chunk]
    stored = {tuple(name.decode() for name in meta[3]): _chunk(meta, ordered) for meta in chunks}
    return RowGroup(_start(chunks[0]) if chunks else -1, int(group[3]), stored)


def _chunk(meta: dict[int, Any], ordered: bool) -> Chunk:
    # Not fields 1 and 2, the older bounds: of texts, their order depends on the writer.
    statistics = meta.get(12, {}) if ordered else {}
    return Chunk(
        meta.get(1, -1),
        frozenset(meta.get(2, ())),
        values=int(meta.get(5, 0)),
        uncompressed=int(meta.get(6, 0)),
        compressed=int(meta.get(7, 0)),
        low=statistics.get(6),
        high=statistics.get(5),
        nulls=statistics.get(3),
    )


def _start(meta: dict[int, Any]) -> int:
    """Return a chunk begins at its dictionary page, if it has one."""
    data, dictionary = int(meta[9]), int(meta.get(11) or 0)
    return min(data, dictionary) if dictionary > 0 else data


class Compact:
    """Thrift's compact protocol, into dictionaries by field number."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at
        """Where the next byte is read."""
        self._readers: dict[int, Callable[[], Any]] = {
            1: lambda: True,
            2: lambda: False,
            3: self._byte,
            4: self._zigzag,
            5: self._zigzag,
            6: self._zigzag,
            7: lambda: struct.unpack("<d", self._take(8))[0],
            8: lambda: self._take(self._varint()),
            9: self._list,
            10: self._list,
            11: self._map,
            _STRUCT: self.struct,
        }

    def struct(self) -> dict[int, Any]:
        """Return the struct that begins here."""
        return {number: self.value(kind) for number, kind in self.fields()}

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a struct; the value is read by who asks for the next."""
        number = 0
        while header := self._byte():
            # Thrift writes field numbers as differences to the last one, or in full where that is
            # larger than 15.
            number = number + (header >> 4) if header >> 4 else self._zigzag()
            yield number, header & 15

    def value(self, kind: int) -> Any:
        """Return the value of that kind that begins here."""
        return self._readers[kind]()

    def list_header(self) -> tuple[int, int]:
        """Kind and number of the elements that follow."""
        header = self._byte()
        count = header >> 4
        # 15 says that the number of elements follows.
        if count == 15:
            count = self._varint()
        if count > len(self._data):
            raise ValueError("a list longer than the footer")
        return header & 15, count

    def _list(self) -> list[Any]:
        kind, count = self.list_header()
        # Some writers name no type for the elements of an empty list.
        if not count:
            return []
        # In lists a boolean is a byte of its own.
        read = self._byte if kind in (1, 2) else self._readers[kind]
        return [read() for _ in range(count)]

    def _map(self) -> dict[Any, Any]:
        count = self._varint()
        if not count:
            return {}
        if count > len(self._data):
            raise ValueError("a map longer than the footer")
        kinds = self._byte()
        key, value = self._readers[kinds >> 4], self._readers[kinds & 15]
        return {key(): value() for _ in range(count)}

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _take(self, length: int) -> bytes:
        taken = self._data[self.at : self.at + length]
        if len(taken) != length:
            raise IndexError
        self.at += length
        return taken

    def _varint(self) -> int:
        try:
            value, self.at = read_varint(self._data, self.at)
        except ValueError:
            raise ValueError("a number of more than ten bytes in the Parquet footer") from None
        return value

    def _zigzag(self) -> int:
        return unzigzag(self._varint())


def bound(raw: bytes | None, kind: pa.DataType) -> pa.Scalar | None:
    """A stored minimum or maximum as a value of the column's Arrow type; None if it is unknown."""
    types = pa.types
    if raw is None:
        return None
    if types.is_boolean(kind):
        return pa.scalar(raw != b"\x00")
    if types.is_integer(kind):
        signed = types.is_signed_integer(kind)
        # By the bytes that are there: `tinyint` and `smallint` are stored in four.
        number = int.from_bytes(raw, "little", signed=signed)
        return pa.scalar(number, pa.int64() if signed else pa.uint64()).cast(kind)
    if types.is_floating(kind) and len(raw) in (4, 8):
        number = struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
        # Writers that counted NaN in may have lost the bounds of the other numbers.
        return None if math.isnan(number) else pa.scalar(number, kind)
    if types.is_date32(kind) or (types.is_timestamp(kind) and kind.unit != "s"):
        width = 4 if types.is_date32(kind) else 8
        if len(raw) == width:
            return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(raw)])[0]
    if types.is_string(kind) or types.is_large_string(kind):
        # Writers may cut long bounds, even within a character: then the caller takes it for
        # unknown.
        return pa.scalar(raw.decode(), kind)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return pa.scalar(raw, kind)
    return None


_WIDTHS = {1: 4, 2: 8}
"""Bytes of the physical types INT32 and INT64."""

_PHYSICAL = {0: "BOOLEAN", 3: "INT96", 4: "FLOAT", 5: "DOUBLE", 6: "BYTE_ARRAY"}
_CONVERTED = {6: "day", 9: "ms", 10: "us", 15: "", 16: "", 17: "", 18: ""}
"""Dates, timestamps and signed integers, as older writers mark them; others are no times."""

_TIMESTAMP, _DATE, _INTEGER = 8, 6, 10
_UNITS = {1: "ms", 2: "us", 3: "ns"}
_REPEATED = 2


def time_span(source: pa.NativeFile, column: TimeColumn) -> TimeSpan | None:
    """Return what `FileFormat.time_span` promises, of an open file.

    Of integers, and what is stored as such, the bounds of every writer are in the order of numbers,
    also those of old writers and without column orders. Those of INT96 are in no order.

    Raises:
        ValueError: the footer does not parse.
    """
    with parsing():
        return _span(Compact(footer_of(source)).struct(), column)


def _span(footer: dict[int, Any], column: TimeColumn) -> TimeSpan | None:
    leaf, at = _leaf(footer[2], column)
    each = _per_number(leaf, column)
    lows: list[int] = []
    highs: list[int] = []
    for index, group in enumerate(footer.get(4, [])):
        chunk = group[1][at][3]
        statistics = chunk.get(12, {})
        # No rows, or as many nulls as values: such a chunk has no bounds.
        if not int(group[3]) or statistics.get(3) == chunk[5]:
            continue
        # The older fields mean the same where numbers have a sign.
        low, high = statistics.get(6, statistics.get(2)), statistics.get(5, statistics.get(1))
        if low is None or high is None or {len(low), len(high)} != {_WIDTHS[leaf[1]]}:
            raise column.unusable(f"no statistics of {column.name} in row group {index}")
        lows.append(int.from_bytes(low, "little", signed=True))
        highs.append(int.from_bytes(high, "little", signed=True))
    return span_of(min(lows), max(highs), each) if lows else None


def _leaf(elements: list[dict[int, Any]], column: TimeColumn) -> tuple[dict[int, Any], int]:
    """Return the column in the schema, and its number among the leaves."""
    tops: list[tuple[dict[int, Any], int]] = []
    leaves, at = 0, 1
    while at < len(elements):
        tops.append((elements[at], leaves))
        left = 1
        while left:
            children = elements[at].get(5) or 0
            leaves += not children
            left += children - 1
            at += 1
    return tops[column.index_in([top[4].decode() for top, _ in tops])]


def _per_number(leaf: dict[int, Any], column: TimeColumn) -> Fraction:
    """Microseconds that the stored numbers count."""
    physical = leaf.get(1)
    if physical is None or leaf.get(3) == _REPEATED:
        raise column.unusable(f"{column.name} with columns or values within it")
    if physical not in _WIDTHS:
        name = _PHYSICAL.get(physical, "FIXED_LEN_BYTE_ARRAY")
        raise column.unusable(f"{column.name} stored as {name}")
    logical = leaf.get(10) or {}
    # 18 is INT_64: without a mark, a number is a signed integer.
    unit = _CONVERTED.get(leaf.get(6, 18))
    if _TIMESTAMP in logical:
        unit = _UNITS.get(next(iter(logical[_TIMESTAMP][2])))
    elif _DATE in logical:
        unit = "day"
    elif _INTEGER in logical:
        unit = "" if logical[_INTEGER][2] else None
    elif logical:
        unit = None
    if unit is None:
        raise column.unusable(f"{column.name} as a number of another meaning")
    return PER_UNIT[unit] if unit else column.per_integer()
