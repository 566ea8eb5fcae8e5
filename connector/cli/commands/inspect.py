"""`sluice inspect`: one checkpoint whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import pyarrow as pa

from ....checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.documents.layout import checkpoint_object
from ....checkpoint_meta.documents.reader_commit import ReaderCommit
from ...views.amounts import counted
from ...views.splits import assigned_splits
from ...views.state_view import StateView, with_view
from ..answer import Answer, Rows, formatted
from ..arguments import ViewArguments, argument, checkpoint_named


def inspected(view: StateView, name: str) -> dict[str, Any]:
    """Header, state on the chain, commits, and the splits (any source's, in its own columns)."""
    ref = checkpoint_named(view, name)
    on_chain = {link.ref: link for link in view.chain()}
    # Alone is an orphan, or a base whose checkpoint has been deleted.
    link = on_chain.get(ref) or _alone(view, ref)
    header = link.checkpoint.header.model_dump()
    state = "orphan"
    if ref in on_chain:
        state = "complete" if link.is_complete else "in flight"
    rows = [row for batch in link.checkpoint.state for row in batch.to_pylist()]
    return {
        "object": checkpoint_object(ref) if link.checkpoint.header.kind == "delta" else "base",
        "state": state,
        "planned": datetime.fromtimestamp(header["created"] / 1e6, UTC),
        "header": header,
        "commits": [_commit_report(commit) for _, commit in sorted(link.commits.items())],
        "abandoned": sorted(link.abandoned),
        "splits": _splits(view, link),
        "became_pending": [row for row in rows if not row.get("withdrawn") and _has_bytes(row)],
        "became_known": [row for row in rows if row.get("known")],
        "forgotten": [row for row in rows if row.get("withdrawn") and _has_bytes(row)],
    }


def _has_bytes(row: dict[str, Any]) -> bool:
    # What another source says of itself has no borders.
    return "start" not in row or bool(row["start"] < row["end"])


def _alone(view: StateView, ref: CheckpointRef) -> CheckpointSnapshot:
    if ref not in view.refs:
        # Its checkpoint has been deleted, which happens only long after Spark has gone on.
        return CheckpointSnapshot(view.history.read_base(ref), is_complete=True)
    return view.snapshot(ref)


def _splits(view: StateView, link: CheckpointSnapshot) -> list[dict[str, Any]]:
    if link.checkpoint.header.enumerator == "files":
        tables = assigned_splits([link], view.commits.find)
        return [row for table in tables for row in table.to_pylist()]
    return [
        {"reader": reader, "state": link.outcome(reader), **row}
        for reader, batch in link.checkpoint.assigned
        for row in pa.Table.from_batches([batch]).to_pylist()
    ]


def _commit_report(commit: ReaderCommit) -> dict[str, Any]:
    finished = datetime.fromtimestamp(commit.finished / 1e6, UTC) if commit.finished else None
    return {**commit.model_dump(mode="json"), "finished": finished}


def inspected_lines(details: dict[str, Any]) -> dict[str, str]:
    """The header in readable form; the splits follow."""
    header = details["header"]
    lines = {
        "checkpoint": f"{header['checkpoint']} of epoch {header['epoch']}: {details['state']}",
        "parent": f"{header['parent_checkpoint']} of epoch {header['parent_epoch']}",
        "object": details["object"],
        "planned": formatted(details["planned"]),
        "source": header["enumerator"],
        "assigned": counted(header["assigned_splits"], "split"),
        "state rows": f"{header['state_rows']:,}",
        "sent back before": counted(len(header["attempts"]), "split"),
        "quarantined here": counted(len(header["quarantined"]), "split"),
        "orders": f"up to {header['orders']}" if header["orders"] else "none",
        "checksum": header["checksum"],
    }
    for commit in details["commits"]:
        rows, size = sum(commit["rows"]), formatted(sum(commit["input_bytes"]), "bytes")
        when = formatted(commit["finished"])
        lines[f"reader {commit['reader']}"] = (
            f"{counted(rows, 'row')} of {size}, attempt {commit['attempt']}, {when}"
        )
    return lines


def inspect(
    arguments: ViewArguments,
    checkpoint: Annotated[
        str, argument("ID", "Show the checkpoint with this id, or id-epoch: 42 or 42-3.")
    ],
) -> Answer:
    """Show one checkpoint, and what its readers committed.

    This is its header, its assignments and its reader commits.
    """
    details = with_view(arguments.opened(), lambda view: inspected(view, checkpoint))
    columns = ("path", "start", "end", "reader", "state", "rows", "reason")
    return Answer(details, [inspected_lines(details), Rows(details["splits"], columns)])
