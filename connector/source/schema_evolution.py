"""What becomes of a column that a reader met and the schema does not have.

The next version of the schema is stored before the reader's task fails, so that a restart goes on
with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.file_split import FileSplit, FileVersion
from ...checkpoint_meta.documents.schema_history import SchemaHistory, StoredSchema
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import NewColumnsError, ProtocolError, SchemaEvolvedError, SluiceError
from ...reader.api import Report, SplitReader
from ...reader.direct_write.field_ids import unfit
from ...reader.files.evolution.new_columns import NewColumnsSeen, refuse_unrelated
from ...reader.files.evolution.type_growth import added_or_widened, aligned, grown
from ...reader.files.formats.json.json_values import without_nulls
from ...reader.files.formats.record_format import METADATA
from ...reader.files.formats.registry import format_class
from ...reader.files.options import FileFormatName
from ...reader.files.schemas.inference import found_columns, partition_columns
from ..options.model import SluiceOptions
from .schema_json import arrow_schema_of, json_of
from .schemas import table_columns

_NAMES_SHOWN = 20


class EvolvingReader(SplitReader[FileSplit]):
    """Reads through another reader; ends with an error that says what becomes of new columns.

    No commit is published then, so a restart reads all of it again.
    """

    def __init__(
        self,
        inner: SplitReader[FileSplit],
        options: SluiceOptions,
        schema: pa.Schema,
        store: StateStore | None,
    ) -> None:
        """`store` is where versions of the schema are kept; None for a read without state."""
        self._inner = inner
        self._options = options
        self._schema = schema
        self._store = store

    @override
    def read(self, splits: Sequence[FileSplit]) -> Iterator[pa.RecordBatch | Report]:
        try:
            yield from self._inner.read(splits)
        except NewColumnsSeen as seen:
            files = [split.file for split in splits]
            raise evolved(seen, files, self._options, self._schema, self._store) from None

    @override
    def close(self) -> None:
        self._inner.close()


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
        options: as filled in by `schemas.resolved`.
        schema: the one that the query was started with.
        store: the state as the reader sees it; None for a read without state.
    """
    mode = options.mode_of_evolution
    _refuse_unrelated(seen, files, options, schema)
    found = _aligned(_found(seen, files, options, schema), schema, options)
    is_text = not format_class(options.file_format).says_columns
    names = added_or_widened(schema, found, widen=mode.widens, is_text=is_text)
    shown = ", ".join(names[:_NAMES_SHOWN]) + (" ..." if len(names) > _NAMES_SHOWN else "")
    if not names:
        raise ProtocolError(
            "a reader has found a new column that is in the schema",
            seen.where,
            f"columns {found.names}",
        )
    if len(names) > options.max_new_columns:
        return NewColumnsError(
            "the data has more new columns than one version of the schema may add",
            seen.where,
            f"{len(names)}: {shown}",
            f"at most {options.max_new_columns} (maxNewColumns)",
            "If names are values, such as ids, give their parent a map with schemaHints, or set "
            "schemaEvolutionMode to rescue. Otherwise raise maxNewColumns.",
        )
    if not mode.adds or store is None:
        return NewColumnsError(
            "the data has columns that the schema does not have",
            seen.where,
            shown,
            f"the {len(schema)} columns of the schema (schemaEvolutionMode={mode})",
            "Pass a schema that has them, remove the file, or set schemaEvolutionMode to "
            "addNewColumns (for a stream that is loaded without .schema(...)), rescue or "
            "none. An inferred schema may need a larger sample: inferSampleFiles, "
            "inferSampleBytes.",
        )

    columns = None if options.write_transform else table_columns()
    more = [] if columns is None else unfit(grown(schema, found, widen=mode.widens), columns)
    if more:
        # Nothing is stored or committed yet: later, the batch would come again and again.
        return NewColumnsError(
            "the data needs wider types than the table has",
            seen.where,
            ", ".join(more),
            "types that the table has, or can be widened to",
            "Nothing is lost. Write the table again with wider types: DeltaTable(t)."
            "to_pyarrow_table().cast(schema), and write_deltalake(t, rows, mode='overwrite', "
            "schema_mode='overwrite'); for Iceberg rename the column. Then start the query again. "
            "Or set schemaEvolutionMode=rescue, or remove the file.",
        )

    def grow(before: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        current = schema if before is None else arrow_schema_of(before.schema)
        # Another reader may have stored a version since this query began: its columns stay.
        more = _aligned(found, current, options)
        after = grown(current, more, widen=mode.widens, is_text=is_text)
        return json_of(after), f"{shown}, in {seen.where}"

    # Stored before the error is raised: a crash in between leaves a version that a restart uses.
    version = SchemaHistory(store).grow(grow).version
    return SchemaEvolvedError(
        "the data has new columns, and the schema that has them is stored",
        seen.where,
        shown,
        f"the {len(schema)} columns that the query was started with",
        f"Load the stream and start the query again: it continues with version {version} of the "
        "schema, and nothing is lost. pyspark_sluice.run_with_evolution does that by itself.",
    )


def _refuse_unrelated(
    seen: NewColumnsSeen, files: Sequence[FileVersion], options: SluiceOptions, schema: pa.Schema
) -> None:
    """Refuse a file without any column of the schema, in formats whose records name the columns."""
    at = [file for file in files if seen.where.startswith(file.path)]
    if seen.found is None or not at:
        return
    columns = found_columns([max(at, key=lambda file: len(file.path))], options)
    partitions = partition_columns(files, options).names
    made = [options.rescued_data_column, options.column_name_of_corrupt_record, METADATA]
    known = [name for name in schema.names if name not in {*partitions, *made}]
    names = [name for name in columns.names if name not in partitions]
    refuse_unrelated(seen.where, names, known, accept=options.accept_unrelated_files)


def _found(
    seen: NewColumnsSeen, files: Sequence[FileVersion], options: SluiceOptions, schema: pa.Schema
) -> pa.Schema:
    """What the reader met, and what else the files that it was given have."""
    if seen.found is not None:
        found, rest = pa.schema(list(seen.found)), files
    else:
        # The reader met only the name; the type comes from the file, as with the first inference.
        found = found_columns([file for file in files if file.path == seen.where][:1], options)
        rest = [file for file in files if file.path != seen.where]
    found = grown(found, partition_columns(files, options), widen=False)
    try:
        # Bounded like the first inference: a column that is missed here costs one more restart.
        more = found_columns(rest[: options.infer_sample_files], options, schema)
    except SluiceError:
        # Files that cannot be read are named when it is their turn.
        more = pa.schema([])
    made = format_class(options.file_format)
    if made.says_columns:
        return grown(found, more, widen=options.mode_of_evolution.widens)
    one, other = pa.struct(list(found)), pa.struct(list(more))
    kind = made.common_columns(one, other, files[0], options)
    if options.file_format == FileFormatName.CSV and options.header:
        # A header names a column before any record has a value, as in the first inference.
        kind = without_nulls(kind)
    return pa.schema(list(kind))


def _aligned(found: pa.Schema, current: pa.Schema, options: SluiceOptions) -> pa.Schema:
    """`found` in the spelling of `current`, for formats whose columns do not go by case."""
    if options.file_format == FileFormatName.JSON:
        return found
    return pa.schema(list(aligned(pa.struct(list(found)), pa.struct(list(current)))))
