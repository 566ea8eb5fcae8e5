"""The views `checkpoints`, `readers` and `schemas`: what the protocol has written, of any source.

Not here: splits and files (`splits.py`, `files.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.documents.reader_assignment import readers_of
from ...checkpoint_meta.documents.reader_commit import ReaderCommit
from ...checkpoint_meta.documents.schema_history import SchemaHistory
from .state_view import TIME, CheckpointView, StateView

CHECKPOINTS: Final = pa.schema(
    [
        ("checkpoint", pa.int64()),
        ("epoch", pa.int64()),
        ("parent_checkpoint", pa.int64()),
        ("parent_epoch", pa.int64()),
        ("state", pa.string()),
        ("planned", TIME),
        ("committed", TIME),
        ("has_base", pa.bool_()),
        ("splits", pa.int64()),
        ("state_rows", pa.int64()),
        ("readers", pa.int32()),
        ("acknowledged", pa.int32()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("quarantined", pa.int64()),
    ]
)

READERS: Final = pa.schema(
    [
        ("checkpoint", pa.int64()),
        ("epoch", pa.int64()),
        ("reader", pa.int32()),
        ("state", pa.string()),
        ("splits", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("microseconds", pa.int64()),
        ("returned", pa.int64()),
        ("unfinished", pa.int64()),
        ("skipped", pa.int64()),
        ("dropped_records", pa.int64()),
        ("processed", TIME),
        ("attempt", pa.int32()),
        ("query_id", pa.string()),
    ]
)

SCHEMAS: Final = pa.schema(
    [("version", pa.int64()), ("schema", pa.string()), ("reason", pa.string())]
)


def checkpoints(view: StateView) -> pa.Table:
    """What is retained, the newest first: rows of `CHECKPOINTS`.

    `state` is running (the newest; perhaps not taken up yet), complete, or orphan: on no chain,
    since Spark never took it up.

    Raises:
        StateError: one of them is damaged, or newer than this release.
    """
    bases = set(view.history.bases())
    chain = {link.ref: link for link in view.chain()}
    rows = []
    for ref in reversed(view.refs):
        link = chain.get(ref)
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


def _progress(link: CheckpointView | None) -> Mapping[str, Any]:
    if link is None:
        return {"state": "orphan", "acknowledged": 0}
    commits = link.commits.values()
    return {
        "state": "complete" if link.has_finished else "running",
        "committed": pa.scalar(link.completed, TIME),
        "acknowledged": len(commits),
        "rows": sum(sum(commit.rows) for commit in commits),
        "bytes": sum(sum(commit.input_bytes) for commit in commits),
    }


def readers(view: StateView) -> pa.Table:
    """Each reader of each retained checkpoint of the chain, the newest first: rows of `READERS`.

    Raises:
        StateError: a checkpoint or a commit is damaged, or newer than this release.
    """
    rows = [row for link in view.chain() for row in _readers(link)]
    return pa.Table.from_pylist(rows, schema=READERS)


def _readers(link: CheckpointView) -> Sequence[dict[str, Any]]:
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
            **_acknowledged(link.commits.get(reader)),
        }
        for reader, count in splits.items()
    ]


def _acknowledged(commit: ReaderCommit | None) -> Mapping[str, Any]:
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
    """The versions of an inferred schema, the oldest first: rows of `SCHEMAS`.

    Raises:
        StateError: one of them is damaged, or newer than this release.
    """
    rows = [
        {
            "version": stored.version,
            "schema": json.dumps(stored.schema, sort_keys=True, ensure_ascii=False),
            "reason": stored.reason,
        }
        for stored in SchemaHistory(view.store).all()
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS)
