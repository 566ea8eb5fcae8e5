"""The elements of the schema in a Parquet footer, and footers in which some of them are others.

Follows `SchemaElement` of `parquet.thrift`, in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...io.varints import varint, zigzag
from .footer import MAGIC, Compact, parsing

TYPE, LENGTH, REPETITION, CHILDREN, CONVERTED, LOGICAL = 1, 2, 3, 5, 6, 10
"""Fields of an element."""

INT96, BYTE_ARRAY, FIXED_BYTES = 3, 6, 7
"""Physical types."""

REQUIRED = 0
_SCHEMA = 2
_NUMBER = 5

Fields = dict[int, tuple[int, bytes]]
"""Number of a field -> its kind, and its value as stored."""


@dataclass(frozen=True, slots=True)
class Element:
    """One column, or a group of them."""

    start: int
    end: int
    fields: Fields
    values: dict[int, Any]

    @property
    def children(self) -> int:
        """The number of columns and groups directly within; 0 for a column."""
        return self.values.get(CHILDREN) or 0

    @property
    def logical(self) -> dict[int, Any]:
        """The logical type: its number in the union -> its parameters."""
        return self.values.get(LOGICAL) or {}


def schema_elements(footer: bytes) -> list[Element]:
    """Return the elements of the schema, the root first, in depth-first order.

    Raises:
        ValueError: the footer does not parse.
    """
    with parsing():
        reader = Compact(footer)
        for number, kind in reader.fields():
            if number == _SCHEMA:
                return [_element(reader, footer) for _ in range(reader.list_header()[1])]
            reader.value(kind)
    return []


def _element(reader: Compact, footer: bytes) -> Element:
    start, fields, values = reader.at, Fields(), dict[int, Any]()
    for number, kind in reader.fields():
        begin = reader.at
        values[number] = reader.value(kind)
        fields[number] = kind, footer[begin : reader.at]
    return Element(start, reader.at, fields, values)


def number(value: int) -> tuple[int, bytes]:
    """Return a number as the value of a field."""
    return _NUMBER, varint(zigzag(value))


def with_elements(footer: bytes, change: Callable[[int, Element], Fields]) -> pq.FileMetaData:
    """Return what Arrow makes of the footer with changed fields of each element."""
    parts, done = [MAGIC], 0
    for index, element in enumerate(schema_elements(footer)):
        fields = change(index, element)
        if fields != element.fields:
            parts += [footer[done : element.start], _encoded(fields)]
            done = element.end
    changed = b"".join([*parts, footer[done:]])
    length = (len(changed) - len(MAGIC)).to_bytes(4, "little")
    return pq.read_metadata(pa.BufferReader(changed + length + MAGIC))


def _encoded(fields: Fields) -> bytes:
    # The difference to the last number is next to the kind: an element has few fields.
    parts, last = [], 0
    for number_, (kind, value) in sorted(fields.items()):
        parts += [bytes([(number_ - last) << 4 | kind]), value]
        last = number_
    return b"".join([*parts, b"\0"])
