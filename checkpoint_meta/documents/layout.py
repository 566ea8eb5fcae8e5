"""Where each kind of object lives below the state directory.

Not here: what is in them. `FORMAT.md` describes both.
"""

from __future__ import annotations

from collections.abc import Iterable

from .checkpoint_ref import CheckpointRef

FORMAT = "FORMAT"
EPOCHS = "epochs"
HEARTBEATS = "heartbeats"
CHECKPOINTS = "checkpoints"
BASES = "bases"
READERS = "readers"
ABANDONED = "abandoned"
INDEX = "index"
CLEANED = "cleaned"
SEED = "seed.json"
ORDERS = "orders"

ALIGNMENT = "_alignment"
"""Next to the state directories of a query's sources, not below one. No source has such a name."""


def epoch_object(epoch: int) -> str:
    """The claim of one coordinator incarnation."""
    return f"{EPOCHS}/{epoch:010d}.json"


def order_object(number: int) -> str:
    """What a person has asked of the query."""
    return f"{ORDERS}/{number:010d}.json"


def checkpoint_object(ref: CheckpointRef) -> str:
    """One checkpoint: a delta on its parent."""
    return f"{CHECKPOINTS}/{ref.name}.arrow"


def base_object(ref: CheckpointRef) -> str:
    """The whole state as of one checkpoint, so that a restore need not walk the chain to 1."""
    return f"{BASES}/{ref.name}.arrow"


def reader_directory(ref: CheckpointRef) -> str:
    """The reader commits of one checkpoint."""
    return f"{READERS}/{ref.name}"


def reader_object(ref: CheckpointRef, reader: int) -> str:
    """The commit of one reader for one checkpoint."""
    return f"{READERS}/{ref.name}/{reader:05d}.json"


def abandoned_directory(ref: CheckpointRef) -> str:
    """The readers of one checkpoint that an attempt was closed half-way for."""
    return f"{ABANDONED}/{ref.name}"


def abandoned_object(ref: CheckpointRef, reader: int) -> str:
    """The record that an attempt of one reader was closed half-way."""
    return f"{ABANDONED}/{ref.name}/{reader:05d}.json"


def numbers_in(leaves: Iterable[str]) -> list[int]:
    """The numbers that names in a directory mean, ascending; other names are skipped."""
    stems = [leaf.removesuffix(".json") for leaf in leaves]
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())
