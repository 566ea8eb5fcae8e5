"""Spark's offset: nothing but the name of a checkpoint.

Spark compares offsets as JSON text, so the order of the keys is part of the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checkpoint_meta.reference import CheckpointRef
from ..errors import StateCorruptError, StateVersionError

OFFSET_VERSION = 1


def to_offset(ref: CheckpointRef) -> dict[str, int]:
    """The offset that names `ref`, keys in canonical order."""
    return {"checkpoint": ref.checkpoint, "epoch": ref.epoch, "version": OFFSET_VERSION}


def from_offset(offset: Mapping[str, Any]) -> CheckpointRef:
    """The checkpoint that an offset of any released version names.

    Raises:
        StateVersionError: the offset was written by a newer release.
        StateCorruptError: it is no offset of this source.
    """
    version = offset.get("version")
    if isinstance(version, int) and version > OFFSET_VERSION:
        raise StateVersionError(
            "Spark's offset log was written by a newer release of pyspark-sluice",
            "",
            f"offset version {version}",
            f"at most offset version {OFFSET_VERSION}",
            "Upgrade pyspark-sluice.",
        )
    try:
        return CheckpointRef(int(offset["checkpoint"]), int(offset["epoch"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StateCorruptError(
            "Spark's offset log holds an offset that is not of this source",
            "",
            repr(dict(offset))[:200],
            repr(to_offset(CheckpointRef(1, 1))),
            "Use a new checkpointLocation for a query that had another source before.",
        ) from error
