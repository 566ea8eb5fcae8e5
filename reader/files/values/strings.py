"""Strings from raw bytes: checked to be UTF-8 at memory speed, repaired only where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .rows import validity

BLANKS = "".join(map(chr, range(33)))
"""What Java's `trim` takes off: all control characters, and no blank of any other script."""


def repaired(raw: pa.Array) -> pa.Array:
    """Binary values as strings; bytes that are not UTF-8 become U+FFFD, as in Spark."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        values = (None if v is None else v.decode("utf-8", "replace") for v in raw.to_pylist())
        return pa.array(values, pa.string())


_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_DIGITS = [at for at in range(36) if at not in (8, 13, 18, 23)]


def uuid_text(array: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """Return values of 16 bytes as the 36 characters of a UUID; null stays null."""
    rows = len(array)
    data: Any = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    octets = data[16 * array.offset :][: 16 * rows].reshape(rows, 16)
    text = np.full((rows, 36), ord("-"), np.uint8)
    text[:, _UUID_DIGITS] = _HEX[np.stack([octets >> 4, octets & 15], axis=2).reshape(rows, 32)]
    offsets = np.arange(rows + 1, dtype=np.int32) * 36
    buffers = [validity(array), pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def has_lone_return(data: bytes) -> bool:
    """True if a carriage return ends a line by itself, as it does for Spark and for no parser."""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def is_utf8(data: bytes) -> bool:
    """Return whether all of `data` is UTF-8."""
    if data.isascii():
        return True
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    # One value: strings of Arrow's are checked at once, and a large one has 64 bit offsets.
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(data)])
    try:
        # Ten times as fast as Python's decoder.
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True
