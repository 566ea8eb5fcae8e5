"""What a Parquet footer says of row groups, parsed here because asking Arrow for it can abort.

Arrow reads data with every failure caught, but a damaged footer makes its Python objects for column
chunks end the whole process. So boundaries and statistics come from this parser of Thrift's compact
protocol, which can only raise. Follows `parquet.thrift`; data is decoded by Arrow.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from ...io.varints import read_varint, unzigzag
from ...values.map_nested import Path

MAGIC = b"PAR1"
_STRUCT = 12
_BYTE_ARRAY = 6
_DICTIONARIES = {2, 8}


@dataclass(frozen=True, slots=True)
class Statistics:
    """Bounds of one column chunk, as stored; None where the footer has none."""

    low: bytes | None
    high: bytes | None
    nulls: int | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """How one column is stored in a row group, as the footer has it."""

    kind: int
    """The physical type."""

    encodings: frozenset[int]
    values: int
    """Values of all rows, those of lists counted singly."""

    uncompressed: int
    compressed: int

    @property
    def may_repeat(self) -> bool:
        """True if a dictionary holds texts, of which each may be in any number of rows."""
        return self.kind == _BYTE_ARRAY and not self.encodings.isdisjoint(_DICTIONARIES)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group: where its first column chunk begins, and its rows."""

    start: int
    rows: int
    columns: dict[Path, Statistics]
    """Statistics by the path of the column's names."""

    chunks: dict[Path, Chunk]


def row_groups(source: pa.NativeFile) -> list[RowGroup]:
    """The row groups of the file, in order.

    Raises:
        ValueError: no Parquet footer, or one that does not parse.
    """
    try:
        footer = Compact(footer_of(source)).struct()
        # Without column orders the meaning of the bounds is not defined.
        ordered = 7 in footer
        groups = [_row_group(group, ordered=ordered) for group in footer.get(4, [])]
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as err:
        raise ValueError(f"the Parquet footer does not parse ({err})") from err
    # Some writers leave the file's own count at 0; no reader but this one looks at it.
    if footer.get(3) not in (0, sum(group.rows for group in groups)):
        _fail(f"row groups whose rows do not add up to the {footer.get(3)} rows of the file")
    return groups


def footer_of(source: pa.NativeFile) -> bytes:
    """The bytes of the file's footer.

    Raises:
        ValueError: no Parquet footer.
    """
    size = source.size()
    source.seek(max(0, size - 8))
    end = source.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or length > size - 8:
        _fail("no Parquet footer at the end")
    source.seek(size - 8 - length)
    return bytes(source.read(length))


def _row_group(group: dict[int, Any], *, ordered: bool) -> RowGroup:
    chunks = [chunk[3] for chunk in group[1] if 3 in chunk]
    columns: dict[Path, Statistics] = {}
    if ordered:
        columns = {_path(meta): _statistics(meta.get(12, {})) for meta in chunks}
    stored = {_path(meta): _chunk(meta) for meta in chunks}
    return RowGroup(_start(chunks[0]) if chunks else -1, int(group[3]), columns, stored)


def _chunk(meta: dict[int, Any]) -> Chunk:
    encodings = frozenset(meta.get(2, ()))
    return Chunk(meta.get(1, -1), encodings, *(int(meta.get(i, 0)) for i in (5, 6, 7)))


def _path(meta: dict[int, Any]) -> Path:
    return tuple(name.decode() for name in meta[3])


def _start(meta: dict[int, Any]) -> int:
    """A chunk begins at its dictionary page, if it has one."""
    data, dictionary = int(meta[9]), int(meta.get(11) or 0)
    return min(data, dictionary) if dictionary > 0 else data


def _statistics(found: dict[int, Any]) -> Statistics:
    return Statistics(found.get(6), found.get(5), found.get(3))


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
        """The struct that begins here."""
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
        """The value of that kind that begins here."""
        return self._readers[kind]()

    def list_header(self) -> tuple[int, int]:
        """Kind and number of the elements that follow."""
        header = self._byte()
        count = header >> 4
        # 15 says that the number of elements follows.
        if count == 15:
            count = self._varint()
        if count > len(self._data):
            _fail("a list longer than the footer")
        return header & 15, count

    def _list(self) -> list[Any]:
        kind, count = self.list_header()
        # In lists a boolean is a byte of its own.
        read = self._byte if kind in (1, 2) else self._readers[kind]
        return [read() for _ in range(count)]

    def _map(self) -> dict[Any, Any]:
        count = self._varint()
        if not count:
            return {}
        if count > len(self._data):
            _fail("a map longer than the footer")
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
            _fail("a number of more than ten bytes in the Parquet footer")
        return value

    def _zigzag(self) -> int:
        return unzigzag(self._varint())


def bound(raw: bytes | None, found: pa.DataType) -> pa.Scalar | None:
    """A stored minimum or maximum as a value of the column's Arrow type; None if it is unknown."""
    types = pa.types
    if raw is None:
        return None
    if types.is_boolean(found):
        return pa.scalar(raw != b"\x00")
    if types.is_integer(found):
        signed = types.is_signed_integer(found)
        number = int.from_bytes(raw, "little", signed=signed)
        return pa.scalar(number, pa.int64() if signed else pa.uint64()).cast(found)
    if types.is_floating(found) and len(raw) in (4, 8):
        number = struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
        # Writers that counted NaN in may have lost the bounds of the other numbers.
        return None if math.isnan(number) else pa.scalar(number, found)
    if types.is_date32(found) or (types.is_timestamp(found) and found.unit != "s"):
        width = 4 if types.is_date32(found) else 8
        if len(raw) == width:
            return pa.Array.from_buffers(found, 1, [None, pa.py_buffer(raw)])[0]
    if types.is_string(found) or types.is_large_string(found):
        return pa.scalar(raw.decode(), found)
    if types.is_binary(found) or types.is_large_binary(found):
        return pa.scalar(raw, found)
    return None


def _fail(reason: str) -> NoReturn:
    raise ValueError(reason)
