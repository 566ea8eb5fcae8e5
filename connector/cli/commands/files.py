"""`sluice files`, `sluice checkpoints`: rows of a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import pyarrow as pa
import typer

from ...views.amounts import counted
from ...views.catalog import table_of
from ..answer import ON_SCREEN, Answer, Rows
from ..arguments import Matching, ViewArguments
from ..view_filter import chosen, columns_for_people


def files(
    arguments: ViewArguments,
    view: Annotated[
        str,
        typer.Option(
            metavar="VIEW",
            help="Show this view: splits, skipped, quarantine, checkpoints, readers, schemas.",
        ),
    ] = "files",
    in_state: Annotated[
        str, typer.Option(metavar="STATE", help="Show only rows in this state: pending, read, ...")
    ] = "",
    matching: Matching = "",
    limit: Annotated[
        int,
        typer.Option(metavar="NUMBER", help="Print at most this many rows; 0 means all.", min=0),
    ] = 0,
) -> Answer:
    """List all files that were ever seen, with their state.

    With --view, list the rows of another view.
    """
    table = chosen(arguments.opened(), view, in_state=in_state, matching=matching)
    return listed(table, columns_for_people(view), limit)


def checkpoints(arguments: ViewArguments) -> Answer:
    """List the checkpoints that a query can start from."""
    table = table_of(arguments.opened(), "checkpoints")
    return listed(table, columns_for_people("checkpoints"))


def listed(table: pa.Table, columns: Sequence[str] = (), limit: int = 0) -> Answer:
    """Rows of a view, and how many there are."""
    rows = table.slice(0, limit or None)
    said = f"{min(len(rows), ON_SCREEN):,} of {counted(len(table), 'row')}"
    return Answer(rows, [Rows(rows, columns), said])
