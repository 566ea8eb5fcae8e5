"""Spark's offset: nothing but the name of a checkpoint.

Spark compares offsets as JSON text, so the order of the keys is part of the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from ...checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from ...errors import StateCorruptError, StateVersionError

OFFSET_VERSION = 1


def to_offset(ref: CheckpointRef) -> dict[str, int]:
    """The offset that names `ref`, keys in canonical order."""
    return {"checkpoint": ref.checkpoint, "epoch": ref.epoch, "version": OFFSET_VERSION}


def from_offset(offset: Any) -> CheckpointRef:
    """The checkpoint that an offset of any released version names.

    Raises:
        StateVersionError: the offset was written by a newer release.
        StateCorruptError: it is no offset of this source.
    """
    known = offset if isinstance(offset, Mapping) else {}
    version = known.get("version")
    if _is_count(version) and version > OFFSET_VERSION:
        raise StateVersionError(
            "Spark's offset log was written by a newer release of pyspark-sluice",
            "",
            f"offset version {version}",
            f"at most offset version {OFFSET_VERSION}",
            "Upgrade pyspark-sluice.",
        )
    checkpoint, epoch = known.get("checkpoint"), known.get("epoch")
    # Nothing read yet is checkpoint 0 of epoch 0; whatever was published has both.
    if version == OFFSET_VERSION and _is_count(checkpoint) and _is_count(epoch):
        ref = CheckpointRef(checkpoint, epoch)
        if ref == NO_CHECKPOINT or (ref.checkpoint and ref.epoch):
            return ref
    raise StateCorruptError(
        "Spark's offset log holds an offset that is not of this source",
        "",
        json.dumps(offset, default=repr)[:200],
        json.dumps(to_offset(CheckpointRef(1, 1))),
        "Use a new checkpointLocation for a query that had another source before.",
    )


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
