"""`sluice diff`: what separates two checkpoints."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from ....checkpoint_meta.documents.checkpoint import Checkpoint
from ....checkpoint_meta.files.file_columns import became_pending, is_withdrawn, ranges_in
from ....errors import StateCorruptError
from ...views.state_view import StateView, fields, with_view
from ..answer import Answer
from ..arguments import ViewArguments
from ..state_argument import check_is_of_files, checkpoint_named, no_checkpoint
from .files import listed

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
    before: Annotated[
        str, typer.Argument(metavar="A", help="Compare this checkpoint: 42 or 42-3.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="B", help="Compare it with this checkpoint, later or earlier.")
    ],
) -> Answer:
    """Compare two checkpoints.

    Lists what was found and what was assigned between them.
    """
    return listed(with_view(arguments.opened(), lambda view: difference(view, before, after)))
