"""The mark of a batch in a table, and what its sink has to know of the query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class TableInput:
    """The input of a query, as its marks in a table record it."""

    input: Sequence[str] = ()
    """The loaded paths, absolute, without symbolic links."""

    state: str = ""
    """The place of the query's state."""

    @classmethod
    def parse(cls, text: str) -> TableInput:
        """The inverse of `str`."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Forked:
    """The query that a fork continues, up to there, and the table that it wrote to."""

    lineage: str
    batch: str
    """The text of the mark of its newest batch with data files."""

    table: str
    state: str
    """The place of its state."""

    checkpoint: int
    epoch: int


@dataclass(frozen=True)
class BatchOrigin:
    """The batch before a batch, the input of the query, and the query that a fork continues."""

    previous: BatchMark = NO_BATCH
    """The batch that has to be the query's newest in the table before this one."""

    reads: TableInput = TableInput()

    forked: Forked | None = None
    """A fork without a batch of its own has it: the table has to have that query's batches."""

    any_table: bool = False
    """The start says that the table need not have the earlier batches, or has those of a fork."""

    @classmethod
    def parse(cls, text: str) -> BatchOrigin:
        """The inverse of `str`."""
        previous, reads, forked, any_table = json.loads(text)
        query = Forked(**forked) if forked else None
        return cls(BatchMark.parse(previous), TableInput(**reads), query, any_table)

    def __str__(self) -> str:
        forked = self.forked and asdict(self.forked)
        parts = str(self.previous), asdict(self.reads), forked, self.any_table
        return json.dumps(parts, sort_keys=True)
