"""The command that finds files of tasks, data or bad records, that nothing refers to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Annotated, Any

import typer

from ..arguments import ViewArguments, Yes
from ..output import print_json, print_pairs

_SHOWN = 20


def sweep(
    arguments: ViewArguments,
    write_to: Annotated[
        str,
        typer.Argument(
            metavar="WRITE_TO",
            help="Search this directory: the query's writeTo, or its badRecordsPath.",
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
    from ....reader.direct_write.place import Place
    from ....reader.direct_write.unreferenced_files import sweep as look
    from ..state_argument import parsed_storage_options

    storage = parsed_storage_options(arguments.storage_options)
    store = arguments.opened()
    place = Place(absolute(write_to), storage)
    files = look(place, store, delete=yes)
    # A batch may become part of a table meanwhile.
    tables = [_membership(one, storage) for one in table]
    outside = [path for path in files.named if tables and not any(has(path) for has in tables)]
    if arguments.as_json:
        print_json(
            {
                "superseded": files.superseded,
                "undecided": files.undecided,
                "named": len(files.named),
                "outside": outside if tables else None,
                "deleted": yes,
            }
        )
        return
    of_tables = {"of those in no table": str(len(outside))} if tables else {}
    print_pairs(
        {
            "files that commits name": str(len(files.named)),
            **of_tables,
            "of attempts that lost": str(len(files.superseded)),
            "whose reader has no commit": str(len(files.undecided)),
        }
    )
    for path in [*files.superseded, *files.undecided, *outside][:_SHOWN]:
        typer.echo(f"  {path}")
    if files.superseded:
        typer.echo("deleted" if yes else "nothing was deleted: add --yes to do it")


def _membership(table: str, storage_options: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return a function that says of a data file's path if it is, or was, part of a table."""
    from ....checkpoint_meta.documents.written_file import FileName
    from ....errors import TableError
    from ....tables.manifests import Manifests

    newest = _newest(table, storage_options)
    if newest is None:
        paths = set(Manifests(table, storage_options).paths())
        if not paths:
            raise TableError(
                "no table to compare data files with",
                table,
                "neither a Delta table nor manifests",
                "a Delta table, the directory of tables.manifest, or an Iceberg *.metadata.json",
            )
        return paths.__contains__
    newest_of = cache(newest)

    def is_within(path: str) -> bool:
        name = FileName.parse(path)
        # Files of older batches may have been rewritten or deleted there since, but were part of
        # the table, too.
        return name is not None and name.ref.checkpoint <= newest_of(name.lineage)

    return is_within


def _newest(table: str, storage_options: Mapping[str, Any]) -> Callable[[str], int] | None:
    """Lineage -> checkpoint of the newest batch, 0 without one; None for other tables."""
    if table.endswith(".metadata.json"):
        from pyiceberg.table import StaticTable

        from ....tables.iceberg_table import newest_checkpoint

        properties = StaticTable.from_metadata(table).properties
        return partial(newest_checkpoint, properties)
    from ....tables.delta_table import DeltaSink

    sink = DeltaSink(table, storage_options)
    opened = sink.opened()
    return None if opened is None else partial(sink.newest, opened)
