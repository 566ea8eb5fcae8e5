"""Where each kind of object lives below the state directory, and which of a folder stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..stores.contract import StateStore, delete_permitted
from .checkpoint_ref import CheckpointIdentity, CheckpointRef

FORMAT = "FORMAT"
EPOCHS = "epochs"
HEARTBEATS = "heartbeats"
CHECKPOINTS = "checkpoints"
BASES = "bases"
READERS = "readers"
ABANDONED = "abandoned"
INDEX = "index"
CLEANED = "cleaned"
REREADS = "rereads"
SEED = "seed.json"
ORDERS = "orders"
RUNS = "runs"
LISTINGS = "listings"
SCHEMAS = "schemas"
ENDS = "ends"
ROWS = "rows"

ALIGNMENT = "_alignment"
"""Next to the state directories of a query's sources, not below one. No source has such a name."""


def numbered(folder: str, number: int) -> str:
    """Return the name of a claim, an order, a schema or a record: one of a folder of its kind."""
    # Padded, so that names sort as text in the order of their numbers.
    return f"{folder}/{number:010d}.json"


def checkpoint_object(ref: CheckpointRef) -> str:
    """One checkpoint: a delta on its parent."""
    return f"{CHECKPOINTS}/{ref.name}.arrow"


def base_object(ref: CheckpointRef) -> str:
    """The whole state as of one checkpoint, so that a restore need not walk the chain to 1."""
    return f"{BASES}/{ref.name}.arrow"


def reader_directory(checkpoint: CheckpointIdentity) -> str:
    """The reader commits of one checkpoint."""
    return f"{READERS}/{checkpoint.name}"


def reader_object(checkpoint: CheckpointIdentity, reader: int, reread: int = 0) -> str:
    """The commit of one reader for one checkpoint.

    `reread` is the order by which the checkpoint is read again; 0 for the first time.
    """
    stem = f"{reader:05d}.r{reread}" if reread else f"{reader:05d}"
    return f"{reader_directory(checkpoint)}/{stem}.json"


def order_of(leaf: str) -> int:
    """The order under which a commit of this name below `reader_directory` was made; else 0."""
    order = leaf.partition(".")[2].partition(".")[0]
    return int(order[1:]) if order[:1] == "r" and order[1:].isdecimal() else 0


def reread_object(ref: CheckpointRef, order: int) -> str:
    """Says that a checkpoint is read again by an order: earlier commits no longer count."""
    return f"{REREADS}/{ref.name}.{order:010d}.json"


def abandoned_directory(checkpoint: CheckpointIdentity) -> str:
    """The readers of one checkpoint that an attempt was closed half-way for."""
    return f"{ABANDONED}/{checkpoint.name}"


def abandoned_object(checkpoint: CheckpointIdentity, reader: int) -> str:
    """The record that an attempt of one reader was closed half-way."""
    return f"{abandoned_directory(checkpoint)}/{reader:05d}.json"


def numbers_in(leaves: Iterable[str]) -> list[int]:
    """The numbers that names in a directory mean, ascending; other names are skipped."""
    stems = [leaf.removesuffix(".json") for leaf in leaves]
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())


class NumberedObjects:
    """One folder of a state directory, written to by the incarnation of `epoch`."""

    def __init__(self, store: StateStore, folder: str, epoch: int, kept: int) -> None:
        """`kept` is how many of the newest stay, those of earlier incarnations included."""
        self._store: Final = store
        self._folder: Final = folder
        self._epoch: Final = epoch
        self._kept: Final = kept
        self._number = 0

    def publish(self, data: bytes) -> None:
        """Write the next one; those that are too old then go."""
        self._number += 1
        leaf = f"{self._epoch:010d}-{self._number:010d}.json"
        self._store.publish(f"{self._folder}/{leaf}", data)
        # What a newer incarnation has written is not ours to delete. Publishing first means that a
        # crash leaves one object too many, never none.
        until = [name for name in self._store.list(self._folder) if name <= leaf]
        # The next time all of them are tried again.
        delete_permitted(self._store, [f"{self._folder}/{name}" for name in until[: -self._kept]])
