"""The mark of a batch in a table: which checkpoint its files belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .checkpoint_ref import CheckpointIdentity

_DIGITS: Final = 15
"""Digits of the checksum in a mark: Delta stores them as a signed number of 64 bits."""


@dataclass(frozen=True)
class BatchMark:
    """A batch with data files, named by its newest checkpoint that has any.

    The number alone exists twice after a restore from a backup; the digits of the checkpoint's
    checksum tell the two apart.
    """

    checkpoint: int = 0
    checksum: str = ""
    """Empty if the checkpoints up to this one are not retained."""

    @classmethod
    def of(cls, checkpoint: CheckpointIdentity) -> BatchMark:
        """The mark of a checkpoint."""
        return cls(checkpoint.ref.checkpoint, checkpoint.checksum[:_DIGITS])

    @classmethod
    def parse(cls, text: str) -> BatchMark:
        """The inverse of `str`."""
        checkpoint, _, checksum = text.partition("-")
        return cls(int(checkpoint), checksum)

    def __str__(self) -> str:
        return f"{self.checkpoint}-{self.checksum}"


NO_BATCH = BatchMark()
"""Before the first batch with data files."""
