"""The assignment "go on with your split": what a reader's own commit leaves of it.

It is cut into a checkpoint while the reader is still reading, so where it starts is not known yet.
The first commit of that reader for the earlier checkpoint decides it, for ever: what is unfinished
there is what this assigns. If nothing is left unfinished, it assigns nothing.

Not here: who sends one (enumerator) and who reads it (reader).
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from .checkpoint_ref import CheckpointRef


class Continuation(BaseModel):
    """One continuation, exactly as in a checkpoint's header."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    split: str
    """Id of the split that was assigned first; a continuation of a continuation keeps it."""

    checkpoint: int
    epoch: int
    index: int
    """Where the earlier work is in the same reader's part of that checkpoint: splits come first,
    then continuations."""

    bytes: int | None = None
    """At most so many bytes; None for no bound."""

    rows: int | None = None
    """At most so many rows; None for no bound."""

    stop: Any = None
    """Any JSON value that tells the source's reader where to stop."""

    @property
    def origin(self) -> CheckpointRef:
        """The checkpoint whose commit says where this starts."""
        return CheckpointRef(self.checkpoint, self.epoch)
