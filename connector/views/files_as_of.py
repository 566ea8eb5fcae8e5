"""What a state directory says of files, for views and tools: nothing is claimed or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from ...checkpoint_meta.documents.attachments import Attachments
from ...checkpoint_meta.documents.checkpoint import QuarantinedSplit, quarantined_in
from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...checkpoint_meta.history import CheckpointHistory
from ...checkpoint_meta.index.run import read_files
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.files.ledger.file_state import FileState, count_seen, fold, pending_after
from ...enumerator.large_state import StateDocument
from ...errors import StateCorruptError, StateMissingError

T = TypeVar("T")


class FilesAsOf:
    """The files that the state knew of as of one checkpoint."""

    def __init__(self, store: StateStore, ref: CheckpointRef, *, details: bool = False) -> None:
        """Reads the chain of `ref`; raises what a restore would.

        With `details` newer versions of files that are in no run yet are reported, too.

        Raises:
            StateError: a link of the chain is missing, damaged, or newer than this release.
        """
        self._history = CheckpointHistory(store)
        # Nothing is published: the epoch does not matter.
        self._attachments = Attachments(store, 0)
        self._ref = ref
        self._details = details
        self._read_chain()

    def _read_chain(self) -> None:
        # A query that has planned no batch yet has no chain.
        self._chain = [] if self._ref == NO_CHECKPOINT else self._history.chain(self._ref)
        self._documents = [StateDocument.of(checkpoint) for checkpoint in self._chain]

    def _without_unsound_bases(self, look: Callable[[], T]) -> T:
        """As a restore does it: a base of which an object is gone or damaged is done without."""
        while True:
            try:
                return look()
            except (StateMissingError, StateCorruptError) as error:
                if not self._chain or not self._chain[0].header.attachments:
                    raise
                self._history.skip_base(self._chain[0].ref, error)
                self._read_chain()

    @cached_property
    def _state(self) -> FileState:
        if not self._chain:
            return FileState()
        return self._without_unsound_bases(
            lambda: fold(self._documents, self._attachments, details=self._details)
        )

    def count(self) -> int:
        """Files ever seen, without a look at their names.

        Raises:
            StateError: what is needed of the state is gone or damaged.
        """
        return self._without_unsound_bases(lambda: count_seen(self._documents, self._attachments))

    def quarantined(self) -> Sequence[QuarantinedSplit]:
        """Splits that were given up on, up to this checkpoint."""
        return quarantined_in(self._chain)

    def pending(self) -> Sequence[pa.RecordBatch]:
        """What was found and not assigned: rows of `RANGES`."""
        return pending_after(self._documents)

    def seen(self) -> Iterator[pa.RecordBatch]:
        """Every file ever seen: rows of `SEEN_FILES`, the oldest runs first.

        A file that changed comes once for each version, if versions mattered.

        Raises:
            StateError: the names in a run are gone or damaged.
        """
        yield from files_known(self._state, self._attachments)


def files_known(state: FileState, attachments: Attachments) -> Iterator[pa.RecordBatch]:
    """Every version of a file that a state knows, the oldest first: rows of `SEEN_FILES`.

    Raises:
        StateError: the names in a run are gone or damaged.
    """
    for run in state.runs:
        yield from read_files(attachments.read(run.attachments[1]))
    for tail in state.tails:
        for piece in tail.pieces:
            yield piece.rows()
