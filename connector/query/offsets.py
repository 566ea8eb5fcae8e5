"""Spark's offset: nothing but the identity of a checkpoint.

Spark compares offsets as JSON text, so the order of the keys is part of the format. What an offset
names is compared with what is in the state directory before anything is done with it: Spark knows
the sources of a query by their order alone, and a directory may have been copied or restored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from ...checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    NO_IDENTITY,
    CheckpointIdentity,
    CheckpointRef,
)
from ...checkpoint_meta.history import CheckpointHistory
from ...errors import StateCorruptError, StateVersionError

OFFSET_VERSION = 1


def to_offset(identity: CheckpointIdentity) -> dict[str, int | str]:
    """The offset that names a checkpoint, keys in canonical order."""
    return {
        "checkpoint": identity.ref.checkpoint,
        "checksum": identity.checksum,
        "epoch": identity.ref.epoch,
        "lineage": identity.lineage,
        "version": OFFSET_VERSION,
    }


def from_offset(offset: Any) -> CheckpointIdentity:
    """The checkpoint that an offset of any released version names.

    Raises:
        StateVersionError: the offset was written by a newer release.
        StateCorruptError: it is no offset of this source.
    """
    fields = offset if isinstance(offset, Mapping) else {}
    # First of all: a newer release may have changed what the other keys mean.
    version = fields.get("version")
    if _is_count(version) and version > OFFSET_VERSION:
        raise StateVersionError(
            "Spark's offset log was written by a newer release of pyspark-sluice",
            "",
            f"offset version {version}",
            f"at most offset version {OFFSET_VERSION}",
            "Upgrade pyspark-sluice.",
        )
    checkpoint, epoch = fields.get("checkpoint"), fields.get("epoch")
    lineage, checksum = fields.get("lineage"), fields.get("checksum")
    if (
        version == OFFSET_VERSION
        and _is_count(checkpoint)
        and _is_count(epoch)
        and isinstance(lineage, str)
        and isinstance(checksum, str)
    ):
        identity = CheckpointIdentity(CheckpointRef(checkpoint, epoch), lineage, checksum)
        # An offset before the first batch has none of these; a published one has all of them.
        if identity == NO_IDENTITY or (checkpoint and epoch and lineage and checksum):
            return identity
    raise StateCorruptError(
        "Spark's offset log has an offset of another source",
        "",
        json.dumps(offset, default=repr)[:200],
        json.dumps(to_offset(CheckpointIdentity(CheckpointRef(1, 1), "0" * 16, "0" * 16))),
        "Use a new checkpointLocation for a query that had another source before.",
    )


def _is_count(value: Any) -> TypeGuard[int]:
    # JSON's `true` would pass as 1.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class Offsets:
    """The offsets of one query, checked against the checkpoints that they name."""

    def __init__(self, history: CheckpointHistory) -> None:
        """`history` keeps the newest in memory: an idle query asks many times a second."""
        self._history = history

    def ref(self, offset: Any) -> CheckpointRef:
        """The checkpoint that Spark names.

        Raises:
            StateError: it is of no version that is known, or not there, or of another query or
                copy of the state.
        """
        identity = from_offset(offset)
        # The offset before the first batch names no state, so there is nothing to compare.
        if identity != NO_IDENTITY:
            self._history.check_identity(identity, "Spark's offset log")
        return identity.ref

    def offset(self, ref: CheckpointRef) -> dict[str, Any]:
        """Return what Spark writes down for a checkpoint that is durable."""
        return to_offset(NO_IDENTITY if ref == NO_CHECKPOINT else self._history.load(ref).identity)
