"""Protocol Buffers messages as pairs of field number and value, read and written.

ORC's metadata is made of them. What the fields mean is in `tail.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...io.varints import read_varint
from ...io.varints import varint as written

Value = int | bytes
Field = tuple[int, Value]


def fields(data: bytes) -> Iterator[Field]:
    """Field numbers and values of a message; fixed-width numbers are left as bytes.

    Raises:
        ValueError: `data` is no message.
    """
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            # 3 and 4 are groups, which ORC's messages do not have.
            raise ValueError(f"wire type {kind} in the ORC footer")
        if at + length > len(data):
            raise ValueError("the ORC footer ends within a field")
        yield key >> 3, data[at : at + length]
        at += length


def message(pairs: Iterable[Field]) -> bytes:
    """The inverse of `fields`, for messages without numbers of fixed width."""
    parts = []
    for number, value in pairs:
        if isinstance(value, int):
            parts += [written(number << 3), written(value)]
        else:
            parts += [written(number << 3 | 2), written(len(value)), value]
    return b"".join(parts)


def number(value: Value | None) -> int:
    """A field as a number; 0, protobuf's default, if it is not there."""
    return value if isinstance(value, int) else 0


def text(value: Value | None) -> str:
    """A field as text."""
    return value.decode() if isinstance(value, bytes) else ""


def numbers(found: Iterable[Field], wanted: int) -> list[int]:
    """A repeated number, packed or not."""
    values: list[int] = []
    for field, value in found:
        if field != wanted:
            continue
        if isinstance(value, int):
            values.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            values.append(one)
    return values


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length and the position after it."""
    try:
        return read_varint(data, at)
    except (IndexError, ValueError):
        raise ValueError("a number in the ORC footer does not end") from None
