"""The schema of a source that was loaded without one: inferred once, stored, grown.

Spark asks for a schema in a process of its own, at `.load()`; a task that meets a new column stores
the next version before it says so. Not here: inference (`reader/files/schemas`), the objects
(`checkpoint_meta/documents/schema_history.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...checkpoint_meta.documents.file_split import FileVersion
from ...checkpoint_meta.documents.schema_history import SchemaHistory, StoredSchema
from ...checkpoint_meta.stores.open_store import StateStore
from ...enumerator.files.discovery.lister import all_files
from ...errors import NewColumnsError, ProtocolError, SchemaEvolvedError, SluiceError
from ...reader.files.evolution.new_columns import NewColumnsSeen
from ...reader.files.options import FileFormatName
from ..options.model import SluiceOptions
from .arrow_schema import arrow_schema
from .evolution_mode import as_inferred
from .file_source import make_discovery
from .state_location import open_state

_NAMES_SHOWN = 20


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
        return _spark(inferred_schema(all_files(make_discovery(options)), options))

    def decided(before: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        if before is None:
            files = all_files(make_discovery(options))
            return _json(inferred_schema(files, options)), "inferred"
        return _json(completed(_arrow(before.schema), options, has_grown=True)), "options"

    return StructType.fromJson(dict(history.grow(decided).schema))


def schema_history(options: SluiceOptions) -> SchemaHistory | None:
    """Where versions of the schema are kept; None for a read without state."""
    if options.checkpoint_location is None and options.state_location is None:
        return None
    return SchemaHistory(open_state(options))


def evolved(
    seen: NewColumnsSeen,
    files: Sequence[FileVersion],
    options: SluiceOptions,
    schema: pa.Schema,
    store: StateStore | None,
) -> NewColumnsError:
    """The error for new columns, after the schema that has them is stored.

    Args:
        seen: what the reader met.
        files: what it was given to read: more new columns in them come with the first.
        options: as filled in by `evolution.resolved`.
        schema: the one that the query was started with.
        store: the state as the reader sees it; None for a read without state.
    """
    from ...reader.files.evolution.type_growth import grown, news

    mode = options.mode_of_evolution
    found = _aligned(_found(seen, files, options, schema), schema, options)
    names = news(schema, found, widen=mode.widens)
    shown = ", ".join(names[:_NAMES_SHOWN]) + (" ..." if len(names) > _NAMES_SHOWN else "")
    if not names:
        raise ProtocolError(
            "a reader has found a new column that is in the schema",
            seen.where,
            f"columns {found.names}",
        )
    if not mode.adds or store is None:
        return NewColumnsError(
            "the data has columns that the schema does not have",
            seen.where,
            shown,
            f"the {len(schema)} columns of the schema (schemaEvolutionMode={mode})",
            (
                "Pass a schema that has them, remove the file, or set schemaEvolutionMode to "
                "addNewColumns (for a stream that is loaded without .schema(...)), rescue or "
                "none. An inferred schema may need a larger sample: inferSampleFiles, "
                "inferSampleBytes."
            ),
        )

    def grow(before: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        current = schema if before is None else _arrow(before.schema)
        more = _aligned(found, current, options)
        return _json(grown(current, more, widen=mode.widens)), f"{shown}, in {seen.where}"

    version = SchemaHistory(store).grow(grow).version
    return SchemaEvolvedError(
        "the data has new columns, and the schema that has them is stored",
        seen.where,
        shown,
        f"the {len(schema)} columns that the query was started with",
        f"Load the stream and start the query again: it goes on with version {version} of the "
        "schema, and nothing is lost. pyspark_sluice.run_with_evolution does that by itself.",
    )


def _found(
    seen: NewColumnsSeen, files: Sequence[FileVersion], options: SluiceOptions, schema: pa.Schema
) -> pa.Schema:
    """What the reader met, and what else the files that it was given have."""
    from ...reader.files.evolution.type_growth import grown
    from ...reader.files.formats.registry import format_class
    from ...reader.files.schemas.inference import found_columns, partition_columns

    if seen.found is not None:
        found, rest = pa.schema(list(seen.found)), files
    else:
        found = found_columns([file for file in files if file.path == seen.where][:1], options)
        rest = [file for file in files if file.path != seen.where]
    found = grown(found, partition_columns(files, options), widen=False)
    try:
        more = found_columns(rest[: options.infer_sample_files], options, schema)
    except SluiceError:
        # Files that cannot be read are named when it is their turn.
        return found
    made = format_class(options.file_format)
    if made.says_columns:
        return grown(found, more, widen=options.mode_of_evolution.widens)
    return pa.schema(
        list(made.common_columns(pa.struct(list(found)), pa.struct(list(more)), files[0]))
    )


def _aligned(found: pa.Schema, current: pa.Schema, options: SluiceOptions) -> pa.Schema:
    """`found` in the spelling of `current`, for formats whose columns do not go by case."""
    from ...reader.files.evolution.type_growth import aligned

    if options.file_format == FileFormatName.JSON:
        return found
    return pa.schema(list(aligned(pa.struct(list(found)), pa.struct(list(current)))))


def _arrow(schema: Mapping[str, Any]) -> pa.Schema:
    return arrow_schema(StructType.fromJson(dict(schema)))


def _spark(schema: pa.Schema) -> StructType:
    # Timestamps without zone would else become those with one.
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _json(schema: pa.Schema) -> dict[str, Any]:
    return _spark(schema).jsonValue()
