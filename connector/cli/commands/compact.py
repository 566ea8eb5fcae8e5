"""The command that does a query's upkeep while it is stopped, and its arguments.

Not here: what it does (`compact_plan.py`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from ..arguments import Force, ViewArguments, Yes
from ..output import print_json, print_pairs


def compact(
    given: ViewArguments,
    retain: Annotated[
        int,
        typer.Option(
            # Spark keeps as many batches in its own logs by default (minBatchesToRetain).
            min=100,
            help="Keep this many checkpoints: the query's minCheckpointsToRetain.",
        ),
    ] = 100,
    retain_for: Annotated[
        str,
        typer.Option(
            "--retain-for",
            help=(
                "Also keep younger checkpoints than this, the query's retainCheckpointsFor, such "
                "as 7d."
            ),
        ),
    ] = "0",
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Make the state of a stopped query small.

    Writes bases, merges the index, and deletes what no retained checkpoint needs.
    """
    from ...views.state_view import consistent
    from ..running_check import refuse_if_held
    from .compact_plan import compact_lines, compact_plan

    seconds = _seconds(retain_for)
    store = given.opened()
    plan = consistent(lambda: compact_plan(store, retain, seconds))
    if yes:
        refuse_if_held(store, force=force)
    report = plan.run() if yes else plan.report()
    if given.as_json:
        print_json(report)
        return
    print_pairs(compact_lines(report))
    if not report["written"]:
        typer.echo("nothing was written: add --yes to do it")


def _seconds(text: str) -> float:
    from ....checkpoint_meta.storage.units import parse_milliseconds
    from ....errors import OptionError

    try:
        return float(parse_milliseconds(text)) / 1000
    except ValueError as error:
        raise OptionError("--retain-for does not parse", "", repr(text), str(error)) from None


COMMANDS = (compact,)
