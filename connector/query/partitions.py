"""What travels to one task, and what the task knows about itself.

An assignment travels in the columns that it has in the checkpoint file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ...checkpoint_meta.documents.checkpoint import Checkpoint, PartBudget, Sent
from ...checkpoint_meta.documents.checkpoint_ref import CheckpointIdentity, CheckpointRef
from ...checkpoint_meta.documents.reader_assignment import budget_of, readers_of, sent_to
from ...checkpoint_meta.documents.reader_commit import Rereads
from ...checkpoint_meta.documents.serializer import to_ipc
from ...checkpoint_meta.documents.visibility_check import VisibilityCheck
from ...reader.task import Attempt
from ..options.model import SluiceOptions
from ..session.processes import spark_task, task_property


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
