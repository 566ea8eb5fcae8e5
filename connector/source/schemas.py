"""The schema of a query: given, inferred or stored, which evolution follows, and its Arrow form.

Spark asks for a schema in a process of its own, at `.load()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...checkpoint_meta.documents.layout import READERS
from ...checkpoint_meta.documents.query_records import SchemaHistory, StoredSchema
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.files.discovery.tree_discovery import all_files
from ...errors import OptionError
from ...reader.direct_write.field_ids import TABLE_COLUMNS, from_text
from ...reader.files.evolution.hints import parse_columns
from ...reader.files.options import FileFormatName
from ...reader.files.options.schema_options import EvolutionMode
from ..options.model import SluiceOptions
from ..session.processes import task_property
from .discovery import make_discovery
from .schema_json import arrow_schema_of, json_of
from .state_location import open_state

_FIXED_SCHEMAS: Final = {
    # As the schemas of Spark's own sources of the same names, so that queries can be ported.
    "text": "value string",
    "binaryfile": "path string, modificationTime timestamp, length long, content binary",
}

_INFERRED: Final = "inferred"
_OPTIONS: Final = "options"
_BY_OPTIONS: Final = {_INFERRED, _OPTIONS}
"""Reasons of versions of the schema that no reader has asked for."""


def schema_of_rows(
    options: SluiceOptions,
    check: Callable[[pa.Schema], None] = lambda _: None,
    store: StateStore | None = None,
) -> tuple[pa.Schema, bool]:
    """The schema of a query that was given none; True if it is inferred, and may evolve.

    With `writeTo` it is that of the rows in the data files.

    Args:
        options: those of the query.
        check: raises an error if the sink does not take such rows; called before anything is
            stored.
        store: takes the place of the state directory.

    Raises:
        OptionError: one is needed, or there is nothing to infer it from.
    """
    fixed = _schema_without_state(options)
    if fixed is not None:
        check(canonical(fixed))
        return fixed, False
    if options.source != "files":
        raise OptionError(
            "a schema is needed",
            f"source={options.source}",
            "no .schema(...)",
            '.schema("id long, name string") or a StructType before .load(); or writeSchema',
        )
    return _inferred_schema(options, check, store), True


def _schema_without_state(options: SluiceOptions) -> pa.Schema | None:
    """The schema that the options say; None if it is inferred."""
    if options.write_to and options.write_schema:
        return described(options.write_schema, "writeSchema")
    fixed = _FIXED_SCHEMAS.get(options.file_format.lower())
    if fixed is not None:
        return described(fixed, "schema")
    if options.single_variant_column:
        return described(f"`{options.single_variant_column}` variant", "schema")
    return None


def described(text: str, option: str) -> pa.Schema:
    """The schema that an option describes, `id long, name string`.

    Raises:
        OptionError: it is not understood, or reaches into structs.
    """
    return pa.schema(parse_columns(text, option))


def _inferred_schema(
    options: SluiceOptions, check: Callable[[pa.Schema], None], store: StateStore | None
) -> pa.Schema:
    """The stored schema, or one that is inferred now, and stored where there is a state.

    Hints count for a stored schema as well, and make a version of it.
    """
    from ...reader.files.schemas.inference import inferred_schema, with_reader_columns

    options = _as_inferred(options)
    has_state = options.checkpoint_location is not None or options.state_location is not None
    store = store or (open_state(options) if has_state else None)
    # A batch read has no state: each one infers the schema of what is there.
    if store is None:
        files = all_files(make_discovery(options))
        return canonical(inferred_schema(files, options))

    history, state = SchemaHistory(store), store

    def has_grown() -> bool:
        # Before anything was read, a narrower type of a hint changes no row.
        is_read = bool(state.list(READERS))
        return is_read or not {each.reason for each in history.all()} <= _BY_OPTIONS

    def decided(before: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        if before is None:
            schema = inferred_schema(all_files(make_discovery(options)), options)
        else:
            stored = arrow_schema_of(before.struct)
            schema = with_reader_columns(stored, options, has_grown=has_grown())
        check(canonical(schema))
        return json_of(schema), _INFERRED if before is None else _OPTIONS

    # Stored here, at `.load()`: of two starts at once both get the version that was stored first.
    return arrow_schema_of(history.grow(decided).struct)


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


def canonical(schema: pa.Schema) -> pa.Schema:
    """The schema with the types that Spark would hand to a task."""
    return arrow_schema_of(json_of(schema))


def table_columns() -> pa.Schema | None:
    """The columns of the table that the batch is for, if its sink has passed them to the job."""
    text = task_property(TABLE_COLUMNS)
    return from_text(text) if text else None
