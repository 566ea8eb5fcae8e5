"""The command that closes the books of a query."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from ....tables.table_sink import TableSink
from ...audit.audit import Audit
from ...audit.books import ENTRIES, Books
from ...host.run import target_of
from ...session.processes import without_pandas
from ..answer import Answer, Exit, Rows
from ..arguments import ViewArguments, flag, parsed_options, parsed_storage_options, setting


def audit(
    arguments: ViewArguments,
    table: Annotated[
        str, setting("TABLE", "Compare with this table, as --to names it: delta:URL.")
    ],
    expect: Annotated[
        str,
        setting(
            "LIST",
            "Compare with the lists of a sender: CSV or JSON lines with name or path and, "
            "where known, rows, bytes, md5, sha256; or *.md5 and *.sha256.",
        ),
    ] = "",
    partial: Annotated[bool, flag("--partial", "The lists name only some of the files.")] = False,
    recount: Annotated[bool, flag("--recount", "Count the rows of each file with DuckDB.")] = False,
    option: Annotated[
        list[str],
        setting(
            "NAME=VALUE",
            "Use this option of the query where it decides which files are read and how. "
            "Repeat it for more.",
        ),
    ] = [],  # noqa: B006 - typer wants a list
) -> Answer:
    """Compare what was delivered with what is in the table.

    Ends with 1 if something differs or could not be compared.
    """
    storage = parsed_storage_options(arguments.storage_options)
    sink = target_of(table, storage).sink
    assert isinstance(sink, TableSink)
    given = parsed_options(option)
    # pyarrow would import it with the first number that it compares a column with.
    with without_pandas():
        books = Audit(arguments.opened(), sink, storage, expect, partial, recount, given).run()
    return _answer(books)


def _answer(books: Books) -> Answer:
    sums: list[dict[str, Any]] = [{"": "files", **books.files}, {"": "rows", **books.rows}]
    shown: list[Any] = [Rows(sums, ("", *ENTRIES))]
    if books.rows.get("others"):
        shown.append(f"rows of no file that is known: {books.rows['others']:,}")
    for difference in books.differences:
        unverified = "UNVERIFIED: " if difference.unverified else ""
        shown.append(f"{unverified}{difference.what}: {difference.count:,}")
        shown += [f"  {name}" for name in difference.names]
    document = {"equal": books.balance, **asdict(books)}
    if books.balance:
        return Answer(document, [*shown, "equal"])
    return Answer(document, shown, Exit.FOUND)
