"""Arrow arrays built from buffers.

pyarrow's own conversion of Python values imports pandas where there is one, which costs a tenth
of a second before the first batch of every query.

Not here: which columns they make up (`serializer.py`, `checkpoint.py`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate

import pyarrow as pa


def int64_array(values: Sequence[int]) -> pa.Array:
    """`values` as int64, none of them null."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])


def int32_repeated(value: int, count: int) -> pa.Array:
    """`value` as int32, `count` times."""
    return pa.Array.from_buffers(
        pa.int32(), count, [None, pa.py_buffer(array("i", [value]) * count)]
    )


def text_array(values: Sequence[str]) -> pa.Array:
    """`values` as strings, none of them null."""
    encoded = [value.encode() for value in values]
    # Offsets of 32 bits: more than 2 GiB of text raises here, see `FileSplitSerializer`.
    ends = array("i", accumulate(map(len, encoded), initial=0))
    data = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), data)
