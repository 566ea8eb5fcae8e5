"""What shapes the rows of a split besides its bytes: the options of reading, and the schema.

Written into reader commits, so that whoever reads the same splits again gives the same rows,
whatever the options are by then. Not here: following a commit (`reader/task.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...reader.files.evolution.evolution_options import SchemaOptions
from ...reader.files.options import ReaderOptions
from ..options.model import SluiceOptions

_NOT_SHAPING = {"storage_options", "batch_bytes"}
"""Secrets are never written down; how much is decoded at a time changes no row."""

_OF_THE_SCHEMA = set(SchemaOptions.model_fields) - {"schema_evolution_mode"}
"""They say how the schema comes about, which has a digest of its own."""

_SHAPING = set(ReaderOptions.model_fields) - _NOT_SHAPING - _OF_THE_SCHEMA


def shape_of(options: SluiceOptions, schema: pa.Schema) -> dict[str, Any]:
    """The shape as JSON values: options that are not at their default, and the schema's digest."""
    given = options.model_copy(update={"base_path": options.base_path or options.path})
    digest = hashlib.sha256(str(schema).encode()).hexdigest()[:16]
    chosen = given.model_dump(mode="json", by_alias=True, include=_SHAPING, exclude_defaults=True)
    return {"options": chosen, "schema": digest}


def shaped_as(options: SluiceOptions, recorded: Mapping[str, Any]) -> SluiceOptions:
    """`options` with those that shape rows as they were recorded; as they are if nothing was."""
    if "options" not in recorded:
        return options
    earlier = ReaderOptions.model_validate(recorded["options"])
    return options.model_copy(update={name: getattr(earlier, name) for name in _SHAPING})
