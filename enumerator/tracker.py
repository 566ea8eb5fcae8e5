"""Which splits were assigned to which reader since which checkpoint.

Flink's SplitAssignmentTracker. What it holds since the last cut is what the next checkpoint
assigns; what it holds for a checkpoint comes back if that one is aborted. Not durable: every
checkpoint file lists what it assigned, so a restored coordinator starts with an empty tracker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

SplitsT = TypeVar("SplitsT")


class SplitAssignmentTracker(Generic[SplitsT]):
    """Assignments by the checkpoint that first contains them.

    Not thread-safe: the coordinator's lock orders all calls.
    """

    def __init__(self) -> None:
        self._uncheckpointed: dict[int, list[SplitsT]] = {}
        self._by_checkpoint: dict[int, dict[int, list[SplitsT]]] = {}

    def record(self, assignment: Mapping[int, Sequence[SplitsT]]) -> None:
        """Note an assignment: reader -> splits, in order."""
        for reader, splits in assignment.items():
            self._uncheckpointed.setdefault(reader, []).extend(splits)

    def on_checkpoint(self, checkpoint_id: int) -> Mapping[int, Sequence[SplitsT]]:
        """The cut: what was recorded since the one before belongs to `checkpoint_id`."""
        assigned = self._by_checkpoint[checkpoint_id] = self._uncheckpointed
        self._uncheckpointed = {}
        return assigned

    def reopen(self, checkpoint_id: int) -> None:
        """The checkpoint was aborted and its splits will go into the next one instead."""
        later, self._uncheckpointed = self._uncheckpointed, {}
        self.record(self._by_checkpoint.pop(checkpoint_id, {}))
        self.record(later)

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Forget this checkpoint and all before it."""
        for known in [known for known in self._by_checkpoint if known <= checkpoint_id]:
            del self._by_checkpoint[known]

    @property
    def uncheckpointed(self) -> Mapping[int, Sequence[SplitsT]]:
        """Assigned since the last cut."""
        return self._uncheckpointed

    @property
    def by_checkpoint(self) -> Mapping[int, Mapping[int, Sequence[SplitsT]]]:
        """Checkpoint id -> what it assigned, for checkpoints not known to be complete."""
        return self._by_checkpoint
