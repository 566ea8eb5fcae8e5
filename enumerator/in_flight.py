"""Which checkpoints are under way: what Spark has completed, what it runs, what waits for it.

At most two are in flight. Checkpoint n runs; n+1 may be cut and made durable meanwhile (ahead), so
that Spark gets it from memory. Not more: what readers say of n belongs into n+2, so n+2 cannot be
cut before n is complete and counted.

Not here: when to cut ahead (`open_coordinator.py`), the cut itself (`cut.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..checkpoint_meta.checkpoint import Checkpoint
from ..checkpoint_meta.reference import CheckpointRef
from ..errors import ProtocolError
from .room import BatchRoom


@dataclass(frozen=True)
class CutAhead:
    """A checkpoint that has been cut and not been handed out yet."""

    checkpoint: Checkpoint
    room: BatchRoom
    """What it took of the limits, for the case that it is taken back."""


class InFlight:
    """The sequence complete, running, ahead. No input or output; under the coordinator's lock."""

    def __init__(
        self, epoch: int, complete: CheckpointRef, running: CheckpointRef | None = None
    ) -> None:
        """`running` is a checkpoint that Spark replays, handed out by a dead incarnation."""
        self.epoch = epoch
        self.complete = complete
        """Spark has read this checkpoint and all before it."""
        self.running = running
        """Handed out after `complete`; Spark may be reading it."""
        self.ahead: CutAhead | None = None
        """Cut after the newest of these, and not handed out."""
        self.is_published = False
        """True once `ahead` is durable and may be handed out."""
        self._last_id = (running or complete).checkpoint

    @property
    def newest(self) -> CheckpointRef:
        """The parent of the next cut."""
        return self.running or self.complete

    def new_ref(self) -> CheckpointRef:
        """A name for the next cut; never the same twice, whatever became of the last."""
        self._last_id += 1
        return CheckpointRef(self._last_id, self.epoch)

    def advance(self, start: CheckpointRef, location: str) -> bool:
        """Spark asks for what follows `start`; True if that is news, which completes it.

        Raises:
            ProtocolError: `start` is neither complete nor running.
        """
        if start == self.complete:
            return False
        if start != self.running:
            raise ProtocolError(
                "Spark asks for what follows a checkpoint that is not the last one",
                location,
                str(start),
                str(self.newest),
                "Restart the query; if it happens again, please report it.",
            )
        self.complete, self.running = start, None
        return True

    def cut(self, ahead: CutAhead) -> None:
        """A checkpoint was cut after `newest`; nothing is planned until it is handed out."""
        self.ahead, self.is_published = ahead, False

    def taken_back(self) -> None:
        """What was cut is an orphan now, whether it was published or not."""
        self.ahead, self.is_published = None, False

    def hand_out(self) -> CheckpointRef:
        """Spark gets what was cut and published: it runs."""
        assert self.ahead is not None
        assert self.running is None
        assert self.is_published
        self.running = self.ahead.checkpoint.ref
        self.taken_back()
        return self.running
