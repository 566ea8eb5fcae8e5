"""What travels to one task, what the task knows about itself, and how it reads and acknowledges.

An assignment travels in the columns that it has in the checkpoint file. A commit holds a digest of
what shapes the rows in addition to the bytes: the options of reading, and the schema. So the same
splits give the same rows when they are read again, even if the options have changed by then.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ...checkpoint_meta.documents.checkpoint import Checkpoint, PartBudget, Sent
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity, CheckpointRef
from ...checkpoint_meta.documents.reader_assignment import budget_of, readers_of, sent_to
from ...checkpoint_meta.documents.reader_commit import ReaderCommits, Rereads
from ...checkpoint_meta.documents.serializer import VersionedSerializer, to_ipc
from ...checkpoint_meta.documents.visibility_check import VisibilityCheck
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...reader.api import ReaderContext, SplitReader
from ...reader.files.options import ReaderOptions
from ...reader.files.options.schema_options import SchemaOptions
from ...reader.task import Assignment, Attempt, ReaderTask
from ..options.model import SluiceOptions, parse_options
from ..session.processes import spark_task, task_property
from ..source.direct_write import direct_write_of, recorder_of
from ..source.file_source import load_source
from ..source.schemas import resolved
from ..source.state_location import check_query_id


@dataclass(frozen=True)
class ReaderShare:
    """One checkpoint's part for one reader, ready to be pickled."""

    checkpoint: CheckpointIdentity
    version: int
    packed: bytes
    """The splits, as `packed` makes them."""

    sent: Sequence[Sent] = ()
    """The reader's stream as in the checkpoint's header. The task finds out where continuations
    start, from this reader's own commits."""

    visibility: VisibilityCheck | None = None
    """By which an executor recognizes the checkpoint; None in a batch read."""

    waived: frozenset[str] = frozenset()
    """Ids of splits that are left out, since an order has given them up."""

    budget: PartBudget | None = None
    """What the reader may spend; None without a limit."""

    def splits(self) -> Iterable[pa.RecordBatch]:
        """The splits as the serializer's record batches."""
        with pa.ipc.open_stream(pa.BufferReader(self.packed)) as reader:
            return list(reader)


def packed(batches: Iterable[pa.RecordBatch], schema: pa.Schema | None = None) -> bytes:
    """Splits for an `ReaderShare`; `schema` is needed where there may be no batch."""
    splits = pa.Table.from_batches(batches, schema)
    # Spark sends partitions as they are, one with each task; paths compress well.
    options = {"compression": "lz4", "use_threads": False}
    return to_ipc(splits.schema, splits.to_batches(), pa.ipc.new_stream, **options)


@dataclass(repr=False, eq=False)
class ReaderPartition:
    """All that one reader has to read in one micro-batch; spans the checkpoints of its range."""

    reader: int
    parts: Sequence[ReaderShare]
    state: str = ""
    """The state directory as the driver has resolved it; empty in a batch read."""

    cut_places: Mapping[str, bytes] = field(default_factory=dict)
    """Where compressed files are entered, if there is no state that says it."""

    query_id: str = ""
    """Id of the query whose checkpoint is at checkpointLocation; empty if unknown."""

    claim: int = 0
    """See `Coordinator.claim_to_check`."""

    rereads: Rereads = field(default_factory=dict)
    """See `Coordinator.rereads`."""

    batch_start: int = 0
    """Id of the checkpoint after which the range begins: it and all before it are complete."""

    origin: str = ""
    """Text of the batch's `BatchOrigin`; empty if rows go to Spark."""


def partitions_of(
    checkpoints: Sequence[Checkpoint],
    state: str,
    query_id: str,
    waived: Callable[[CheckpointRef], frozenset[str]],
    claim: int,
    rereads: Rereads,
    origin: str = "",
) -> list[ReaderPartition]:
    """One partition for each reader that got splits: a pure function of the checkpoints.

    Args:
        checkpoints: of the range, oldest first.
        state: where they are, absolute.
        query_id: of the query that they are read for, where it is known.
        waived: ids of splits of a checkpoint that an order has given up.
        claim: see `Coordinator.claim_to_check`.
        rereads: see `Coordinator.rereads`.
        origin: see `ReaderPartition.origin`.
    """
    by_reader: dict[int, list[ReaderShare]] = {}
    for checkpoint in checkpoints:
        for reader in readers_of(checkpoint):
            # The columns go from the checkpoint to the task as they are: no split becomes an object
            # here.
            batches = [batch for owner, batch in checkpoint.assigned if owner == reader]
            part = ReaderShare(
                checkpoint.identity,
                checkpoint.header.split_version,
                packed(batches, checkpoint.split_schema),
                sent_to(checkpoint, reader),
                checkpoint.visibility,
                waived(checkpoint.ref),
                budget_of(checkpoint, reader),
            )
            by_reader.setdefault(reader, []).append(part)
    start = checkpoints[0].header.parent_checkpoint if checkpoints else 0
    return [
        ReaderPartition(
            reader,
            by_reader[reader],
            state,
            query_id=query_id,
            claim=claim,
            rereads=rereads,
            batch_start=start,
            origin=origin,
        )
        # In one order: a batch that is replayed has to have the same partitions.
        for reader in sorted(by_reader)
    ]


def current_attempt() -> Attempt:
    """The attempt this code runs in."""
    context = spark_task()
    # Outside of Spark's tasks, as in tests and in the trial of a source.
    if context is None:
        return Attempt()
    # Spark sets it for streaming queries only.
    query = context.getLocalProperty("sql.streaming.queryId") or ""
    return Attempt(context.attemptNumber(), query)


def with_session_time_zone(options: SluiceOptions) -> SluiceOptions:
    """`options` with the session's time zone where the user named none.

    Spark hands a session's own settings to its tasks; without one the machine's zone counts.
    """
    if options.time_zone:
        return options
    zone = task_property("spark.sql.session.timeZone")
    return options.model_copy(update={"time_zone": zone or _machine_time_zone()})


def _machine_time_zone() -> str:
    # As in the C library, the variable goes before the machine's own file.
    if os.environ.get("TZ"):
        # POSIX permits a colon before the name of a zone.
        return os.environ["TZ"].lstrip(":")
    # Only the target of the link says the name; the file itself does not.
    target = os.path.realpath("/etc/localtime")
    return target.partition("zoneinfo/")[2] or "UTC"


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
