"""Files and ranges of files as Arrow columns: the form in which they are kept and written down.

Not here: the serializers of a source (`serializer.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .arrays import int64_array, text_array
from .splits import FileSplit, FileVersion

Numbers: TypeAlias = npt.NDArray[np.int64]
WordT = TypeVar("WordT", np.int64, np.uint64)

_FILE = [
    ("path", pa.string()),
    ("size", pa.int64()),
    ("modified", pa.int64()),
    ("etag", pa.string()),
]
FILES = pa.schema(_FILE)
"""One version of a file a row."""

RANGES = pa.schema([*_FILE, ("start", pa.int64()), ("end", pa.int64())])
"""One range of a file a row."""


def file_columns(files: Sequence[FileVersion]) -> list[pa.Array]:
    """The columns of `FILES`."""
    return [
        text_array([file.path for file in files]),
        int64_array([file.size for file in files]),
        int64_array([file.modified for file in files]),
        text_array([file.etag for file in files]),
    ]


def ranges_of(splits: Sequence[FileSplit]) -> pa.RecordBatch:
    """Splits as rows of `RANGES`."""
    columns = file_columns([split.file for split in splits])
    columns += [
        int64_array([split.start for split in splits]),
        int64_array([split.end for split in splits]),
    ]
    return pa.record_batch(columns, schema=RANGES)


def splits_in(ranges: pa.RecordBatch) -> list[FileSplit]:
    """Rows of `RANGES` as splits."""
    columns = [ranges.column(name).to_pylist() for name in RANGES.names]
    return list(map(FileSplit, map(FileVersion, *columns[:4]), *columns[4:]))


def with_borders(files: pa.RecordBatch, start: Numbers, end: Numbers) -> pa.RecordBatch:
    """Rows of `FILES` (or of `RANGES`, whose borders they lose) as rows of `RANGES`."""
    columns = [files.column(name) for name in FILES.names]
    return pa.record_batch([*columns, numbers_array(start), numbers_array(end)], schema=RANGES)


def withdrawn(ranges: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that say of `ranges` that they are pending no longer: their borders are exchanged.

    The inverse as well.
    """
    return with_borders(ranges, numbers_in(ranges, "end"), numbers_in(ranges, "start"))


def numbers_array(values: Numbers) -> pa.Array:
    """A column of 64 bit numbers over the memory of `values`."""
    kept = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(kept), [None, pa.py_buffer(kept)])


def numbers_in(batch: pa.RecordBatch, name: str) -> Numbers:
    """A column of 64 bit numbers, none of them null, without a copy."""
    return words_in(batch.column(name), np.int64)


def words_in(column: pa.Array, kind: type[WordT]) -> npt.NDArray[WordT]:
    """Words of 64 bits, none of them null, over the memory of a column.

    pyarrow's own conversion imports pandas where there is one.
    """
    assert column.null_count == 0
    values: npt.NDArray[WordT] = np.frombuffer(column.buffers()[1] or b"", kind)
    return values[column.offset : column.offset + len(column)]
