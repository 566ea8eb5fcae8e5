"""Lets old state go, without ever touching what a chain that is alive can need.

Not here: when that happens (the coordinator, in the background).
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import StateCorruptError, StateMissingError
from .history import CheckpointHistory
from .layout import ABANDONED, READERS, base_object, checkpoint_object
from .reference import NO_CHECKPOINT, CheckpointRef, refs_in
from .state_store import StateStore


class Retention:
    """Deletes for one incarnation of the coordinator.

    What a newer epoch has written is never deleted. What an older one has written may be part of
    a newer one's chain as well; a newer one that Spark knows of goes on from what this one has
    handed to Spark, and thus from something that is retained. `check_still_ours` is asked before
    each deletion all the same: a superseded coordinator that begins to delete stops at once.
    """

    def __init__(
        self,
        store: StateStore,
        history: CheckpointHistory,
        epoch: int,
        check_still_ours: Callable[[], None],
    ) -> None:
        self._store = store
        self._history = history
        self._epoch = epoch
        self._check_still_ours = check_still_ours

    def prune(self, head: CheckpointRef, retained: int) -> None:
        """Delete what no restore of `head` or of the `retained` checkpoints before it can need.

        Only what lies below the newest base on their chain goes, and older bases last, so a crash
        in the middle leaves every retained chain whole. A base of a dead incarnation is on no
        chain and never counts, nor does one that cannot be read; ids are not counted either,
        since an aborted checkpoint leaves a gap.

        Raises:
            FencedError: by way of `check_still_ours`; what was to go stays.
        """
        oldest, floor = self._oldest_and_floor(head, retained)
        if oldest is None or floor is None:
            return
        for ref in self._history.checkpoints():
            if ref.checkpoint <= floor.checkpoint and ref.checkpoint < oldest.checkpoint:
                self._delete(checkpoint_object(ref), ref)
        for directory in (READERS, ABANDONED):
            for ref in refs_in(self._store.list(directory)):
                if ref.checkpoint < oldest.checkpoint:
                    self._delete(f"{directory}/{ref.name}", ref)
        for ref in self._history.bases():
            if ref.checkpoint <= floor.checkpoint and ref != floor:
                self._delete(base_object(ref), ref)

    def _delete(self, name: str, ref: CheckpointRef) -> None:
        if ref.epoch <= self._epoch:
            self._check_still_ours()
            self._store.delete(name)

    def _oldest_and_floor(
        self, head: CheckpointRef, retained: int
    ) -> tuple[CheckpointRef | None, CheckpointRef | None]:
        bases = set(self._history.bases())
        ref, oldest = head, None
        while ref != NO_CHECKPOINT:
            if retained == 0:
                oldest = ref
            retained -= 1
            if oldest is not None and ref in bases and self._is_whole(ref):
                return oldest, ref
            try:
                ref = self._history.parent(ref)
            except StateMissingError:
                break  # Pruned already, when fewer were to be retained or by the same floor.
        return oldest, None

    def _is_whole(self, ref: CheckpointRef) -> bool:
        # What lies below it goes on the strength of this object alone.
        try:
            self._history.read_base(ref)
        except (StateCorruptError, StateMissingError):
            return False
        return True
