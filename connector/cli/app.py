"""The command line `sluice`: its commands and their arguments.

Starts without Spark; a command imports what it needs.

Not here: what the commands do.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from .arguments import Matching, ViewArguments, command
from .commands import bootstrap, compact, doctor, queue_setup, reprocess, sweep
from .output import Ended, Exit, plainly, print_json, print_json_rows, print_pairs, print_table

app = typer.Typer(
    name="sluice",
    help=("Inspect and verify the state of a sluice source, and start new queries from it."),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"pyspark-sluice {version('pyspark-sluice')}")
        raise typer.Exit


@app.callback()
def sluice(
    is_version: Annotated[
        bool,
        typer.Option(
            "--version", help="The version of this package.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Inspect and verify the state of a sluice source, and start new queries from it."""
    del is_version


@command(app)
def status(given: ViewArguments) -> None:
    """Backlog, rate, age of the oldest pending file, owner, quarantine."""
    with plainly():
        from ..views.owner import owner_of
        from .commands.status import status_lines, status_of

        store = given.opened()
        found = status_of(store)
        if given.as_json:
            print_json(found)
        else:
            print_pairs(status_lines(found, str(owner_of(store))))


@command(app)
def watch(
    given: ViewArguments,
    interval: Annotated[float, typer.Option(help="Seconds between two updates.", min=0.1)] = 2.0,
    count: Annotated[int, typer.Option(help="Number of updates; 0 means no limit.", min=0)] = 0,
) -> None:
    """The same, live, with the backlog's progress, trend and end; waits for a state."""
    with plainly():
        from .commands.watch import watch_state

        watch_state(
            given.opened,
            interval,
            count,
            as_json=given.as_json,
        )


@command(app)
def files(
    given: ViewArguments,
    view: Annotated[
        str,
        typer.Option(
            help="Another view: splits, skipped, quarantine, checkpoints, readers, schemas."
        ),
    ] = "files",
    in_state: Annotated[
        str, typer.Option("--in-state", help="Only rows in this state: pending, read, ...")
    ] = "",
    matching: Matching = "",
    limit: Annotated[int, typer.Option(help="Maximum number of rows; 0 means all.", min=0)] = 0,
) -> None:
    """Every file that was ever seen, with its state; or the rows of another view."""
    with plainly():
        from .view_filter import chosen, columns_for_people

        store = given.opened()
        table = chosen(store, view, in_state=in_state, matching=matching)
        shown = table.slice(0, limit) if limit else table
        if given.as_json:
            print_json_rows([shown])
        else:
            people = shown.slice(0, 200)
            print_table(people.to_pylist(), columns_for_people(view))
            typer.echo(f"{people.num_rows} of {table.num_rows} rows")


@command(app)
def checkpoints(given: ViewArguments) -> None:
    """The retained checkpoints: a new query can start from each of them."""
    with plainly():
        from ..views.catalog import table_of
        from .view_filter import columns_for_people

        table = table_of(given.opened(), "checkpoints")
        if given.as_json:
            print_json_rows([table])
        else:
            print_table(table.to_pylist(), columns_for_people("checkpoints"))


@command(app)
def inspect(
    given: ViewArguments,
    checkpoint: Annotated[str, typer.Argument(help="An id, or id-epoch: 42 or 42-3.")],
) -> None:
    """One checkpoint: its header, its assignments, and what its readers committed."""
    with plainly():
        from .commands.inspect import inspected, inspected_lines

        found = inspected(given.opened(), checkpoint)
        if given.as_json:
            print_json(found)
        else:
            print_pairs(inspected_lines(found))
            columns = ("path", "start", "end", "reader", "state", "rows", "reason")
            print_table(found["splits"][:100], columns)


@command(app)
def diff(
    given: ViewArguments,
    before: Annotated[str, typer.Argument(metavar="A", help="A checkpoint: 42 or 42-3.")],
    after: Annotated[
        str, typer.Argument(metavar="B", help="Another checkpoint, later or earlier.")
    ],
) -> None:
    """What was found and what was assigned between two checkpoints."""
    with plainly():
        from .commands.diff import difference

        store = given.opened()
        found = difference(store, before, after)
        if given.as_json:
            print_json_rows([found])
        else:
            print_table(found.slice(0, 200).to_pylist(), found.schema.names)
            typer.echo(f"{found.num_rows} ranges differ")


@command(app)
def verify(given: ViewArguments) -> None:
    """Check every reference and checksum: what is damaged, and what can still be restored."""
    with plainly():
        from .spark_offset_log import offsets_referred
        from .state_argument import parsed_storage_options
        from .verify.verification import verified, verified_lines

        store = given.opened()
        referred = offsets_referred(
            given.state, store, parsed_storage_options(given.storage_options)
        )
        found = verified(store, referred)
        if given.as_json:
            print_json(found)
        else:
            print_table(found["findings"], ("problem", "object", "what"))
            for line in verified_lines(found):
                typer.echo(line)
        if found["findings"]:
            raise Ended(Exit.FOUND)


@command(app)
def report(
    given: ViewArguments,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Where to write the page; replaces an existing file."),
    ] = "sluice-report.html",
) -> None:
    """One HTML page: throughput, backlog, batch durations, skew, files by state, quarantine."""
    with plainly():
        from ..report.html_page import write_report

        written = write_report(given.opened(), output)
        if given.as_json:
            print_json({"report": str(written.absolute())})
        else:
            typer.echo(str(written))


for _module in (bootstrap, reprocess, compact, sweep, queue_setup, doctor):
    for _command in _module.COMMANDS:
        command(app)(_command)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code.

    Args:
        arguments: of the command line; those of the process if None.
    """
    try:
        app(args=arguments, prog_name="sluice", standalone_mode=True)
    except Ended as ended:
        return int(ended.code)
    except SystemExit as ended:
        return int(ended.code or 0) if isinstance(ended.code, int | None) else 1
    except KeyboardInterrupt:
        return 130
    return int(Exit.FINE)


__all__ = ["app", "main"]
