"""How far the files of completed checkpoints have been cleaned up, durably.

A mark says that everything which the checkpoints up to one have read was taken out of the way, but
for what it lists itself. Nothing is lost if marks are: what was done is found done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import StateCorruptError
from ..stores.contract import StateStore
from .checkpoint_ref import CheckpointRef
from .checksummed_json import OfCheckpoint
from .layout import CLEANED, NumberedObjects

_KEPT = 2
"""The newest marks, so that a damaged one costs little."""


class CleanupMark(OfCheckpoint):
    """One mark: everything up to its checkpoint is done."""

    noun = "a mark of what was cleaned up"

    lineage: str
    """That of the checkpoint: what another chain has cleaned up says nothing of this one."""

    state: Mapping[str, Any]
    """The cleaner's own: what is not done yet, and figures."""


class CleanupMarks:
    """The marks of a state directory, written by one incarnation of the coordinator."""

    def __init__(self, store: StateStore, epoch: int) -> None:
        self._store = store
        self._objects = NumberedObjects(store, CLEANED, epoch, _KEPT)

    def found(self) -> Sequence[CleanupMark]:
        """Return those that can be read, the newest first.

        Raises:
            StateVersionError: written by a newer release.
        """
        marks = []
        # Names sort by epoch, then by number: the newest incarnation comes first.
        for leaf in reversed(self._store.list(CLEANED)):
            try:
                marks.append(CleanupMark.read(self._store, f"{CLEANED}/{leaf}"))
            except (FileNotFoundError, StateCorruptError):
                continue  # The one before it says less, and everything is repeated from there.
        return marks

    def newest(self, lineage: str) -> int:
        """Id of the checkpoint up to which all is done on a chain; 0 if nothing was cleaned up."""
        return max((m.checkpoint for m in self.found() if m.lineage == lineage), default=0)

    def publish(self, ref: CheckpointRef, lineage: str, state: Mapping[str, Any]) -> None:
        """Everything up to `ref` is done, but for what `state` says; older marks go."""
        # Written after the files are gone: after a crash before it they are looked for again.
        header = {"checkpoint": ref.checkpoint, "epoch": ref.epoch, "lineage": lineage}
        self._objects.publish(CleanupMark(**header, state=state).to_bytes())
