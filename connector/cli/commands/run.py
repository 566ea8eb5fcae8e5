"""`sluice run`: a direct write without Spark, or the same call as a query of Spark."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ....errors import OptionError, not_installed
from ...options.call import inferred_types
from ..arguments import Json
from ..output import Exit, plainly, print_json
from ..state_argument import parsed, parsed_options

if TYPE_CHECKING:
    from ....checkpoint_meta.documents.run_summary import RunSummary
    from ...host.run_record import BatchReport
    from ...query.query_ends import StartTerms


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """The arguments of the command."""

    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Read the files below this directory or URL.")
    ]
    to: Annotated[
        str,
        typer.Option(help="Write to delta:URL, iceberg:CATALOG.TABLE, or parquet:URL (manifests)."),
    ]
    checkpoint: Annotated[
        str, typer.Option(help="Use this checkpointLocation, which a Spark query may have begun.")
    ]
    file_format: Annotated[
        str, typer.Option("--format", help="Read files of this format (fileFormat).")
    ] = "json"
    schema: Annotated[
        str,
        typer.Option(
            help="Read these columns, such as 'id long, name string'. Without it, the schema is "
            "inferred and evolves."
        ),
    ] = ""
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all existing files are read: the default.")
    ] = False
    every: Annotated[
        str, typer.Option(help="Check for new files at this interval, such as 60s.")
    ] = ""
    option: Annotated[
        list[str] | None,
        typer.Option(help="Give any option of the source, as name=value. Repeat it."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            help="Use this many processes. By default one for each core, and none for a small "
            "batch.",
            min=1,
        ),
    ] = None
    wait: Annotated[
        str,
        typer.Option(
            help="Wait this long, such as 10m, for another run on this checkpoint to end."
        ),
    ] = ""
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Start although another run is at work, which ends with an error."
        ),
    ] = False
    new_input: Annotated[
        bool,
        typer.Option("--new-input", help="Read another input than before, from its beginning."),
    ] = False
    new_table: Annotated[
        bool,
        typer.Option(
            "--new-table", help="Write to another table than before, which gets the new rows only."
        ),
    ] = False
    append: Annotated[
        bool,
        typer.Option("--append", help="Read an input again that the table has from another query."),
    ] = False
    task_timeout: Annotated[
        str,
        typer.Option(
            help="Stop a process that has not finished its task after this time, such as 30m, and "
            "try the task again."
        ),
    ] = ""
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the first batch, and read and change nothing.")
    ] = False
    spark: Annotated[
        str, typer.Option(help="Run as a Spark query with this master, such as local[4].")
    ] = ""
    as_json: Json = False

    @property
    def options(self) -> dict[str, str]:
        """The options of the source."""
        options = {
            "path": self.path,
            "fileFormat": self.file_format,
            "checkpointLocation": self.checkpoint,
        }
        columns = {"writeSchema": self.schema} if self.schema else inferred_types(self.file_format)
        options |= columns
        return options | parsed_options(self.option or ())


def run(arguments: RunArguments) -> None:
    """Read new files into a table, without Spark.

    Ends with 0, with 1 after an error, with 2 if the call is wrong, and with 75 if another run on
    this checkpoint is at work.
    """
    with plainly(Exit.FOUND, lambda text: _as_flags(text, arguments.checkpoint)):
        if arguments.dry_run:
            _show_plan(arguments)
        elif arguments.spark:
            _run_in_spark(arguments)
        else:
            _run_here(arguments)


_FLAGS: Final = (
    (re.compile(r"""\.option\(["'](\w+)["'], ["'](.*?)["']\)"""), r"--option '\1=\2'"),
    (re.compile(r" or a StructType before \.load\(\)(; or writeSchema)?| before \.load\(\)"), ""),
    (re.compile(r"""\.schema\(["'](.*?)["']\)"""), r"--schema '\1'"),
    (re.compile(r"\.schema\(\.\.\.\)|\bwriteSchema\b"), "--schema"),
)


def _as_flags(text: str, checkpoint: str) -> str:
    """Write options as this command takes them, and commands with the checkpoint of the call."""
    for pattern, replacement in _FLAGS:
        text = pattern.sub(replacement, text)
    return text.replace(" CHECKPOINT", f" {shlex.quote(checkpoint)}")


def _seconds(arguments: RunArguments) -> float | None:
    if arguments.every and arguments.once:
        raise OptionError("--once and --every exclude each other", "", "both", "one of them")
    return _duration("--every", arguments.every)


