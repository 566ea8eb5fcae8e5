"""The executors' half of a stream: one partition, read and acknowledged.

A commit holds a digest of what shapes the rows in addition to the bytes: the options of reading,
and the schema. So the same splits give the same rows when they are read again, even if the options
have changed by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ...checkpoint_meta.documents.reader_commit import ReaderCommits
from ...checkpoint_meta.documents.serializer import VersionedSerializer
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...reader.api import ReaderContext, SplitReader
from ...reader.files.options import ReaderOptions
from ...reader.files.options.schema_options import SchemaOptions
from ...reader.task import Assignment, Attempt, ReaderTask
from ..options.model import SluiceOptions, parse_options
from ..source.direct_write import direct_write_of, recorder_of
from ..source.loading import load_source
from ..source.schemas import resolved
from ..source.state_location import check_query_id
from .partitions import ReaderPartition, with_session_time_zone


def read_partition(
    texts: Mapping[str, str],
    expected: pa.Schema,
    partition: ReaderPartition,
    attempt: Attempt,
    *,
    inferred: bool,
) -> Iterator[pa.RecordBatch]:
    """The rows of `partition` in order, checkpoint by checkpoint.

    A new column ends the task before its reader commit, so that a restart reads all of it again.
    """
    # Only tasks know the session's zone; the digest of the shape then has it, too.
    options = with_session_time_zone(parse_options(texts, streaming=True))
    options = resolved(options, expected.names, inferred=inferred)
    # Not what the option says: a relative path means something else here.
    store = open_store(partition.state, options.storage_options)
    source = load_source(options, expected, schema_is_inferred=inferred)

    def make_reader(context: ReaderContext) -> SplitReader[Any]:
        shaped = source
        # An earlier attempt has acknowledged rows of that shape: these must be the same ones.
        if context.shape:
            earlier = shaped_as(options, context.shape)
            shaped = load_source(earlier, expected, schema_is_inferred=inferred)
        return shaped.create_reader(context)

    task = ReaderTask(
        make_reader,
        source.split_serializer,
        ReaderCommits(store, rereads=partition.rereads),
        source.reader_event_types,
        may_return=options.on_split_error == "return",
        shape=shape_of(options, expected),
        writes=direct_write_of(options, expected),
        recorder=recorder_of(options),
    )
    # Before the first row, since Spark may hand rows to the sink as soon as they come.
    check_query_id(attempt.query_id, partition.query_id, partition.state)
    yield from read_parts(task, source.split_serializer, store, partition, attempt)


def read_parts(
    task: ReaderTask[Any],
    serializer: VersionedSerializer[Any],
    store: StateStore,
    partition: ReaderPartition,
    attempt: Attempt,
) -> Iterator[pa.RecordBatch]:
    """The rows of each part, with a commit after it."""
    for part in partition.parts:
        if part.visibility is not None:
            # Before the first row: where the state is not shared, a commit would be lost.
            part.visibility.check(store)
        splits = [s for batch in part.splits() for s in serializer.read(part.version, batch)]
        assignment = Assignment(
            part.checkpoint,
            partition.reader,
            splits,
            part.sent,
            part.waived,
            partition.claim,
            part.budget,
            partition.batch_start,
            partition.origin,
        )
        # In order: a continuation starts where this reader's commit for an earlier part says.
        yield from task.read(assignment, attempt)
        if part.visibility is not None:
            # After the commit: the name of one that was deleted long ago is free again.
            part.visibility.check_retained(store)


# Secrets are never written down; how much is decoded at a time changes no row, nor does where
# malformed records go, once `mode` says that they are dropped.
_NOT_SHAPING = {"storage_options", "batch_bytes", "bad_records_path"}

# They say how the schema comes about, which has a digest of its own.
_OF_THE_SCHEMA = set(SchemaOptions.model_fields) - {"schema_evolution_mode"}

_SHAPING = set(ReaderOptions.model_fields) - _NOT_SHAPING - _OF_THE_SCHEMA


def shape_of(options: SluiceOptions, schema: pa.Schema) -> dict[str, Any]:
    """The shape as JSON values: options that are not at their default, and the schema's digest."""
    # Columns of the path depend on it, and a later start may load another path.
    options = options.model_copy(update={"base_path": options.base_path or options.path})
    # A digest: schemas may be long, and there is a commit for each reader and batch.
    digest = hashlib.sha256(str(schema).encode()).hexdigest()[:16]
    chosen = options.model_dump(mode="json", by_alias=True, include=_SHAPING, exclude_defaults=True)
    return {"options": chosen, "schema": digest}


def shaped_as(options: SluiceOptions, recorded: Mapping[str, Any]) -> SluiceOptions:
    """`options` with those that shape rows as they were recorded; as they are if nothing was."""
    if "options" not in recorded:
        return options
    earlier = ReaderOptions.model_validate(recorded["options"])
    return options.model_copy(update={name: getattr(earlier, name) for name in _SHAPING})
