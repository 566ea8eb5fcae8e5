"""The command that finds files of tasks, data or bad records, that nothing refers to."""

from __future__ import annotations

from typing import Annotated

import typer

from ..arguments import ViewArguments, Yes
from ..output import print_json, print_pairs

_SHOWN = 20


def sweep(
    given: ViewArguments,
    land_at: Annotated[
        str,
        typer.Argument(
            metavar="LAND_AT",
            help="Search this directory: the query's landAt, or its badRecordsPath.",
        ),
    ],
    table: Annotated[
        list[str],
        typer.Option(
            help="Report committed files that this table does not have: a Delta table, the "
            "directory of tables.manifest, or an Iceberg *.metadata.json. Repeat it for more."
        ),
    ] = [],  # noqa: B006 - typer wants a list
    yes: Yes = False,
) -> None:
    """Delete files that losing task attempts left behind.

    Without --yes, they are only listed. The query may be running.
    """
    from ....checkpoint_meta.storage.urls import absolute
    from ....reader.landing.place import place_of
    from ....reader.landing.unreferenced_files import sweep as look
    from ....tables.membership import membership
    from ..state_argument import parsed_storage_options

    storage = parsed_storage_options(given.storage_options)
    store = given.opened()
    place = place_of(absolute(land_at), storage)
    found = look(place, store, delete=yes)
    # A batch may become part of a table meanwhile.
    tables = [membership(one, storage) for one in table]
    outside = [path for path in found.named if tables and not any(has(path) for has in tables)]
    if given.as_json:
        print_json(
            {
                "superseded": found.superseded,
                "undecided": found.undecided,
                "named": len(found.named),
                "outside": outside if tables else None,
                "deleted": yes,
            }
        )
        return
    of_tables = [("of those in no table", str(len(outside)))] if tables else []
    print_pairs(
        [
            ("files that commits name", str(len(found.named))),
            *of_tables,
            ("of attempts that lost", str(len(found.superseded))),
            ("whose reader has no commit", str(len(found.undecided))),
        ]
    )
    for path in [*found.superseded, *found.undecided, *outside][:_SHOWN]:
        typer.echo(f"  {path}")
    if found.superseded:
        typer.echo("deleted" if yes else "nothing was deleted: add --yes to do it")


COMMANDS = (sweep,)
