"""Chains of checkpoints as the ledger gets them, of what a test says."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachment, Attachments
from pyspark_sluice.checkpoint_meta.documents.file_columns import changes_of, ranges_of
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator.files.ledger.file_state import FileState, FileStateSerializer, fold
from pyspark_sluice.enumerator.large_state import StateDocument


def document(
    checkpoint: int,
    state: FileState | Sequence[FileSplit],
    assigned: Sequence[FileSplit] = (),
    attachments: Sequence[Attachment] = (),
) -> StateDocument:
    """What a checkpoint says that became pending in it, and that it assigned."""
    if not isinstance(state, FileState):
        state = FileState([changes_of(ranges_of(state), known=True)])
    rows = FileStateSerializer().serialize_all(state)
    return StateDocument(checkpoint, checkpoint, 1, rows, 1, [ranges_of(assigned)], attachments)


def folded(
    chain: Sequence[StateDocument], attachments: Attachments | None = None, *, details: bool = False
) -> FileState:
    """The state after a chain."""
    return fold(chain, attachments or Attachments(MemoryStateStore(), 1), details=details)
