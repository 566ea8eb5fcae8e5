"""The command that finds data files of a landing stream that nothing refers to."""

from __future__ import annotations

from typing import Annotated

import typer

from ..arguments import Json, SourceName, State, StorageOptions, Yes
from ..output import plainly, print_json, print_pairs
from ..state_argument import find_state

_SHOWN = 20


def add_commands(app: typer.Typer) -> None:
    """Register it."""
    app.command()(sweep)


def sweep(
    state: State,
    land_at: Annotated[
        str, typer.Argument(metavar="LAND_AT", help="The query's landAt: where its data files are.")
    ],
    source_name: SourceName = "source",
    storage_options: StorageOptions = "{}",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Find data files of attempts that lost, and delete them; a query may run meanwhile."""
    with plainly():
        import json

        from ....checkpoint_meta.storage.urls import absolute
        from ....reader.landing.place import place_of
        from ....reader.landing.sweep import sweep as look

        store = find_state(state, source_name, storage_options)
        place = place_of(absolute(land_at), json.loads(storage_options))
        found = look(place, store, delete=yes)
        if as_json:
            print_json(
                {
                    "superseded": found.superseded,
                    "undecided": found.undecided,
                    "named": len(found.named),
                    "deleted": yes,
                }
            )
            return
        print_pairs(
            [
                ("files that commits name", str(len(found.named))),
                ("of attempts that lost", str(len(found.superseded))),
                ("whose reader has no commit", str(len(found.undecided))),
            ]
        )
        for path in [*found.superseded, *found.undecided][:_SHOWN]:
            typer.echo(f"  {path}")
        if found.superseded:
            typer.echo("deleted" if yes else "nothing was deleted: add --yes to do it")
