"""`sluice files`, `checkpoints` and `diff`: rows of a view, and what separates two checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import pyarrow as pa
import pyarrow.compute as pc

from ....checkpoint_meta.documents.checkpoint import Checkpoint
from ....checkpoint_meta.files.file_columns import became_pending, is_withdrawn, ranges_in
from ....errors import OptionError, StateCorruptError
from ...views.amounts import counted
from ...views.catalog import View, table_of, view_named
from ...views.state_view import StateView, fields, with_view
from ..answer import ON_SCREEN, Answer, Rows
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
