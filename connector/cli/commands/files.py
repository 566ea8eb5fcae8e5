"""`sluice files`, `checkpoints`, `diff` and `inspect`: rows of a view, and of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ....checkpoint_meta.checkpoint_snapshot import CheckpointSnapshot
from ....checkpoint_meta.documents.checkpoint import Checkpoint
from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.documents.layout import checkpoint_object
from ....checkpoint_meta.documents.reader_commit import ReaderCommit
from ....checkpoint_meta.files.file_columns import became_pending, is_withdrawn, ranges_in
from ....errors import OptionError, StateCorruptError
from ...views.amounts import counted
from ...views.catalog import View, table_of, view_named
from ...views.splits import assigned_splits
from ...views.state_view import StateView, fields, with_view
from ..answer import ON_SCREEN, Answer, Rows, formatted
from ..arguments import (
    Matching,
    ViewArguments,
    argument,
    check_is_of_files,
    checkpoint_named,
    no_checkpoint,
    setting,
)

_PEOPLE: Final = {
    "files": "path size state reason discovered processed checkpoint rows",
    "splits": "path start end state reason checkpoint reader rows",
    "skipped": "path start end reason checkpoint reader",
    "quarantine": "path start end attempts checkpoint reason",
    "checkpoints": "checkpoint epoch state planned splits readers commits rows bytes has_base",
    "readers": "checkpoint epoch reader state splits rows bytes microseconds returned",
    "schemas": "version reason schema",
}
"""View -> its columns that fit a screen."""


def files(
    arguments: ViewArguments,
    view: Annotated[
        str,
        setting(
            "VIEW", "Show this view: splits, skipped, quarantine, checkpoints, readers, schemas."
        ),
    ] = "files",
    in_state: Annotated[
        str, setting("STATE", "Show only rows in this state: pending, read, ...")
    ] = "",
    matching: Matching = "",
    limit: Annotated[
        int, setting("NUMBER", "Print at most this many rows; 0 means all.", least=0)
    ] = 0,
) -> Answer:
    """List all files that were ever seen, with their state.

    With --view, list the rows of another view.
    """
    chosen = view_named(view)
    if in_state:
        chosen.check_state(in_state)
        _require(chosen, "state", "--in-state")
    if matching:
        _require(chosen, "path", "--matching")
    table = table_of(arguments.opened(), chosen.name, matching)
    if in_state:
        table = table.filter(pc.equal(table.column("state"), in_state))
    return listed(table, _PEOPLE[chosen.name].split(), limit)


def _require(view: View, column: str, option: str) -> None:
    if column not in view.schema.names:
        expected = f"a view with the column {column}"
        raise OptionError(f"{option} does not apply to this view", "", view.name, expected)


def checkpoints(arguments: ViewArguments) -> Answer:
    """List the checkpoints that a query can start from."""
    table = table_of(arguments.opened(), "checkpoints")
    return listed(table, _PEOPLE["checkpoints"].split())


def listed(table: pa.Table, columns: Sequence[str] = (), limit: int = 0) -> Answer:
    """Rows of a view, and how many there are."""
    rows = table.slice(0, limit or None)
    said = f"{min(len(rows), ON_SCREEN):,} of {counted(len(table), 'row')}"
    return Answer(rows, [Rows(rows, columns), said])


DIFFERENCE = pa.schema(
    [
        *fields(pa.string(), "change", "path"),
        *fields(pa.int64(), "start", "end", "size"),
        ("reader", pa.int32()),
        ("checkpoint", pa.int64()),
    ]
)


def difference(view: StateView, first: str, second: str) -> pa.Table:
    """Ranges that became pending (`found`), were `assigned`, or `forgotten` by an order.

    After one and up to the other.
    """
    check_is_of_files(view, "compared")
    # A difference goes forward; the two may be given in either order.
    older, newer = sorted([checkpoint_named(view, first), checkpoint_named(view, second)])
    try:
        links = view.history.between(older, newer)
    # No damage here: two incarnations that began at one checkpoint have two chains.
    except StateCorruptError as error:
        found = f"{older} and {newer}, which are not on the same chain"
        expected = "two checkpoints, one descended from the other"
        raise no_checkpoint(view, found, expected) from error
    return pa.concat_tables([DIFFERENCE.empty_table(), *map(_changes, links)])


def _changes(link: Checkpoint) -> pa.Table:
    parts: list[tuple[str, int | None, pa.RecordBatch]] = []
    for batch in link.state:
        parts.append(("found", None, became_pending(batch)))
        parts.append(("forgotten", None, ranges_in(batch, is_withdrawn(batch))))
    parts += [("assigned", reader, batch) for reader, batch in link.assigned]
    tables = [DIFFERENCE.empty_table()]
    for change, reader, batch in parts:
        count = batch.num_rows
        columns = [
            pa.repeat(change, count),
            *(batch.column(name) for name in ("path", "start", "end", "size")),
            pa.repeat(pa.scalar(reader, pa.int32()), count),
            pa.repeat(pa.scalar(link.header.checkpoint, pa.int64()), count),
        ]
        tables.append(pa.table(columns, schema=DIFFERENCE))
    return pa.concat_tables(tables)


def diff(
    arguments: ViewArguments,
    before: Annotated[str, argument("A", "Compare this checkpoint: 42 or 42-3.")],
    after: Annotated[str, argument("B", "Compare it with this checkpoint, later or earlier.")],
) -> Answer:
    """Compare two checkpoints.

    Lists what was found and what was assigned between them.
    """
    return listed(with_view(arguments.opened(), lambda view: difference(view, before, after)))


# One checkpoint ------------------------------------------------------------------------------


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
