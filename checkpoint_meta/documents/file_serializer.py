"""How splits of files get into a checkpoint and out of it again, as columns.

Not here: the columns themselves (`file_columns.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from typing_extensions import override

from .file_columns import ranges_of, splits_in
from .file_split import FileSplit
from .serializer import VersionedSerializer


class FileSplitSerializer(VersionedSerializer[Sequence[FileSplit]]):
    """File splits as six columns: those of the file, then start and end."""

    # Offsets of Arrow's string columns are int32.
    def __init__(self, most_text: int = 2**31 - 1) -> None:
        """`most_text` is how many bytes of text a column of one record batch may hold."""
        self._most_text = most_text

    @property
    @override
    def version(self) -> int:
        return 1

    @override
    def serialize(self, value: Sequence[FileSplit]) -> pa.RecordBatch:
        return ranges_of(value)

    @override
    def serialize_all(self, value: Sequence[FileSplit]) -> Sequence[pa.RecordBatch]:
        # A character has at most four bytes: few states have to be measured exactly.
        if 4 * sum(len(s.file.path) + len(s.file.etag) for s in value) <= self._most_text:
            return [self.serialize(value)]
        sizes = (max(len(s.file.path.encode()), len(s.file.etag.encode())) for s in value)
        starts, total = [0], 0
        for at, size in enumerate(sizes):
            total += size
            # `at > starts[-1]`: a batch has one row at least.
            if total > self._most_text and at > starts[-1]:
                starts.append(at)
                total = size
        ends = [*starts[1:], len(value)]
        return [self.serialize(value[a:b]) for a, b in zip(starts, ends, strict=True)]

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> Sequence[FileSplit]:
        return splits_in(batch)
