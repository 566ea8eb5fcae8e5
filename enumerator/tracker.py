"""Which split was assigned to which reader since which checkpoint.

Flink's SplitAssignmentTracker. Not durable: every checkpoint file lists what it assigned, so a
restored coordinator starts with an empty tracker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

SplitT = TypeVar("SplitT")


class SplitAssignmentTracker(Generic[SplitT]):
    """Assignments by the checkpoint that first contains them.

    Not thread-safe: the coordinator's lock orders all calls.
    """

    def __init__(self) -> None:
        self._uncheckpointed: dict[int, list[SplitT]] = {}
        self._by_checkpoint: dict[int, dict[int, list[SplitT]]] = {}

    def record(self, assignment: Mapping[int, Sequence[SplitT]]) -> None:
        """Note an assignment: reader -> splits, in order. Call before sending it."""
        for reader, splits in assignment.items():
            self._uncheckpointed.setdefault(reader, []).extend(splits)

    def on_checkpoint(self, checkpoint_id: int) -> None:
        """The cut: what was recorded since the one before belongs to `checkpoint_id`."""
        self._by_checkpoint[checkpoint_id] = self._uncheckpointed
        self._uncheckpointed = {}

    def reopen(self, checkpoint_id: int) -> None:
        """The checkpoint was aborted and its splits will go into the next one instead."""
        later, self._uncheckpointed = self._uncheckpointed, {}
        self.record(self._by_checkpoint.pop(checkpoint_id, {}))
        self.record(later)

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Forget this checkpoint and all before it.

        An aborted checkpoint's splits stay, unless `reopen` moves them on: they are still only
        "assigned after the last completed one".
        """
        for known in [known for known in self._by_checkpoint if known <= checkpoint_id]:
            del self._by_checkpoint[known]

    def get_and_remove_uncheckpointed(self, reader: int, restored_id: int) -> list[SplitT]:
        """Take out everything assigned to `reader` after checkpoint `restored_id`, in order."""
        taken: list[SplitT] = []
        for known in sorted(self._by_checkpoint):
            if known > restored_id:
                taken.extend(self._by_checkpoint[known].pop(reader, []))
        taken.extend(self._uncheckpointed.pop(reader, []))
        return taken

    @property
    def uncheckpointed(self) -> Mapping[int, Sequence[SplitT]]:
        """Assigned since the last cut."""
        return self._uncheckpointed

    @property
    def by_checkpoint(self) -> Mapping[int, Mapping[int, Sequence[SplitT]]]:
        """Checkpoint id -> what it assigned, for checkpoints not known to be complete."""
        return self._by_checkpoint
