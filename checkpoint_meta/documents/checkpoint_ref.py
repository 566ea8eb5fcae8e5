"""The name of a checkpoint, and what tells it from others of that name."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


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

    @property
    def by_epoch(self) -> tuple[int, int]:
        """Sorts by epoch first: a chain that was begun later may not have come as far."""
        return self.epoch, self.checkpoint

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


@dataclass(frozen=True, slots=True)
class CheckpointIdentity:
    """A checkpoint that no other can be taken for: what Spark's offset carries.

    Copies and backups of a directory have checkpoints of the same names. The lineage tells the
    beginnings of two queries apart, the checksum two copies that have gone their own ways.
    """

    ref: CheckpointRef
    lineage: str
    """A random word that the beginning of its chain has drawn."""

    checksum: str
    """The first `CHECKSUM_DIGITS` digits of the checkpoint's checksum."""

    @property
    def name(self) -> str:
        """Names the folders of what its readers write; sorts like the name of `ref`."""
        return f"{self.ref.name}-{self.checksum}"


CHECKSUM_DIGITS: Final = 16


def refs_in(leaves: Iterable[str]) -> list[CheckpointRef]:
    """The checkpoints that names in a directory mean, oldest first; other names are skipped.

    What a copy or a mount leaves lying about must not stop a restart.
    """
    refs = []
    for leaf in leaves:
        with contextlib.suppress(ValueError):
            # Checkpoints and bases have a suffix, directories of reader commits have none.
            refs.append(CheckpointRef.from_name(leaf.split(".")[0]))
    return sorted(refs)


def identities_in(leaves: Iterable[str]) -> list[CheckpointIdentity]:
    """The checkpoints that names of folders mean, oldest first, without their lineage.

    Other names are skipped. The `name` of each is that of its folder.
    """
    identities = []
    for leaf in leaves:
        name, _, checksum = leaf.rpartition("-")
        identities += [CheckpointIdentity(ref, "", checksum) for ref in refs_in([name])]
    return sorted(identities, key=lambda identity: (identity.ref, identity.checksum))


NO_CHECKPOINT = CheckpointRef(0, 0)
"""Before the first checkpoint: nothing has been read. Flink's NO_CHECKPOINT."""


def new_lineage() -> CheckpointIdentity:
    """Return what the first checkpoint of a query begins with: nothing but a lineage of its own."""
    # 16 digits, which is what names of data files have room for (`written_file.py`).
    return CheckpointIdentity(NO_CHECKPOINT, secrets.token_hex(8), "")


NO_IDENTITY = CheckpointIdentity(NO_CHECKPOINT, "", "")
"""The identity of `NO_CHECKPOINT`: the beginning of every query, which names no state."""
