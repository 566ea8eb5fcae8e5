"""The record that a tool has prepared a state directory for a new query.

It names a checkpoint of this directory after which a query begins whose Spark checkpoint is new. It
is written last and once: without it, what a tool has written is no seed. It stays, and says who has
made this state of what.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..stores.contract import StateStore
from .checkpoint_ref import CheckpointIdentity
from .checksummed_json import OfCheckpoint
from .layout import SEED


class Seed(OfCheckpoint):
    """The record; a query begins after its checkpoint."""

    noun = "the record of how this state was created"
    remedy = "Restore the object from a copy, or create the state again in another directory."

    purpose: str
    """Which tool has made it: that of the epoch's claim."""

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
    def identity(self) -> CheckpointIdentity:
        """The same checkpoint with its lineage and checksum, so that no other one passes for it."""
        return CheckpointIdentity(self.ref, self.lineage, self.checkpoint_checksum)


def publish_seed(store: StateStore, seed: Seed) -> None:
    """Make it count: what it names is durable.

    Raises:
        FileExistsError: the directory has a seed already.
    """
    # Create-only: of two tools that prepare one directory the second one fails.
    store.publish(SEED, seed.to_bytes())


def find_seed(store: StateStore) -> Seed | None:
    """The seed of a directory, if it has one.

    Raises:
        StateVersionError: written by a newer release.
        StateCorruptError: it is damaged.
    """
    try:
        return Seed.read(store, SEED)
    except FileNotFoundError:
        return None
