"""How large a batch is once every value is written out, which dictionaries and views put off.

Not here: cutting it accordingly (`formats/blocks.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["expanded", "longest_values"]

_NUMBER = 16


def expanded(batch: pa.RecordBatch) -> int:
    """Bytes of a batch in which each value is stored by itself, at most."""
    return int(batch.nbytes) + sum(map(_beyond, batch.columns))


def longest_values(array: pa.Array) -> Iterator[int]:
    """The length of the longest value of each dictionary in a column, however deep."""
    if pa.types.is_dictionary(array.type):
        yield _longest(array.dictionary)
    for child in _children(array):
        yield from longest_values(child)


def _beyond(array: pa.Array) -> int:
    """The same of a column, in addition to the bytes it has; the longest value counts for each."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return len(array) * _longest(array.dictionary)
    if pa.types.is_run_end_encoded(kind):
        return len(array) * _longest(array.values)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return len(array) * _longest(array)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        each = (array.values.nbytes + _beyond(array.values)) / max(1, len(array.values))
        return int(each * (pc.sum(array.sizes).as_py() or 0))
    return sum(map(_beyond, _children(array)))


def _children(array: pa.Array) -> list[pa.Array]:
    kind = array.type
    if pa.types.is_struct(kind):
        return [array.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [array.keys, array.items]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [array.values]
    return []


def _longest(values: pa.Array) -> int:
    kind = values.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = np.frombuffer(values.buffers()[1], np.int32)[::4][values.offset :][: len(values)]
        return int(views.max(initial=0))
    is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    if is_text or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return pc.max(pc.binary_length(values)).as_py() or 0
    return _NUMBER if pa.types.is_primitive(kind) else int(values.nbytes)
