"""The ranges that readers were assigned, as their commits number them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from ...checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ...checkpoint_meta.documents.reader_assignment import (
    FindCommit,
    continuations_of,
    part_of,
    readers_of,
)
from ...checkpoint_meta.documents.reader_commit import ReaderCommit
from ...checkpoint_meta.files.file_columns import (
    FileSplitSerializer,
    Numbers,
    ranges_in,
    ranges_of,
)
from ...checkpoint_meta.index.fingerprints import Names, names_in


@dataclass(frozen=True)
class AssignedPart:
    """The part of one reader in one checkpoint, in columns: there may be hundreds of thousands."""

    link: CheckpointSnapshot
    reader: int
    ranges: pa.RecordBatch
    """Rows of `RANGES`; without continuations of which nothing was left."""

    numbers: Numbers
    """The index of each range in the reader's commit."""

    @property
    def commit(self) -> ReaderCommit | None:
        """The commit that the reader has published itself."""
        return self.link.commits.get(self.reader)

    @cached_property
    def names(self) -> Names:
        """The fingerprint of the file of each range."""
        return names_in(self.ranges.column("path"))


def assigned_parts(links: Iterable[CheckpointSnapshot], find: FindCommit) -> Iterator[AssignedPart]:
    """The parts of some checkpoints; `find` finds the commit in which a continuation begins."""
    for link in links:
        checkpoint, batches = link.checkpoint, dict[int, list[pa.RecordBatch]]()
        for reader, batch in checkpoint.assigned:
            batches.setdefault(reader, []).append(ranges_in(batch))
        for reader in readers_of(checkpoint):
            if continuations_of(checkpoint, reader):
                part = part_of(checkpoint, reader, FileSplitSerializer(), find)
                there = {at: split for at, split in enumerate(part) if split is not None}
                numbers = np.array([*there], np.int64)
                yield AssignedPart(link, reader, ranges_of([*there.values()]), numbers)
            else:
                ranges = pa.concat_batches(batches[reader])
                yield AssignedPart(link, reader, ranges, np.arange(ranges.num_rows))
