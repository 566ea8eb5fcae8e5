"""The command line `sluice`: its commands and their arguments.

Starts without Spark; a command imports what it needs.
"""

from __future__ import annotations

import json
from typing import Annotated, Final

import typer

from .arguments import EditArguments, Json, Matching, ViewArguments, Yes, register
from .commands import bootstrap, compact_table, reprocess, run, sweep, table_batches
from .doctor.patient import Patient
from .output import Ended, Exit, print_json, print_pairs, print_rows, print_table
from .state_argument import parsed_storage_options
from .typer_app import new_app, run_app

app = new_app()

_ON_SCREEN: Final = 200
"""Rows that are enough for a terminal; --json prints all of them."""


def check(
    config: Annotated[
        str, typer.Option(help="Check this configuration file of `sluice run`.")
    ] = "sluice.toml",
    json_schema: Annotated[
        bool,
        typer.Option("--json-schema", help="Print the JSON schema of such files, for editors."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a configuration file and its places.

    Reads no rows, and leaves nothing behind. Ends with 2 if the file is wrong, with 1 if a place
    refuses, and with 75 if one does not answer.
    """
    from .commands.check import check_places
    from .feeds_file import schema
    from .run_arguments import RunArguments
    from .run_call import call_of, in_place

    if json_schema:
        typer.echo(json.dumps(schema(), indent=2))
        return
    call = call_of(in_place(RunArguments(config=config)))
    findings = []
    for finding in check_places(call.feeds):
        findings.append(finding)
        if not as_json:
            typer.echo(str(finding))
    if as_json:
        print_json([finding.document() for finding in findings])
    if codes := {finding.code for finding in findings} - {Exit.FINE}:
        raise Ended(min(codes))


def status(arguments: ViewArguments) -> None:
    """Show the backlog, the rate, owner and last run.

    Ends with 1 if something needs attention.
    """
    from ..query.owner import owner_of
    from .commands.status import status_lines, status_of
    from .state_argument import parsed_storage_options

    store = arguments.opened()
    figures = status_of(store, parsed_storage_options(arguments.storage_options))
    if arguments.as_json:
        print_json(figures)
    else:
        print_pairs(status_lines(figures, str(owner_of(store))))
    if figures["attention"]:
        # A scheduled check goes by the exit code.
        raise Ended(Exit.FOUND)


def watch(
    arguments: ViewArguments,
    interval: Annotated[
        float, typer.Option(help="Wait this many seconds between two updates.", min=0.1)
    ] = 2.0,
    count: Annotated[
        int, typer.Option(help="Stop after this many updates; 0 means no limit.", min=0)
    ] = 0,
) -> None:
    """Show the status live, with trend and estimated end.

    Waits for a state that does not exist yet.
    """
    from .commands.watch import watch_state
    from .state_argument import parsed_storage_options

    storage_options = parsed_storage_options(arguments.storage_options)
    watch_state(arguments.opened, interval, count, storage_options, as_json=arguments.as_json)


def files(
    arguments: ViewArguments,
    view: Annotated[
        str,
        typer.Option(
            help="Show this view: splits, skipped, quarantine, checkpoints, readers, schemas."
        ),
    ] = "files",
    in_state: Annotated[
        str, typer.Option(help="Show only rows in this state: pending, read, ...")
    ] = "",
    matching: Matching = "",
    limit: Annotated[
        int, typer.Option(help="Print at most this many rows; 0 means all.", min=0)
    ] = 0,
) -> None:
    """List all files that were ever seen, with their state.

    With --view, list the rows of another view.
    """
    from ..views.amounts import counted
    from .view_filter import chosen, columns_for_people

    table = chosen(arguments.opened(), view, in_state=in_state, matching=matching)
    shown = table.slice(0, limit or None)
    print_rows(shown, columns_for_people(view), in_json=arguments.as_json, most=_ON_SCREEN)
    if not arguments.as_json:
        typer.echo(f"{min(len(shown), _ON_SCREEN):,} of {counted(table.num_rows, 'row')}")


def checkpoints(arguments: ViewArguments) -> None:
    """List the checkpoints that a query can start from."""
    from ..views.catalog import table_of
    from .view_filter import columns_for_people

    table = table_of(arguments.opened(), "checkpoints")
    print_rows(table, columns_for_people("checkpoints"), in_json=arguments.as_json)


def inspect(
    arguments: ViewArguments,
    checkpoint: Annotated[
        str, typer.Argument(help="Show the checkpoint with this id, or id-epoch: 42 or 42-3.")
    ],
) -> None:
    """Show one checkpoint, and what its readers committed.

    This is its header, its assignments and its reader commits.
    """
    from ..views.state_view import look_at
    from .commands.inspect import inspected, inspected_lines

    details = look_at(arguments.opened(), lambda view: inspected(view, checkpoint))
    if arguments.as_json:
        print_json(details)
    else:
        print_pairs(inspected_lines(details))
        columns = ("path", "start", "end", "reader", "state", "rows", "reason")
        print_table(details["splits"][:100], columns)


def diff(
    arguments: ViewArguments,
    before: Annotated[
        str, typer.Argument(metavar="A", help="Compare this checkpoint: 42 or 42-3.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="B", help="Compare it with this checkpoint, later or earlier.")
    ],
) -> None:
    """Compare two checkpoints.

    Lists what was found and what was assigned between them.
    """
    from ..views.amounts import counted
    from ..views.state_view import look_at
    from .commands.diff import difference

    ranges = look_at(arguments.opened(), lambda view: difference(view, before, after))
    print_rows(ranges, ranges.schema.names, in_json=arguments.as_json, most=_ON_SCREEN)
    if not arguments.as_json:
        typer.echo(counted(ranges.num_rows, "different range"))


def verify(arguments: ViewArguments) -> None:
    """Check all references and checksums of a state.

    Says what is damaged, and what can still be restored.
    """
    from ..query.spark_checkpoint import damaged_objects, lacks_metadata, offsets_referred
    from .commands.verify import verified
    from .commands.verify_lines import verified_lines
    from .state_argument import parsed_storage_options

    store, storage = arguments.opened(), parsed_storage_options(arguments.storage_options)
    result = verified(store, offsets_referred(arguments.state, store, storage))
    if lacks_metadata(arguments.state, store, storage):
        what = "Spark's file of the query's id: put it back from a copy, or Spark does not start"
        result["findings"].append({"object": "metadata", "problem": "missing", "what": what})
    for name, why in damaged_objects(arguments.state, store, storage):
        result["findings"].append({"object": name, "problem": "damaged", "what": why})
    if arguments.as_json:
        print_json(result)
    else:
        print_table(result["findings"], ("problem", "object", "what"))
        for line in verified_lines(result):
            typer.echo(line)
    if result["findings"]:
        # A scheduled check goes by the exit code.
        raise Ended(Exit.FOUND)


def compact(
    arguments: EditArguments,
    retain: Annotated[
        int,
        typer.Option(
            # Spark keeps as many batches in its own logs by default (minBatchesToRetain).
            min=100,
            help="Keep this many checkpoints.",
        ),
    ] = 100,
    retain_for: Annotated[
        str,
        typer.Option(
            help="Also keep younger checkpoints than this, the query's retainCheckpointsFor, such "
            "as 7d."
        ),
    ] = "0",
) -> None:
    """Make the state of a stopped query small.

    Writes bases, merges the index, and deletes what no retained checkpoint needs.
    """
    from .commands.compact import compact_plan
    from .offline_edit import edit

    edit(arguments, lambda store: compact_plan(store, retain, retain_for))


def take_back_schema(arguments: EditArguments) -> None:
    """Take back the newest version of an inferred schema.

    The next start uses the version before it; the stored versions stay.
    """
    from .commands.take_back_schema import take_back_plan
    from .offline_edit import edit

    edit(arguments, take_back_plan)


def take_over(arguments: ViewArguments, yes: Yes = False) -> None:
    """Supersede the query that owns a state.

    It ends with FencedError, and the next start need not wait for it.
    """
    from .commands.take_over import take_over_plan
    from .offline_edit import carry_out

    store = arguments.opened()
    carry_out(lambda: take_over_plan(store), yes=yes, as_json=arguments.as_json)


def rebind(arguments: EditArguments) -> None:
    """Forget the input and table; the next start sets them.

    It records those that it finds. For a lost checkpoint, name the directory of the table's data
    files: the next new query may read its inputs again. `sluice run` has flags for that.
    """
    from ..query.query_ends import has_inputs, records_of_table
    from .commands.rebind import rebind_plan, repeat_plan
    from .offline_edit import carry_out, edit

    storage = parsed_storage_options(arguments.storage_options)
    place = records_of_table(arguments.state, storage)
    if has_inputs(place):
        carry_out(lambda: repeat_plan(place), yes=arguments.yes, as_json=arguments.as_json)
    else:
        edit(arguments, rebind_plan)


def doctor(patient: Patient) -> None:
    """Check whether a query can start on this machine.

    Looks at Python, Java, packages, registration, paths and executors.
    """
    from .doctor.diagnosis import diagnose

    diagnose(patient)


def runbook(
    words: Annotated[
        str, typer.Argument(help="Show the sections whose heading contains this: FencedError.")
    ] = "",
) -> None:
    """Show what to do about an error or an alert.

    Without an argument, show the whole page.
    """
    from .commands.runbook import sections_about

    typer.echo(sections_about(words))


# In the order of `sluice --help`.
for _command in (
    *(run.run, check, status, watch, files, checkpoints, inspect, diff, verify),
    *(bootstrap.fork, bootstrap.import_spark, bootstrap.import_auto_loader),
    *(reprocess.requeue, reprocess.rewind, reprocess.forget, reprocess.waive, reprocess.reread),
    *(reprocess.orders, take_over, rebind, take_back_schema, compact),
    *(compact_table.compact_table, sweep.sweep),
    *(table_batches.add_batches, table_batches.remove_batches),
    *(doctor, runbook),
):
    register(app, _command)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code.

    Args:
        arguments: of the command line; those of the process if None.
    """
    return run_app(app, arguments)


__all__ = ["app", "main"]
