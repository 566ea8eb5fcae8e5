"""The schema of a source that was loaded without one: inferred once, and stored.

Spark asks for a schema in a process of its own, at `.load()`. Not here: its next version
(`schema_evolution.py`), inference (`reader/files/schemas`), the objects
(`checkpoint_meta/documents/schema_history.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructType

from ...checkpoint_meta.documents.schema_history import SchemaHistory, StoredSchema
from ...enumerator.files.discovery.tree_discovery import all_files
from ..options.model import SluiceOptions
from .arrow_schema import arrow_schema_of, json_of, spark_schema
from .evolution_mode import as_inferred
from .file_source import make_discovery
from .state_location import open_state


def schema_without_one_given(options: SluiceOptions) -> StructType:
    """The stored schema, or one that is inferred now, and stored where there is a state.

    Hints count for a stored schema as well, and make a version of it.

    Raises:
        OptionError: there is nothing to infer it from.
    """
    from ...reader.files.schemas.inference import completed, inferred_schema

    options = as_inferred(options)
    history = schema_history(options)
    if history is None:
        return spark_schema(inferred_schema(all_files(make_discovery(options)), options))

    def decided(before: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        if before is None:
            files = all_files(make_discovery(options))
            return json_of(inferred_schema(files, options)), "inferred"
        return json_of(
            completed(arrow_schema_of(before.schema), options, has_grown=True)
        ), "options"

    return StructType.fromJson(dict(history.grow(decided).schema))


def schema_history(options: SluiceOptions) -> SchemaHistory | None:
    """Where versions of the schema are kept; None for a read without state."""
    if options.checkpoint_location is None and options.state_location is None:
        return None
    return SchemaHistory(open_state(options))
