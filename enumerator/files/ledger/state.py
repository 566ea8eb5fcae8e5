"""The state of the file source as it goes into a checkpoint and comes out of a chain of them.

A snapshot is the ranges that became pending since the one before; an empty range says only that
its file has been seen. The snapshot after a first listing whose files are not to be read names the
runs of the index, too. What is restored is all that is pending, and the index of what was seen.

Not here: folding a chain (`folding.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.file_columns import RANGES, ranges_of, splits_in, with_borders
from ....checkpoint_meta.index.run import Run
from ....checkpoint_meta.serializer import VersionedSerializer
from ....checkpoint_meta.splits import FileSplit
from .seen import Tail


@dataclass(frozen=True)
class FileState:
    """Ranges in columns, and the files that were seen besides."""

    ranges: Sequence[pa.RecordBatch] = ()
    """Rows of `RANGES`."""

    runs: tuple[Run, ...] = ()
    tails: tuple[Tail, ...] = ()

    @staticmethod
    def of(splits: Iterable[FileSplit]) -> FileState:
        """A state that is these ranges, the way a snapshot says it."""
        return FileState([ranges_of(list(splits))])

    def __iter__(self) -> Iterator[FileSplit]:
        """The ranges, an object each: for tests and views."""
        for batch in self.ranges:
            yield from splits_in(batch)


class FileStateSerializer(VersionedSerializer[FileState]):
    """Six columns a range: those of the file, then start and end."""

    @property
    @override
    def version(self) -> int:
        return 1

    @override
    def serialize(self, value: FileState) -> pa.RecordBatch:
        batches = self.serialize_all(value)
        return pa.concat_batches(list(batches)) if len(batches) > 1 else batches[0]

    @override
    def serialize_all(self, value: FileState) -> Sequence[pa.RecordBatch]:
        """The ranges, and an empty one for each file that is in no run; at least one batch."""
        seen = [
            with_borders(piece.files, piece.end, piece.end)
            for tail in value.tails
            for piece in tail.pieces
        ]
        batches = [batch for batch in (*value.ranges, *seen) if batch.num_rows]
        return batches or [ranges_of([])]

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> FileState:
        columns = [batch.column(name) for name in RANGES.names]
        return FileState([pa.record_batch(columns, schema=RANGES)])
