"""What a source adds to the contract whose state is too large to be folded row by row.

A source that does nothing of this has its chains folded by `EnumeratorSource.advance_state`, and
its bases written from what they fold to. One that overrides `restore_state` gets the columns of the
chain as they are; one whose enumerator overrides `freeze_state` has its bases written from what the
enumerator keeps in memory anyway, with objects next to them (`Attachments`) that are not written
again each time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..checkpoint_meta.documents.attachments import Attachment, Attachments
from ..checkpoint_meta.documents.checkpoint import Checkpoint
from ..checkpoint_meta.documents.checkpoint_ref import NO_IDENTITY, CheckpointIdentity


@dataclass(frozen=True, slots=True)
class StateDocument:
    """A source's state in one checkpoint or base of a chain, in its own columns."""

    checkpoint: int
    created: int
    """Microseconds since the epoch, for people."""

    state_version: int
    state: Sequence[pa.RecordBatch]
    """What `serialize_all` of the state made: at least one batch."""

    split_version: int
    assigned: Sequence[pa.RecordBatch]
    """Splits that this checkpoint assigned."""

    attachments: Sequence[Attachment] = ()
    """Objects that belong to the state, in the order of `FrozenState.write`."""

    identity: CheckpointIdentity = NO_IDENTITY
    """The checkpoint whose state it is; `NO_IDENTITY` for a part of a state."""

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> StateDocument:
        """Return what a checkpoint or base says of the source's state."""
        header, schema = checkpoint.header, checkpoint.state_schema
        nothing = pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)
        return cls(
            header.checkpoint,
            header.created,
            header.state_version,
            # A snapshot of nothing has no rows in the file, but it is still a snapshot.
            checkpoint.state or [nothing],
            header.split_version,
            [splits for _, splits in checkpoint.assigned],
            header.attachments,
            checkpoint.identity,
        )


@dataclass(frozen=True, slots=True)
class WrittenState:
    """A whole state, durable but for the base that is to hold the rows."""

    rows: Sequence[pa.RecordBatch]
    """As of the state's serializer; at least one batch."""

    attachments: Sequence[Attachment] = ()


class FrozenState(ABC):
    """A whole state as of one cut, without later changes."""

    @abstractmethod
    def write(self, attachments: Attachments) -> WrittenState:
        """Publish what the rows of a base do not hold; on a worker thread, without any lock.

        Called once at most, soon after the cut or never, and never while another one or
        `SplitEnumerator.improve_state` runs.
        """