def _duration(option: str, text: str) -> float | None:
    from ....checkpoint_meta.storage.units import parse_milliseconds

    if not text:
        return None
    # A plain number is of seconds here.
    text = f"{text}s" if text.isdecimal() else text
    milliseconds: int = parsed(option, text, parse_milliseconds)
    return milliseconds / 1000


def _terms(arguments: RunArguments) -> StartTerms:
    from ...query.query_ends import StartTerms

    if arguments.wait and arguments.take_over:
        raise OptionError("--wait and --take-over exclude each other", "", "both", "one of them")
    meant = arguments.new_input, arguments.new_table, arguments.append
    return StartTerms(_duration("--wait", arguments.wait) or 0.0, arguments.take_over, *meant)


def _run_here(arguments: RunArguments) -> None:
    from ...host.embedded_query import Stopped
    from ...host.run import embedded_run

    stop = Event()

    def on_signal(*_: Any) -> None:
        # The second one is a kill, which the checkpoint survives; processes of tasks see the end
        # of the pipe.
        if stop.is_set():
            os._exit(Exit.FOUND)
        stop.set()

    def wait(seconds: float) -> None:
        if stop.wait(seconds):
            raise Stopped

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    with _progress() as on_task:
        every = _seconds(arguments)
        run = embedded_run(
            arguments.options,
            arguments.to,
            every=every,
            workers=arguments.workers,
            on_task=on_task,
            terms=_terms(arguments),
            task_timeout=_duration("--task-timeout", arguments.task_timeout),
        )
        try:
            for report in run.batches(wait):
                _print_batch(report, as_json=arguments.as_json)
        finally:
            _print_end(run.summary, as_json=arguments.as_json)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Tasks of the running batch, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("tasks of the batch", total=None, visible=False)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=done < total)

        yield show


def _print_batch(report: BatchReport, *, as_json: bool) -> None:
    from ...views.amounts import counted, format_bytes

    if as_json:
        print_json(asdict(report))
    else:
        typer.echo(
            f"batch {report.number}: {counted(report.splits, 'split')}, "
            f"{counted(report.rows, 'row')} in {counted(report.files, 'data file')} "
            f"({format_bytes(report.bytes)}), {report.seconds:.2f} s"
        )
    # A log collector reads it through a pipe.
    sys.stdout.flush()


def _print_end(summary: RunSummary | None, *, as_json: bool) -> None:
    from ...views.run_text import run_text

    if summary is None:
        return  # Not even begun: the error says why.
    if as_json:
        print_json({"run": summary.model_dump(exclude={"format"})})
    else:
        typer.echo(f"run {run_text(summary)}")
    sys.stdout.flush()


def _show_plan(arguments: RunArguments) -> None:
    from ...host.dry_run import planned_batch
    from ...host.run import checked_with_target
    from ...views.amounts import counted, format_bytes

    planned = planned_batch(*checked_with_target(arguments.options, arguments.to))
    if arguments.as_json:
        print_json(None if planned is None else asdict(planned))
    elif planned is None:
        typer.echo("nothing new")
    else:
        again = ", which was begun before," if planned.is_repeated else ""
        typer.echo(
            f"batch {planned.number}{again} would read {counted(planned.splits, 'split')} "
            f"({format_bytes(planned.bytes)})"
        )


def _run_in_spark(arguments: RunArguments) -> None:
    try:
        from .spark_run import spark_run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise not_installed("--spark cannot run", "", "pyspark", "spark") from error
    from ...host.run import checked_with_target
    from ...host.run_record import RunRecord
    from ...query.ownership import await_owner
    from ...query.query_ends import check_start
    from ...source.rehearsal import check_sink

    options, target = checked_with_target(arguments.options, arguments.to)
    # Spark asks the sink once a batch is planned.
    check_sink(options, target.sink)
    terms = _terms(arguments)
    await_owner(options, terms)
    check_start(options, target.sink, terms)

    def on_batch(report: BatchReport) -> None:
        _print_batch(report, as_json=arguments.as_json)

    every, record = _seconds(arguments), RunRecord()
    try:
        spark_run(arguments.spark, options, target, every, record, on_batch)
    except BaseException as error:
        _print_end(record.end(error), as_json=arguments.as_json)
        raise
    _print_end(record.end(), as_json=arguments.as_json)
