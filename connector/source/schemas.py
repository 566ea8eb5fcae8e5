"""The schema of a query: given, inferred or stored, which evolution follows, and its Arrow form.

Spark asks for a schema in a process of its own, at `.load()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from ...checkpoint_meta.documents.schema_history import SchemaHistory, StoredSchema
from ...enumerator.files.discovery.tree_discovery import all_files
from ...errors import OptionError
from ...reader.direct_write.field_ids import TABLE_COLUMNS, from_text
from ...reader.files.options import FileFormatName
from ...reader.files.options.schema_options import EvolutionMode
from ..options.model import SluiceOptions
from .discovery import make_discovery
from .state_location import open_state

# Before Spark 4.2 timestamps are in UTC by default, and there is no parameter for it.
_IN_UTC: Mapping[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def schema_without_one_given(options: SluiceOptions) -> StructType:
    """The stored schema, or one that is inferred now, and stored where there is a state.

    Hints count for a stored schema as well, and make a version of it.

    Raises:
        OptionError: there is nothing to infer it from.
    """
    from ...reader.files.schemas.inference import inferred_schema, with_reader_columns

    options = _as_inferred(options)
    history = schema_history(options)
    # A batch read has no state: each one infers the schema of what is there.
    if history is None:
        return spark_schema(inferred_schema(all_files(make_discovery(options)), options))

    def decided(before: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        if before is None:
            files = all_files(make_discovery(options))
            return json_of(inferred_schema(files, options)), "inferred"
        return json_of(
            with_reader_columns(arrow_schema_of(before.schema), options, has_grown=True)
        ), "options"

    # Stored here, at `.load()`: of two starts at once both get the version that was stored first.
    return StructType.fromJson(dict(history.grow(decided).schema))


def schema_history(options: SluiceOptions) -> SchemaHistory | None:
    """Where versions of the schema are kept; None for a read without state."""
    if options.checkpoint_location is None and options.state_location is None:
        return None
    return SchemaHistory(open_state(options))


_RESCUED = "_rescued_data"
"""Name of the rescued data column where none is given, as in Auto Loader."""


def _as_inferred(options: SluiceOptions) -> SluiceOptions:
    mode = options.schema_evolution_mode or EvolutionMode.ADD_NEW_COLUMNS
    update: dict[str, object] = {"schema_evolution_mode": mode}
    if mode is EvolutionMode.RESCUE and not options.rescued_data_column:
        update["rescued_data_column"] = _RESCUED
    # Text by default, as in Auto Loader: a guess from a sample may fail on later files.
    if not options.infer_column_types:
        update["primitives_as_string"] = True
    if options.header and options.file_format == FileFormatName.CSV:
        # It was merged over files, of which none has to have all of it.
        update["enforce_schema"] = False
    return options.model_copy(update=update)


def resolved(options: SluiceOptions, names: Sequence[str], *, inferred: bool) -> SluiceOptions:
    """The options of a query over columns `names`: with the evolution that follows from its schema.

    Raises:
        OptionError: the mode would change what `.schema(...)` fixes, or has no column to rescue to.
    """
    if inferred:
        return _as_inferred(options)
    # Spark fixes the schema of a query that was given one, so the default is to keep it.
    mode = options.schema_evolution_mode or EvolutionMode.NONE
    if mode.adds:
        raise OptionError(
            "schemaEvolutionMode: a schema that you pass cannot evolve",
            "",
            f"{mode} and .schema(...)",
            "one of the two",
            "Leave .schema(...) out, with schemaHints for the columns whose types matter, or set "
            "schemaEvolutionMode to rescue, failOnNewColumns or none.",
        )
    update: dict[str, object] = {"schema_evolution_mode": mode}
    if mode is EvolutionMode.RESCUE:
        rescued = options.rescued_data_column or _RESCUED
        if rescued not in names:
            raise OptionError(
                "schemaEvolutionMode: rescue needs a rescued data column",
                "",
                f"no column {rescued} in the schema",
                f"{rescued} string",
                "Add it to .schema(...), or name another one with rescuedDataColumn.",
            )
        update["rescued_data_column"] = rescued
    return options.model_copy(update=update)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Types, order and nullability as Spark checks them; timestamps in UTC."""
    # Spark hands timestamps over in UTC; the session's zone counts only where they are shown.
    return to_arrow_schema(schema, **_IN_UTC)


def arrow_schema_of(stored: Mapping[str, Any]) -> pa.Schema:
    """The same of a schema as it is stored, in Spark's JSON."""
    return arrow_schema(StructType.fromJson(dict(stored)))


def spark_schema(schema: pa.Schema) -> StructType:
    """Spark's types for a schema that was found in files."""
    # Timestamps without zone would else become those with one.
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def json_of(schema: pa.Schema) -> dict[str, Any]:
    """A schema as it is stored."""
    return spark_schema(schema).jsonValue()


def table_columns() -> pa.Schema | None:
    """The columns of the table that the batch is for, if its sink has passed them to the job."""
    context = TaskContext.get()
    text = context.getLocalProperty(TABLE_COLUMNS) if context else None
    return from_text(text) if text else None
