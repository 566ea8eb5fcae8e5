"""Avro's decimals, which are bytes of any length with the highest first, as Arrow's of 16 bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_WIDTH = 16


def decimals(array: pa.Array, final: pa.DataType) -> pa.Array:
    """Binary values as decimals; null stays null.

    Raises:
        ValueError: a number has more digits than the type.
    """
    if not len(array):
        return pa.array([], final)
    raw, ends, lengths = _places(array)
    for index in np.flatnonzero(lengths > _WIDTH).tolist():
        # Fillers before the number, or more than any decimal holds.
        if abs(int.from_bytes(array[index].as_py(), "big", signed=True)) >= 10**final.precision:
            raise _too_long(final)
    negative = np.zeros(len(array), np.bool_)
    filled = lengths > 0
    negative[filled] = raw[ends[filled] - lengths[filled]] >= 0x80
    words = np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None].repeat(_WIDTH, axis=1)
    for place in range(min(_WIDTH, lengths.max(initial=0))):
        longer = lengths > place
        words[longer, place] = raw[ends[longer] - 1 - place]
    validity = array.is_valid().buffers()[1] if array.null_count else None
    made = pa.Array.from_buffers(final, len(array), [validity, pa.py_buffer(words)])
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as err:
        raise _too_long(final) from err
    return made


def _places(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All bytes, and for each value where it ends and how long it is; of a null nothing."""
    buffers = array.buffers()
    first, last = array.offset, array.offset + len(array) + 1
    if pa.types.is_fixed_size_binary(array.type):
        offsets = np.arange(first, last) * array.type.byte_width
    else:
        offsets = np.frombuffer(buffers[1], np.int32)[first:last].astype(np.int64)
    lengths = np.diff(offsets)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    data = buffers[-1] if buffers[-1] is not None else b""
    return np.frombuffer(data, np.uint8), offsets[1:], lengths


def _too_long(final: pa.DataType) -> ValueError:
    return ValueError(f"a decimal of more than {final.precision} digits")
