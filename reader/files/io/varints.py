"""Numbers of variable length: seven bits to a byte, the lowest first, as in protobuf and Thrift."""

from __future__ import annotations


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number at `at`, and the position after it.

    Raises:
        IndexError: `data` ends within it.
        ValueError: it has more than ten bytes, as no number of 64 bits has.
    """
    value = shift = 0
    # Ten times seven bits hold any number of 64; damaged bytes could go on without an end.
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number longer than ten bytes")


def varint(value: int) -> bytes:
    """A number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def unzigzag(value: int) -> int:
    """The signed number of an unsigned one: 0, -1, 1, -2 and so on (zigzag)."""
    return (value >> 1) ^ -(value & 1)


def zigzag(number: int) -> int:
    """A signed number of 64 bits as one that is not negative."""
    return (number << 1) ^ (number >> 63)
