"""What a state directory says of files, for views and tools: nothing is claimed or changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.checkpoint import Checkpoint, QuarantinedSplit, quarantined_in
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.index.fingerprints import SeenKeys
from ...checkpoint_meta.index.run import read_files
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.coordinator.restore import restore
from ...enumerator.files.ledger.file_state import FileState, pending_after
from ...enumerator.files.ledger_source import OfflineFileSource
from ...enumerator.large_state import StateDocument


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
