"""The views `checkpoints`, `readers` and `schemas`: what the protocol has written, of any source.

And the checkpoints in flight, as durable state alone shows them: built from the same list as the
coordinator's own (`enumerator/coordinator/in_flight.py`), so what is held is derived by one rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.documents.query_records import SchemaHistory
from ...checkpoint_meta.documents.reader_assignment import readers_of
from ...checkpoint_meta.documents.reader_commit import ReaderCommit
from ...enumerator.batch_budget import UNLIMITED
from ...enumerator.coordinator.in_flight import CheckpointRecord, CheckpointsInFlight
from ...enumerator.coordinator.subtask_gateway import Gateways
from .state_view import TIME, StateView, fields

CHECKPOINTS: Final = pa.schema(
    [
        *fields(pa.int64(), "checkpoint", "epoch", "parent_checkpoint", "parent_epoch"),
        ("state", pa.string()),
        *fields(TIME, "planned", "committed"),
        ("has_base", pa.bool_()),
        *fields(pa.int64(), "splits", "state_rows"),
        *fields(pa.int32(), "readers", "commits"),
        *fields(pa.int64(), "rows", "bytes", "quarantined"),
    ]
)

READERS: Final = pa.schema(
    [
        *fields(pa.int64(), "checkpoint", "epoch"),
        ("reader", pa.int32()),
        ("state", pa.string()),
        *fields(pa.int64(), "splits", "rows", "bytes", "microseconds"),
        *fields(pa.int64(), "returned", "unfinished", "skipped", "dropped_records"),
        ("processed", TIME),
        ("attempt", pa.int32()),
        ("query_id", pa.string()),
    ]
)

SCHEMAS: Final = pa.schema(
    [("version", pa.int64()), ("schema", pa.string()), ("reason", pa.string())]
)


def checkpoints(view: StateView) -> pa.Table:
    """Return what is retained, the newest first: rows of `CHECKPOINTS`.

    `state` is complete (the sink is known to have it), in flight (the newest; perhaps not taken up
    yet), or orphan: on no chain, since Spark never took it up.
    """
    bases = set(view.history.bases())
    chain = {link.ref: link for link in view.chain()}
    rows = []
    for ref in reversed(view.refs):
        link = chain.get(ref)
        # An orphan is on no chain, so nothing has loaded it yet.
        checkpoint = view.history.load(ref) if link is None else link.checkpoint
        rows.append({**_head(checkpoint), "has_base": ref in bases, **_progress(link)})
    return pa.Table.from_pylist(rows, schema=CHECKPOINTS)


def _head(checkpoint: Checkpoint) -> dict[str, Any]:
    header = checkpoint.header
    return {
        "checkpoint": header.checkpoint,
        "epoch": header.epoch,
        "parent_checkpoint": header.parent_checkpoint,
        "parent_epoch": header.parent_epoch,
        "planned": pa.scalar(header.created, TIME),
        "splits": header.assigned_splits,
        "state_rows": header.state_rows,
        "readers": len(readers_of(checkpoint)),
        "quarantined": len(header.quarantined),
    }


def _progress(link: CheckpointSnapshot | None) -> Mapping[str, Any]:
    if link is None:
        return {"state": "orphan", "commits": 0}
    commits = link.commits.values()
    return {
        "state": "complete" if link.is_complete else "in flight",
        "committed": pa.scalar(link.completed, TIME),
        "commits": len(commits),
        "rows": sum(sum(commit.rows) for commit in commits),
        "bytes": sum(sum(commit.input_bytes) for commit in commits),
    }


def readers(view: StateView) -> pa.Table:
    """Each reader of each retained checkpoint of the chain, the newest first: rows of `READERS`."""
    rows = [row for link in view.chain() for row in _readers(link)]
    return pa.Table.from_pylist(rows, schema=READERS)


def _readers(link: CheckpointSnapshot) -> Sequence[dict[str, Any]]:
    # A reader that only continues a split has no assigned rows, and is listed with 0.
    splits = dict.fromkeys(readers_of(link.checkpoint), 0)
    for reader, batch in link.checkpoint.assigned:
        splits[reader] += batch.num_rows
    return [
        {
            "checkpoint": link.ref.checkpoint,
            "epoch": link.ref.epoch,
            "reader": reader,
            "state": link.outcome(reader),
            "splits": count,
            **_committed(link.commits.get(reader)),
        }
        for reader, count in splits.items()
    ]


def _committed(commit: ReaderCommit | None) -> Mapping[str, Any]:
    if commit is None:
        return {}
    return {
        "rows": sum(commit.rows),
        "bytes": sum(commit.input_bytes),
        "microseconds": sum(commit.microseconds),
        "returned": len(commit.returned),
        "unfinished": len(commit.unfinished),
        "skipped": len(commit.skipped),
        "dropped_records": sum(commit.dropped_records.values()),
        "processed": pa.scalar(commit.finished or None, TIME),
        "attempt": commit.attempt,
        "query_id": commit.query_id,
    }


def schemas(view: StateView) -> pa.Table:
    """The versions of an inferred schema, the oldest first: rows of `SCHEMAS`."""
    rows = [
        {
            "version": stored.version,
            # In canonical form, so that two equal schemas are equal as text.
            "schema": json.dumps(stored.struct, sort_keys=True, ensure_ascii=False),
            "reason": stored.reason,
        }
        for stored in SchemaHistory(view.store).all()
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS)


def checkpoints_in_flight(links: Sequence[CheckpointSnapshot]) -> list[dict[str, Any]]:
    """Each checkpoint that Spark is not known to have completed, oldest first.

    Args:
        links: a chain, the newest first.
    """
    running = [link for link in reversed(links) if not link.is_complete]
    if not running:
        return []
    # No limits: they decide what is cut next, which a look at the past does not ask.
    flight = CheckpointsInFlight(running[0].checkpoint.header.cut_after, 0, UNLIMITED)
    # The state does not say whether Spark has asked for them, and what is held does not depend on
    # that.
    records = [CheckpointRecord.restored(link) for link in running]
    flight.restore(records)
    gateways = Gateways(flight)
    return [
        {
            "checkpoint": link.ref.checkpoint,
            "readers": [_reader_in_flight(gateways, record, reader) for reader in record.readers],
        }
        for link, record in zip(running, records, strict=True)
    ]


def _reader_in_flight(gateways: Gateways, record: CheckpointRecord, reader: int) -> dict[str, Any]:
    splits, held = record.split_count(reader), gateways[reader].held_under(record)
    return {
        "reader": reader,
        "splits": splits,
        "committed": reader in record.committed,
        "heldSplits": 0 if held is None else splits,
        "heldEvents": 0 if held is None else len(record.events(reader)),
        "heldUnder": None if held is None else held.ref.checkpoint,
    }
