"""What becomes of a column that a reader met and the schema does not have.

The next version of the schema is stored before a row with the column is written, or before the
reader's task fails, so that everybody who reads afterwards goes on with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.query_records import SchemaHistory, StoredSchema
from ...checkpoint_meta.files.file_split import SCHEMA, FileSplit, FileVersion
from ...checkpoint_meta.stores.contract import StateStore
from ...errors import (
    WITHOUT_THE_FILE,
    NewColumnsError,
    ProtocolError,
    SchemaEvolvedError,
    SluiceError,
)
from ...reader.api import (
    PartEnded,
    ReaderContext,
    ReaderEvent,
    Report,
    SplitFinished,
    SplitReader,
    SplitReturned,
    SplitUnfinished,
)
from ...reader.direct_write.table_fit import misfits
from ...reader.files.evolution.new_columns import NewColumnsSeen, refuse_unrelated
from ...reader.files.evolution.type_growth import added_or_widened, aligned, differences, grown
from ...reader.files.formats.records.record_format import METADATA
from ...reader.files.formats.records.shape import without_nulls
from ...reader.files.formats.registry import format_class
from ...reader.files.options import FileFormatName
from ...reader.files.path_columns import with_file_column
from ...reader.files.schemas.inference import found_columns, partition_columns
from ..options.model import SluiceOptions
from .schema_json import arrow_schema_of, json_of
from .schemas import table_columns

_NAMES_SHOWN = 20


class EvolvingReader(SplitReader[FileSplit]):
    """Reads through readers of one schema after the other.

    Where rows go into data files, reading goes on with the new schema behind the rows before the
    new column. Where they go to Spark, which has fixed the columns of the query, the task ends with
    an error that says what becomes of new columns; no commit is published then, so a restart reads
    all of it again.
    """

    def __init__(
        self,
        make_reader: Callable[[pa.Schema], SplitReader[FileSplit]],
        options: SluiceOptions,
        schema: pa.Schema,
        context: ReaderContext,
    ) -> None:
        """`schema` is the one that the query was started with."""
        self._make_reader = make_reader
        self._options = options
        self._started_with = schema
        self._store = context.store
        events = [e.value for e in context.events if isinstance(e.value, dict)]
        newest = max((value.get(SCHEMA, 0) for value in events), default=0)
        if newest and self._store is not None and goes_on(options):
            later = SchemaHistory(self._store).version(newest)
            # A restart may have brought a newer version than the event names.
            widen = options.mode_of_evolution.widens
            schema = grown(schema, arrow_schema_of(later.struct), widen=widen)
        self._schema = schema
        self._inner = make_reader(schema)

    @override
    def read(self, splits: Sequence[FileSplit]) -> Iterator[pa.RecordBatch | Report]:
        left = deque(splits)
        begun: SplitUnfinished[FileSplit] | None = None
        while True:
            try:
                for item in self._inner.read(list(left)):
                    if isinstance(item, PartEnded) and begun is not None:
                        # Nothing more of the split that was begun: it ends where it was left.
                        left.popleft()
                        yield begun
                        if not left:
                            return
                        yield PartEnded(left[0].split_id)
                        return
                    if isinstance(item, SplitFinished | SplitUnfinished):
                        yield item if begun is None else _together(begun, item)
                        begun = None
                    else:
                        yield item
                    if isinstance(item, SplitFinished | SplitUnfinished | SplitReturned):
                        left.popleft()
            except NewColumnsSeen as seen:
                version = self._grow(seen, [split.file for split in left])
                if isinstance(seen.begun, SplitUnfinished):
                    begun = _together(begun, seen.begun) if begun else seen.begun
                    left[0] = begun.remainder
            else:
                return
            yield ReaderEvent(SCHEMA, version)

    def _grow(self, seen: NewColumnsSeen, files: Sequence[FileVersion]) -> int:
        """Read on with the version of the schema that has what was seen; returns its number."""
        stored = stored_with(seen, files, self._options, self._schema, self._store)
        schema = arrow_schema_of(stored.struct)
        # Files of one batch with several types of one column fit few tables.
        is_longer = grown(self._schema, schema, widen=False) == schema
        if not (is_longer and goes_on(self._options)):
            raise _stopped(seen, stored, self._started_with)
        self._inner.close()
        self._schema = schema
        self._inner = self._make_reader(self._schema)
        return stored.version

    @override
    def close(self) -> None:
        self._inner.close()


def goes_on(options: SluiceOptions) -> bool:
    """True if a new column does not end a task: its rows go into data files with more columns."""
    writes = bool(options.write_to) and options.write_copy == "always"
    return writes and options.mode_of_evolution.adds


_Read = TypeVar("_Read", bound=SplitFinished | SplitUnfinished[FileSplit])


def _together(begun: SplitUnfinished[FileSplit], report: _Read) -> _Read:
    """The report on a split that was read in two pieces, the second of which is `report`."""
    return replace(
        report,
        split_id=begun.split_id,
        rows=begun.rows + report.rows,
        bytes=begun.bytes + report.bytes,
        seconds=begun.seconds + report.seconds,
        dropped_records=begun.dropped_records + report.dropped_records,
        filtered_rows=begun.filtered_rows + report.filtered_rows,
    )


def stored_with(
    seen: NewColumnsSeen,
    files: Sequence[FileVersion],
    options: SluiceOptions,
    schema: pa.Schema,
    store: StateStore | None,
) -> StoredSchema:
    """The version of the schema that has the new columns, which is stored.

    Args:
        seen: what the reader met.
        files: what it was given to read: more new columns in them come with the first.
        options: as filled in by `schemas.resolved`.
        schema: the one that the reader had.
        store: the state as the reader sees it; None for a read without state.

    Raises:
        NewColumnsError: they are not permitted, or the table does not take them.
    """
    mode = options.mode_of_evolution
    _refuse_unrelated(seen, files, options, schema)
    sample = _aligned(_found(seen, files, options, schema), schema, options)
    is_text = not format_class(options.file_format).says_columns
    names = added_or_widened(schema, sample, widen=mode.widens, is_text=is_text)
    shown = _shown(names)
    if not names:
        raise ProtocolError(
            "a reader has found a new column that is in the schema",
            seen.where,
            f"columns {sample.names}",
        )
    if len(names) > options.max_new_columns:
        raise NewColumnsError(
            "the data has more new columns than one version of the schema may add",
            seen.where,
            f"{len(names)}: {shown}",
            f"at most {options.max_new_columns} (maxNewColumns)",
            "If names are values, such as ids, give their parent a map with schemaHints, or set "
            "schemaEvolutionMode to rescue. Otherwise raise maxNewColumns.",
        )
    if not mode.adds or store is None:
        raise NewColumnsError(
            "the data has columns that the schema does not have",
            seen.where,
            shown,
            f"the {len(schema)} columns of the schema (schemaEvolutionMode={mode})",
            "Pass a schema that has them, or set schemaEvolutionMode to addNewColumns (for a "
            "stream that is loaded without .schema(...)), rescue or none. An inferred schema may "
            f"need a larger sample: inferSampleFiles, inferSampleBytes. {WITHOUT_THE_FILE}",
        )

    columns = None if options.write_transform else table_columns()
    wider = grown(schema, sample, widen=mode.widens, is_text=is_text, where=seen.where)
    wider = with_file_column(wider, options.write_file_column)
    problems = [] if columns is None else misfits(wider, columns)
    if problems:
        # Nothing is stored or committed yet: later, the batch would come again and again.
        raise NewColumnsError(
            "the table does not take the new columns or wider types of the data",
            seen.where,
            "; ".join(problems),
            "columns with the names and types of the table, or types that it can be widened to",
            "Nothing is lost, and no schema is stored. Put a repaired file of "
            "the same name, or set schemaEvolutionMode=rescue, which keeps the values in a column "
            "of their own. Or change the table: give a Delta table wider types (docs/tables.md), "
            "rename the column of an Iceberg table. " + WITHOUT_THE_FILE,
        )

    def grow(before: StoredSchema | None) -> tuple[Mapping[str, Any], str]:
        current = schema if before is None else arrow_schema_of(before.struct)
        # Another reader may have stored a version since this query began: its columns stay.
        more = _aligned(sample, current, options)
        after = grown(current, more, widen=mode.widens, is_text=is_text)
        return json_of(after), f"{shown}, in {seen.where}"

    # Before a row with the column is out: a crash in between leaves a version that is used later.
    return SchemaHistory(store).grow(grow)


def _stopped(seen: NewColumnsSeen, stored: StoredSchema, schema: pa.Schema) -> SchemaEvolvedError:
    newer = arrow_schema_of(stored.struct)
    added, changed = added_or_widened(schema, newer, widen=False), differences(schema, newer)
    changes = ["new columns"] if added else []
    if changed != added:
        changes.append("wider types")
    return SchemaEvolvedError(
        f"the data has {' and '.join(changes)}, and the schema that has them is stored",
        seen.where,
        _shown(changed),
        f"the {len(schema)} columns that the query was started with",
        f"Load the stream and start the query again: it continues with version {stored.version} of "
        "the schema, and nothing is lost. pyspark_sluice.run_with_evolution does that by itself.",
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (" ..." if len(names) > _NAMES_SHOWN else "")


def _refuse_unrelated(
    seen: NewColumnsSeen, files: Sequence[FileVersion], options: SluiceOptions, schema: pa.Schema
) -> None:
    """Refuse a file without any column of the schema, in formats whose records name the columns."""
    at = [file for file in files if seen.where.startswith(file.path)]
    if seen.found is None or not at:
        return
    columns = found_columns([max(at, key=lambda file: len(file.path))], options)
    partitions = partition_columns(files, options).names
    own_columns = [options.rescued_data_column, options.column_name_of_corrupt_record, METADATA]
    data_columns = [name for name in schema.names if name not in {*partitions, *own_columns}]
    names = [name for name in columns.names if name not in partitions]
    refuse_unrelated(seen.where, names, data_columns, accept=options.accept_unrelated_files)


def _found(
    seen: NewColumnsSeen, files: Sequence[FileVersion], options: SluiceOptions, schema: pa.Schema
) -> pa.Schema:
    """Return what the reader met, and what else the files that it was given have."""
    if seen.found is not None:
        columns, rest = pa.schema(list(seen.found)), files
    else:
        # The reader met only the name; the type comes from the file, as with the first inference.
        columns = found_columns([file for file in files if file.path == seen.where][:1], options)
        rest = [file for file in files if file.path != seen.where]
    columns = grown(columns, partition_columns(files, options), widen=False)
    try:
        # Bounded like the first inference: a column that is missed here costs one more restart.
        more = found_columns(rest[: options.infer_sample_files], options, schema)
    except SluiceError:
        # Files that cannot be read are named when it is their turn.
        more = pa.schema([])
    format_type = format_class(options.file_format)
    if format_type.says_columns:
        return grown(columns, more, widen=options.mode_of_evolution.widens)
    one, other = pa.struct(list(columns)), pa.struct(list(more))
    kind = format_type.common_columns(one, other, files[0], options)
    if options.file_format == FileFormatName.CSV and options.header:
        # A header names a column before any record has a value, as in the first inference.
        kind = without_nulls(kind)
    return pa.schema(list(kind))


def _aligned(sample: pa.Schema, current: pa.Schema, options: SluiceOptions) -> pa.Schema:
    """`sample` in the spelling of `current`, for formats whose columns do not go by case."""
    if options.file_format == FileFormatName.JSON:
        return sample
    return pa.schema(list(aligned(pa.struct(list(sample)), pa.struct(list(current)))))
