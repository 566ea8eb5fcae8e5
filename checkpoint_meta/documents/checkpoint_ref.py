"""The name of a checkpoint, which is all that Spark's offset carries.

Not here: the checkpoint's content (`checkpoint.py`) and Spark's offset dictionary (connector).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class CheckpointRef:
    """A checkpoint by id *and* epoch, so that an orphan of a dead incarnation is never mistaken.

    Ids grow along a chain, usually by one; an id is never used twice within an epoch.
    """

    checkpoint: int
    epoch: int

    @property
    def name(self) -> str:
        """Sorts as text in the order of (checkpoint, epoch)."""
        return f"{self.checkpoint:010d}-{self.epoch:010d}"

    @classmethod
    def from_name(cls, name: str) -> CheckpointRef:
        """The inverse of `name`.

        Raises:
            ValueError: `name` is not of that form.
        """
        checkpoint, epoch = name.split("-")
        return cls(int(checkpoint), int(epoch))

    def __str__(self) -> str:
        return f"checkpoint {self.checkpoint} of epoch {self.epoch}"


def refs_in(leaves: Iterable[str]) -> list[CheckpointRef]:
    """The checkpoints that names in a directory stand for, oldest first; other names are skipped.

    What a copy or a mount leaves lying about must not stop a restart.
    """
    found = []
    for leaf in leaves:
        with contextlib.suppress(ValueError):
            found.append(CheckpointRef.from_name(leaf.split(".")[0]))
    return sorted(found)


NO_CHECKPOINT = CheckpointRef(0, 0)
"""Before the first checkpoint: nothing has been read. Flink's NO_CHECKPOINT."""
