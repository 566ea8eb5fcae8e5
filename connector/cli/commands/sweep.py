"""The command that finds files of tasks, data or bad records, that nothing refers to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from ....errors import TableError
from ....reader.direct_write.place import Place
from ....reader.direct_write.unreferenced_files import sweep as look
from ....tables.table_files import TableFiles, named_by_tables_of
from ..answer import Answer
from ..arguments import ViewArguments, Yes, argument, parsed_storage_options, setting


def sweep(
    arguments: ViewArguments,
    write_to: Annotated[
        str,
        argument("WRITE_TO", "Search this directory: the query's writeTo, or its badRecordsPath."),
    ],
    table: Annotated[
        list[str],
        setting(
            "TABLE",
            "Report committed files that this table does not have: a Delta table, the "
            "directory of tables.manifest, or an Iceberg *.metadata.json. Repeat it for more.",
        ),
    ] = [],  # noqa: B006 - typer wants a list
    yes: Yes = False,
) -> Answer:
    """Delete files that losing task attempts left behind.

    Without --yes, they are only listed. The query may be running.
    """
    storage = parsed_storage_options(arguments.storage_options)
    store = arguments.opened()
    place = Place(write_to, storage)
    around = named_by_tables_of(write_to, storage)
    tables = [_opened(one, storage) for one in table]

    def in_table() -> Callable[[str], bool]:
        is_named = around()
        return lambda path: is_named(path) or any(one.has(path) for one in tables)

    files = look(place, store, in_table=in_table, delete=yes)
    # A batch may become part of a table meanwhile.
    tables = [_opened(one, storage) for one in table]
    outside = [path for path in files.named if tables and not any(one.had(path) for one in tables)]
    lost = {
        "superseded": files.superseded,
        "undecided": files.undecided,
        "named": len(files.named),
        "outside": outside if tables else None,
    }
    note = "deleted" if yes else "nothing was deleted: add --yes to do it"
    notes = [note] if files.superseded else []
    shown = {
        "files that commits name": len(files.named),
        "of those in no table": lost["outside"],
        "of attempts that lost": files.superseded or "none",
        "whose reader has no commit": files.undecided or "none",
    }
    return Answer({**lost, "deleted": yes}, [shown, *notes])


def _opened(table: str, storage_options: Mapping[str, Any]) -> TableFiles:

    files = TableFiles.of(table, storage_options)
    if not files.names:
        raise TableError(
            "no table to compare data files with",
            table,
            "neither a Delta table nor manifests, or no data files in it",
            "a Delta table, the directory of tables.manifest, or an Iceberg *.metadata.json",
        )
    return files
