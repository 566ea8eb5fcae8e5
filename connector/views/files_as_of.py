"""What a state says of files as of a checkpoint, and of splits that were given up on.

For views and tools: nothing is claimed or changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.checkpoint import Checkpoint, QuarantinedSplit, quarantined_in
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.files.file_split import FileSplit, FileVersion
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.index.fingerprints import SeenKeys
from ...checkpoint_meta.index.run import read_files
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.coordinator.restore import restore
from ...enumerator.files.ledger.file_state import FileState, pending_after
from ...enumerator.files.ledger_source import OfflineFileSource
from ...enumerator.large_state import StateDocument
from .state_view import TIME, StateView, fields


class FilesAsOf:
    """The files that the state knew of as of one checkpoint.

    Its methods raise a StateError where a restore would: a link of the chain or an object that it
    refers to is missing, damaged, or newer than this release.
    """

    def __init__(
        self,
        store: StateStore,
        ref: CheckpointRef,
        *,
        details: bool = False,
        history: CheckpointHistory | None = None,
    ) -> None:
        """With `details` newer versions of files that are in no run yet are reported, too.

        `history` is that of the store, where checkpoints were looked at before.
        """
        self._history = history or CheckpointHistory(store)
        # Nothing is published: the epoch does not matter.
        self._attachments = Attachments(store, 0)
        self._ref = ref
        self._details = details

    @cached_property
    def _chain(self) -> Sequence[Checkpoint]:
        # A query that has planned no batch yet has no chain.
        return [] if self._ref == NO_CHECKPOINT else self._history.chain(self._ref)

    @cached_property
    def _state(self) -> FileState:
        source = OfflineFileSource(details=self._details)
        restored = restore(self._history, self._ref, source, self._attachments)
        return restored.state or FileState()

    def keys(self) -> SeenKeys:
        """Files ever seen, without a look at their names."""
        runs, tails = self._state.runs, self._state.tails
        keys = [*(run.keys for run in runs), *(tail.keys for tail in tails)]
        return SeenKeys.merge([each.files() for each in keys])

    def quarantined(self) -> Sequence[QuarantinedSplit]:
        """Splits that were given up on, up to this checkpoint."""
        return quarantined_in(self._chain)

    def pending(self) -> Sequence[pa.RecordBatch]:
        """Return what was found and not assigned: rows of `RANGES`."""
        return pending_after(list(map(StateDocument.of, self._chain)))

    def seen(self, *columns: str) -> Iterator[pa.RecordBatch]:
        """Every file ever seen: rows of `SEEN_FILES`, or some columns, the oldest runs first.

        A file that changed comes once for each version, if versions mattered.
        """
        for run in self._state.runs:
            yield from read_files(self._attachments.read(run.attachments[1]), columns)
        for tail in self._state.tails:
            for piece in tail.pieces:
                rows = piece.rows()
                yield rows.select(columns) if columns else rows


FILE_OF_SPLIT: Final = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("modified", TIME), ("etag", pa.string())]
)

QUARANTINE: Final = pa.schema(
    [
        *FILE_OF_SPLIT,
        *fields(pa.int64(), "start", "end"),
        *fields(pa.string(), "split_id", "reason"),
        ("attempts", pa.int32()),
        ("checkpoint", pa.int64()),
    ]
)

# Greedy for the path, which may have any of the signs that follow it, and line ends.
_SPLIT_ID = re.compile(r"(.*)@(\d+)-(-?\d+)-(.*?):(\d+)-(\d+)(?:\+(\d+))?", re.DOTALL)


def file_of(split_id: str) -> dict[str, Any]:
    """Path, size, modified, etag, start and end; empty where another source made the id."""
    split = split_of(split_id)
    if split is None:
        return {}
    file = split.file
    # -1 means that the file system has no times.
    modified = pa.scalar(file.modified if file.modified >= 0 else None, TIME)
    return {**file._asdict(), "modified": modified, "start": split.start, "end": split.end}


def split_of(split_id: str) -> FileSplit | None:
    """The split that an id names; None where another source made it."""
    match = _SPLIT_ID.fullmatch(split_id)
    if match is None:
        return None
    size, modified, start, end = (int(match[at]) for at in (2, 3, 5, 6))
    file = FileVersion(match[1], size, modified, match[4])
    return FileSplit(file, start, end, int(match[7] or 0))


def quarantined_splits(view: StateView) -> list[QuarantinedSplit]:
    """All that were given up on, up to the newest checkpoint; of any source."""
    chain = [] if view.head == NO_CHECKPOINT else view.history.chain(view.head)
    return quarantined_in(chain)


def quarantine(view: StateView) -> pa.Table:
    """Rows of `QUARANTINE`."""
    rows = [{**file_of(s.split_id), **s.model_dump()} for s in quarantined_splits(view)]
    return pa.Table.from_pylist(rows, schema=QUARANTINE)
