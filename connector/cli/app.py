"""The command line `sluice`: its commands and their arguments.

Starts without Spark; a command imports what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .answer import ON_SCREEN, Answer, Outcome, Page, Rows
from .arguments import EditArguments, Matching, ViewArguments, Yes, register
from .commands import bootstrap, compact_table, reprocess, run, sweep, table_batches
from .doctor.checks import doctor
from .output import Exit
from .state_argument import parsed_storage_options
from .typer_app import new_app, run_app

if TYPE_CHECKING:
    import pyarrow as pa

app = new_app()


def check(
    config: Annotated[
        str, typer.Option(help="Check this configuration file of `sluice run`.")
    ] = "sluice.toml",
    json_schema: Annotated[
        bool,
        typer.Option("--json-schema", help="Print the JSON schema of such files, for editors."),
    ] = False,
) -> Generator[str, None, Answer]:
    """Check a configuration file and its places.

    Reads no rows, and leaves nothing behind. Ends with 2 if the file is wrong, with 1 if a place
    refuses, and with 75 if one does not answer.
    """
    import json

    from .commands.check import check_places
    from .feeds_file import schema
    from .run_arguments import RunArguments
    from .run_call import call_of, in_place

    if json_schema:
        return Answer(schema(), [json.dumps(schema(), indent=2)])
    findings = []
    for finding in check_places(call_of(in_place(RunArguments(config=config))).feeds):
        findings.append(finding)
        yield str(finding)
    # No rows say nothing in addition to the lines above.
    codes = {finding.code for finding in findings} - {Exit.FINE}
    return Answer([finding.document() for finding in findings], (), min(codes, default=Exit.FINE))


def status(arguments: ViewArguments) -> Answer:
    """Show the backlog, the rate, owner and last run.

    Ends with 1 if something needs attention.
    """
    from ..query.owner import owner_of
    from .commands.status import status_lines, status_of

    store = arguments.opened()
    figures = status_of(store, parsed_storage_options(arguments.storage_options))
    # A scheduled check goes by the exit code.
    code = Exit.FOUND if figures["attention"] else Exit.FINE
    return Answer(figures, [status_lines(figures, str(owner_of(store)))], code)


def watch(
    arguments: ViewArguments,
    interval: Annotated[
        float, typer.Option(help="Wait this many seconds between two updates.", min=0.1)
    ] = 2.0,
    count: Annotated[
        int, typer.Option(help="Stop after this many updates; 0 means no limit.", min=0)
    ] = 0,
) -> Generator[Answer, None, None]:
    """Show the status live, with trend and estimated end.

    Waits for a state that does not exist yet.
    """
    from .commands.watch import looks

    storage_options = parsed_storage_options(arguments.storage_options)
    return looks(arguments.opened, interval, count, storage_options)


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
) -> Answer:
    """List all files that were ever seen, with their state.

    With --view, list the rows of another view.
    """
    from .view_filter import chosen, columns_for_people

    table = chosen(arguments.opened(), view, in_state=in_state, matching=matching)
    return _listed(table, columns_for_people(view), limit)


def _listed(table: pa.Table, columns: Sequence[str] = (), limit: int = 0) -> Answer:
    from ..views.amounts import counted

    rows = table.slice(0, limit or None)
    said = f"{min(len(rows), ON_SCREEN):,} of {counted(len(table), 'row')}"
    return Answer(rows, [Rows(rows, columns), said])


def checkpoints(arguments: ViewArguments) -> Answer:
    """List the checkpoints that a query can start from."""
    from ..views.catalog import table_of
    from .view_filter import columns_for_people

    table = table_of(arguments.opened(), "checkpoints")
    return _listed(table, columns_for_people("checkpoints"))


def inspect(
    arguments: ViewArguments,
    checkpoint: Annotated[
        str, typer.Argument(help="Show the checkpoint with this id, or id-epoch: 42 or 42-3.")
    ],
) -> Answer:
    """Show one checkpoint, and what its readers committed.

    This is its header, its assignments and its reader commits.
    """
    from ..views.state_view import look_at
    from .commands.inspect import inspected, inspected_lines

    details = look_at(arguments.opened(), lambda view: inspected(view, checkpoint))
    columns = ("path", "start", "end", "reader", "state", "rows", "reason")
    return Answer(details, [inspected_lines(details), Rows(details["splits"], columns)])


def diff(
    arguments: ViewArguments,
    before: Annotated[
        str, typer.Argument(metavar="A", help="Compare this checkpoint: 42 or 42-3.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="B", help="Compare it with this checkpoint, later or earlier.")
    ],
) -> Answer:
    """Compare two checkpoints.

    Lists what was found and what was assigned between them.
    """
    from ..views.state_view import look_at
    from .commands.diff import difference

    return _listed(look_at(arguments.opened(), lambda view: difference(view, before, after)))


def verify(arguments: ViewArguments) -> Answer:
    """Check all references and checksums of a state.

    Says what is damaged, and what can still be restored.
    """
    from ..query.spark_checkpoint import damaged_objects, lacks_metadata, offsets_referred
    from .commands.verify import verified
    from .commands.verify_lines import verified_lines

    store, storage = arguments.opened(), parsed_storage_options(arguments.storage_options)
    result = verified(store, offsets_referred(arguments.state, store, storage))
    if lacks_metadata(arguments.state, store, storage):
        what = "Spark's file of the query's id: put it back from a copy, or Spark does not start"
        result["findings"].append({"object": "metadata", "problem": "missing", "what": what})
    for name, why in damaged_objects(arguments.state, store, storage):
        result["findings"].append({"object": name, "problem": "damaged", "what": why})
    # A scheduled check goes by the exit code.
    code = Exit.FOUND if result["findings"] else Exit.FINE
    findings = Rows(result["findings"], ("problem", "object", "what"))
    return Answer(result, [*([findings] if findings.rows else []), *verified_lines(result)], code)


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
) -> Answer:
    """Make the state of a stopped query small.

    Writes bases, merges the index, and deletes what no retained checkpoint needs.
    """
    from .commands.compact import compact_plan
    from .offline_edit import edit

    return edit(arguments, lambda store: compact_plan(store, retain, retain_for))


def take_back_schema(arguments: EditArguments) -> Answer:
    """Take back the newest version of an inferred schema.

    The next start uses the version before it; the stored versions stay.
    """
    from .commands.take_back_schema import take_back_plan
    from .offline_edit import edit

    return edit(arguments, take_back_plan)


def take_over(arguments: ViewArguments, yes: Yes = False) -> Answer:
    """Supersede the query that owns a state.

    It ends with FencedError, and the next start need not wait for it.
    """
    from .commands.take_over import take_over_plan
    from .offline_edit import carry_out

    store = arguments.opened()
    return carry_out(lambda: take_over_plan(store), yes=yes)


def rebind(arguments: EditArguments) -> Answer:
    """Forget the input and table; the next start sets them.

    It records those that it finds. A query that has not begun may write into a table that has its
    input. `sluice run` has flags for that.
    """
    from .commands.rebind import rebind_plan
    from .offline_edit import edit

    return edit(arguments, rebind_plan, may_begin=True)


def runbook(
    words: Annotated[
        str, typer.Argument(help="Show the sections whose heading contains this: FencedError.")
    ] = "",
) -> Answer:
    """Show what to do about an error or an alert.

    Without an argument, show the whole page.
    """
    from .commands.runbook import sections_about

    text = sections_about(words)
    return Answer({"sections": text}, [Page(text)])


# In the order of `sluice --help`, each with an example.
_COMMANDS: Final[Mapping[str, Mapping[Callable[..., Outcome], str]]] = {
    "Read": {
        run.run: "sluice run landing --to delta:orders --checkpoint checkpoints/orders",
        check: "sluice check --config sluice.toml",
    },
    "Look": {
        status: "sluice status checkpoints/orders",
        watch: "sluice watch checkpoints/orders --interval 5",
        files: "sluice files checkpoints/orders --in-state pending --matching '*/2026/*'",
        checkpoints: "sluice checkpoints checkpoints/orders",
        inspect: "sluice inspect checkpoints/orders 42",
        diff: "sluice diff checkpoints/orders 41 42",
        verify: "sluice verify checkpoints/orders",
    },
    "Start a new query": {
        bootstrap.fork: "sluice fork checkpoints/orders checkpoints/again --at 41",
        bootstrap.import_spark: "sluice import-spark old-checkpoint landing checkpoints/orders",
        bootstrap.import_auto_loader: "sluice import-auto-loader export.csv landing "
        "checkpoints/orders",
    },
    "Read files again, or never": {
        reprocess.requeue: "sluice requeue checkpoints/orders --matching '*/2026-01-02/*' --yes",
        reprocess.rewind: "sluice rewind checkpoints/orders --to 41 --yes",
        reprocess.forget: "sluice forget checkpoints/orders --quarantined --yes",
        reprocess.retract: "sluice retract checkpoints/orders --matching '*/2026-01-02/*' --yes",
        reprocess.waive: "sluice waive checkpoints/orders --yes",
        reprocess.reread: "sluice reread checkpoints/orders --to delta:orders --yes",
        reprocess.orders: "sluice orders checkpoints/orders",
    },
    "Repair": {
        take_over: "sluice take-over checkpoints/orders --yes",
        rebind: "sluice rebind checkpoints/orders --yes",
        take_back_schema: "sluice take-back-schema checkpoints/orders --yes",
        table_batches.add_batches: "sluice add-batches checkpoints/orders delta:orders --yes",
        table_batches.remove_batches: "sluice remove-batches checkpoints/orders delta:orders --yes",
    },
    "Clean up": {
        compact: "sluice compact checkpoints/orders --yes",
        compact_table.compact_table: "sluice compact-table delta:orders",
        sweep.sweep: "sluice sweep checkpoints/orders orders --yes",
    },
    "Help": {
        doctor: "sluice doctor checkpoints/orders --path landing --to delta:orders",
        runbook: "sluice runbook FencedError",
    },
}
for _panel, _commands in _COMMANDS.items():
    for _command, _example in _commands.items():
        register(app, _command, _panel, _example)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code.

    Args:
        arguments: of the command line; those of the process if None.
    """
    return run_app(app, arguments)


__all__ = ["app", "main"]
