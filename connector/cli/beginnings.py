"""The commands that prepare a state for a new query, and their arguments.

Not here: what they do (`forking.py`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from .arguments import Json, New, SourceName, State, StorageOptions, Yes
from .place import find_state, parsed_storage_options
from .telling import plainly, print_json, print_pairs, print_table


def add_commands(app: typer.Typer) -> None:
    """Register them."""
    app.command()(fork)


def fork(  # noqa: PLR0913, PLR0917
    state: State,
    new: New,
    at: Annotated[str, typer.Option("--at", help="A checkpoint: 42, or 42-3 of epoch 3.")] = "",
    at_time: Annotated[
        str,
        typer.Option(
            "--at-time", help="The newest that was cut by then: ISO 8601, UTC where it says none."
        ),
    ] = "",
    matching: Annotated[
        str,
        typer.Option(
            "--matching",
            help="Only files whose paths match a pattern with * ? [] are read; others that the "
            "state knows of count as seen.",
        ),
    ] = "",
    source_name: SourceName = "source",
    storage_options: StorageOptions = "{}",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """A state for a new query that begins after a checkpoint of this one, which stays as it is."""
    with plainly():
        from ..views.state import consistent
        from .forking import chosen_fork, fork_lines
        from .seeding import target_at

        store = find_state(state, source_name, storage_options)
        target = target_at(new, source_name, parsed_storage_options(storage_options))
        found = consistent(lambda: chosen_fork(store, at, at_time, matching))
        told = found.write(target) if yes else consistent(found.planned)
        if as_json:
            print_json({**told, "new": target.location})
            return
        print_pairs(fork_lines(told, target.location))
        if told["pending"]:
            print_table(told["pending"], ("path", "start", "end"), "pending, the first of them")
        _say_what_is_next(target.location, written=told["written"])


def _say_what_is_next(location: str, *, written: bool) -> None:
    if written:
        typer.echo(f"written: start the new query with checkpointLocation={location}")
    else:
        typer.echo("nothing was written: add --yes to do it")
