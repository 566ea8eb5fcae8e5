"""Plain base64 of a whole column at once; `scalars.plain_base64` is the same for one value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_PADDING = 64
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_VALUES = np.full(256, 255, np.uint8)
_VALUES[list(_ALPHABET)] = np.arange(len(_ALPHABET))


def base64_column(texts: pa.Array) -> pa.Array:
    """Strings as the bytes they stand for; null stays null.

    Raises:
        ValueError: at least one is not plain base64, or might not be.
    """
    if not len(texts):
        return pa.array([], pa.binary())
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    data = texts.buffers()[2]
    raw = np.frombuffer(data if data is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    if (offsets % 4).any():
        raise ValueError("base64 that is not in groups of four")
    values = _VALUES[raw]
    ends = offsets[1:][np.diff(offsets) > 0]
    last = ends[raw[ends - 1] == ord("=")]
    second = last[raw[last - 2] == ord("=")]
    if np.count_nonzero(values >= _PADDING) != len(last) + len(second):
        raise ValueError("characters that are no base64, or padding within a value")
    first, *rest = (values & 63).reshape(-1, 4).T
    made = np.empty((len(first), 3), np.uint8)
    made[:, 0] = first << 2 | rest[0] >> 4
    made[:, 1] = rest[0] << 4 | rest[1] >> 2
    made[:, 2] = rest[1] << 6 | rest[2]
    kept = np.ones(made.size, np.bool_)
    kept[last // 4 * 3 - 1] = False
    kept[second // 4 * 3 - 2] = False
    # Where each value ends, less what all paddings up to there have taken.
    dropped = np.cumsum(np.bincount(last // 4, minlength=len(first) + 1))
    dropped += np.cumsum(np.bincount(second // 4, minlength=len(first) + 1))
    places = (offsets // 4 * 3 - dropped[offsets // 4]).astype(np.int32)
    validity = texts.is_valid().buffers()[1] if texts.null_count else None
    buffers = [validity, pa.py_buffer(places), pa.py_buffer(made.ravel()[kept])]
    return pa.Array.from_buffers(pa.binary(), len(texts), buffers)
