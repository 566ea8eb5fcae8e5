"""The state of the file source as it goes into a checkpoint and comes out of a chain of them.

A snapshot says what became pending since the one before, what is pending no longer, and which files
became known. The snapshot after a first listing whose files are not to be read names the runs of
the index, too. What is restored is all that is pending, and the index of what was seen.

Not here: folding a chain (`folding.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.documents.file_columns import (
    CHANGES,
    TIMED_CHANGES,
    became_pending,
    changes_of,
    has_times,
    ranges_of,
    splits_in,
    with_bounds,
    with_times,
)
from ....checkpoint_meta.documents.file_split import FileSplit
from ....checkpoint_meta.documents.serializer import VersionedSerializer
from ....checkpoint_meta.index.run import Run
from .seen_files import Tail


@dataclass(frozen=True)
class FileState:
    """Ranges in columns, and the other files that were seen."""

    changes: Sequence[pa.RecordBatch] = ()
    """Rows of `CHANGES`; of a state that was restored, those that are pending."""

    runs: tuple[Run, ...] = ()
    tails: tuple[Tail, ...] = ()
    times: Sequence[pa.RecordBatch] = ()
    """In a state that was restored: rows of `TIMED_CHANGES` that say what was remembered."""

    @staticmethod
    def of(splits: Iterable[FileSplit]) -> FileState:
        """A state in which these ranges became pending, and their files known."""
        return FileState([changes_of(ranges_of(list(splits)), known=True)])

    def __iter__(self) -> Iterator[FileSplit]:
        """The ranges that are pending, or became so, an object each: for tests and views."""
        for batch in self.changes:
            yield from splits_in(became_pending(batch))


class FileStateSerializer(VersionedSerializer[FileState]):
    """Version 1: rows of `CHANGES`, or of `TIMED_CHANGES`."""

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
        """The changes, and a row for each known file that is in no run; at least one batch."""
        seen = [
            changes_of(with_bounds(piece.files, piece.end, piece.end), known=True)
            for tail in value.tails
            for piece in tail.pieces
        ]
        batches = [batch for batch in (*value.changes, *seen) if batch.num_rows]
        if any(map(has_times, batches)):
            batches = list(map(with_times, batches))
        return batches or [changes_of(ranges_of([]))]

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> FileState:
        schema = TIMED_CHANGES if has_times(batch) else CHANGES
        columns = [batch.column(name) for name in schema.names]
        return FileState([pa.record_batch(columns, schema=schema)])
