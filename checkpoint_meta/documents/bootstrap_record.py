"""The record that a tool has prepared a state directory for a new query.

It names a checkpoint of this directory after which a query begins whose Spark checkpoint is new. It
is written last and once: without it, what a tool has written is no seed. It stays, and says who has
made this state of what.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ..stores.contract import StateStore
from .checkpoint_ref import CheckpointIdentity, CheckpointRef
from .checksummed_json import parsed, with_checksum
from .layout import SEED


class Seed(BaseModel):
    """The document, exactly as on disk. Unknown keys are kept."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    format: Literal[1] = 1
    purpose: str
    """Which tool has made it: that of the epoch's claim."""

    checkpoint: int
    epoch: int
    lineage: str
    checkpoint_checksum: str
    """See `CheckpointIdentity`: what this state is, without the rest of the directory."""

    origin: Mapping[str, Any]
    """Where the state was taken from."""

    counts: Mapping[str, int]
    written: int
    """Wall clock, microseconds since the epoch."""

    host: str
    pid: int
    user: str

    @property
    def ref(self) -> CheckpointRef:
        """The checkpoint that a query begins after."""
        return CheckpointRef(self.checkpoint, self.epoch)

    @property
    def identity(self) -> CheckpointIdentity:
        """The same checkpoint with its lineage and checksum, so that no other one passes for it."""
        return CheckpointIdentity(self.ref, self.lineage, self.checkpoint_checksum)


def publish_seed(store: StateStore, seed: Seed) -> None:
    """Make it count: what it names is durable.

    Raises:
        FileExistsError: the directory has a seed already.
    """
    # Create-only: of two tools that prepare one directory the second one fails.
    store.publish(SEED, with_checksum(seed.model_dump(mode="json")))


def find_seed(store: StateStore) -> Seed | None:
    """The seed of a directory, if it has one.

    Raises:
        StateVersionError: written by a newer release.
        StateCorruptError: it is damaged.
    """
    where = f"{store.location}/{SEED}"
    try:
        data = store.read(SEED)
    except FileNotFoundError:
        return None
    remedy = "Restore the object from a copy, or create the state again in another directory."
    return parsed(Seed, data, where, "the record of how this state was created", remedy)
