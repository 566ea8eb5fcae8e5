"""Makes runs of what was found, and few runs of many: what is written of the index, and how often.

Runs are merged when there are several of about one length, so an entry is written again as often as
there are lengths: for ten million files three or four times. A merge is bounded, so that a short
run of the query gets one done. It takes and frees hundreds of megabytes on a thread of its own; the
C library keeps what was freed for later, for each thread apart, so it is given back explicitly.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from typing_extensions import override

from ....checkpoint_meta.documents.attachments import Attachment, Attachments
from ....checkpoint_meta.files.file_columns import changes_of, ranges_of
from ....checkpoint_meta.index.fingerprints import SeenKeys
from ....checkpoint_meta.index.run import Run, join_files, read_keys, write_files, write_keys
from ....errors import StateCorruptError, StateMissingError
from ...large_state import FrozenState, WrittenState
from .seen_files import SeenFiles, Tail

LOG: Final = logging.getLogger("pyspark_sluice.state")

_ROWS = 50_000
"""Rows of files that are compressed together."""


@dataclass(frozen=True)
class MergePolicy:
    """The lengths of runs; counted in files."""

    flush_at: int = 250_000
    """So many that are in no run become one, even if no base is due."""

    fan_in: int = 8
    """So many runs of about one length are merged."""

    longest: int = 2_000_000
    """No merge makes a longer run: what bounds its time and memory."""

    thorough: bool = False
    """Every merge is due that `longest` permits, and every file is to be in a run."""


def flush(seen: SeenFiles, tails: Sequence[Tail], attachments: Attachments) -> None:
    """Make one run of some tails, neighbours."""
    keys = SeenKeys.merge([tail.keys for tail in tails])
    rows = [piece.rows() for tail in tails for piece in tail.pieces]
    written = attachments.publish(*_objects(write_keys(keys), write_files(_joined(rows))))
    seen.flushed(tails, Run(keys, written))
    release_free_memory()


def _joined(rows: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Of single files found one by one there would be a batch each.
    together: list[pa.RecordBatch] = []
    count = 0
    for batch in rows:
        together.append(batch)
        count += batch.num_rows
        if count >= _ROWS:
            yield pa.concat_batches(together)
            together, count = [], 0
    if together:
        yield pa.concat_batches(together)


def _objects(keys: bytes, files: bytes) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    # A restore reads the keys only; the names, which are much longer, are for views.
    return ("keys.arrow", keys), ("files.arrows", files)


def merge(seen: SeenFiles, group: Sequence[Run], attachments: Attachments) -> None:
    """Make one run of several, neighbours."""
    keys = SeenKeys.merge([read_keys(attachments.read(run.attachments[0])) for run in group])
    objects = _objects(write_keys(keys), join_files(list(_files_of(group, attachments))))
    # The old runs stay until no base refers to them, so a crash here loses nothing.
    written = attachments.publish(*objects)
    seen.merged(group, Run(keys, written))
    release_free_memory()


def _files_of(runs: Sequence[Run], attachments: Attachments) -> Iterator[bytes]:
    for run in runs:
        try:
            yield attachments.read(run.attachments[1])
        except (StateCorruptError, StateMissingError) as error:
            # Only views miss it: no reason to stop a query.
            LOG.warning("names of seen files are lost: %s", error)


def mergeable(seen: SeenFiles, policy: MergePolicy) -> Sequence[Run]:
    """Neighbours, so that of a file in two of them the newer entry is still the newer one.

    Runs grow shorter from the oldest to the newest but where merging is due.
    """
    runs = seen.runs
    if policy.thorough:
        return _neighbours(runs, policy.longest)
    for first in range(len(runs) - policy.fan_in + 1):
        group = runs[first : first + policy.fan_in]
        lengths = [len(run.keys) for run in group]
        alike = max(lengths) < policy.fan_in * min(lengths)
        if sum(lengths) <= policy.longest and (alike or lengths[0] <= lengths[-1]):
            return group
    return ()


def _neighbours(runs: Sequence[Run], longest: int) -> Sequence[Run]:
    for first in range(len(runs) - 1):
        lengths = np.cumsum([len(run.keys) for run in runs[first:]])
        # As many as stay within the longest run that may be made.
        count = int(np.searchsorted(lengths, longest, side="right"))
        if count > 1:
            return runs[first : first + count]
    return ()


class FrozenLedger(FrozenState):
    """The pending ranges and seen files at one cut."""

    def __init__(
        self,
        seen: SeenFiles,
        pending: Sequence[pa.RecordBatch],
        changes: Callable[[pa.RecordBatch], pa.RecordBatch],
        absent: Attachment | None,
    ) -> None:
        """`changes` makes rows of the state of pending ranges, without any lock."""
        self._seen = seen
        self._absent = [absent] if absent else []
        self._pending = pending
        self._changes = changes
        self._runs, self._tails = seen.freeze()

    @override
    def write(self, attachments: Attachments) -> WrittenState:
        open_tails = [tail for tail in self._tails if tail.run is None]
        if open_tails:
            flush(self._seen, open_tails, attachments)
        # A tail may have been flushed since, together with others of this state.
        later = {id(tail.run): tail.run for tail in self._tails if tail.run is not None}
        runs = [*self._runs, *later.values()]
        return WrittenState(
            # Without any row a base still needs one batch, which has the schema.
            [self._changes(ranges) for ranges in self._pending] or [changes_of(ranges_of([]))],
            [*(attachment for run in runs for attachment in run.attachments), *self._absent],
        )

    def names(self) -> set[str]:
        """Objects that this state needs."""
        runs = [*self._runs, *(tail.run for tail in self._tails if tail.run is not None)]
        attached = [attachment for run in runs for attachment in run.attachments]
        return {attachment.name for attachment in (*attached, *self._absent)}


def release_free_memory() -> None:
    """Gives free memory back to the system where the C library can (glibc); some milliseconds."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
