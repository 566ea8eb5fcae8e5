"""`sluice run`: a direct write without Spark, or the same call as a query of Spark; its feeds."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from ....checkpoint_meta.storage.storage_errors import may_pass
from ....errors import OptionError, not_installed
from ...host.wording import as_flags
from ..answer import (
    Answer,
    Exit,
    ExitWith,
    complain,
    errors_as_messages,
    show,
    told,
    write_json_log,
)
from ..run_arguments import DEFAULT_FILE, NEEDED, Call, RunArguments, feed_of

if TYPE_CHECKING:
    from ....checkpoint_meta.documents.query_records import RunSummary
    from ...host.embedded_query import EmbeddedRun
    from ...host.feeds import Feed
    from ...host.run_record import BatchReport


def run(arguments: RunArguments) -> None:
    """Read new files into a table, without Spark.

    Needs PATH, --to and --checkpoint. With --config, reads all feeds of a file in one process.

    Ends with 0; with 1 if a person is needed; with 2 if the call or the file is wrong; and with 75
    to be tried again: another run is at work, or a store does not answer.
    """
    with errors_as_messages(Exit.FOUND, lambda text: as_flags(text, arguments.checkpoint)):
        arguments = in_place(arguments)
        call = call_of(arguments)
        if call.process.log_format == "json":
            write_json_log()
        if call.process.dry_run:
            _show_plans(call)
        elif call.process.spark:
            _run_in_spark(call)
        else:
            _run_here(arguments, call)


def _run_here(arguments: RunArguments, call: Call) -> None:
    from ...host.feeds import Feeds
    from ..metrics import exported

    with _progress(call) as on_task, exported(call.process) as metrics:
        printer = Printer(call, on_task)
        feeds = Feeds(call.process.workers, [printer, *([metrics] if metrics else [])])
        stops = 0

        def on_stop(*_: Any) -> None:
            nonlocal stops
            stops += 1
            # The second one is a kill, which the checkpoint survives; processes of tasks see the
            # end of the pipe.
            if stops > 1:
                os._exit(Exit.FOUND)
            feeds.stop()

        def read_again() -> Mapping[str, Feed] | None:
            try:
                printer.call = call_of(arguments)
            except OptionError as error:
                complain(f"{error}\nThe feeds run on as they were.")
                return None
            return printer.call.feeds

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, on_stop)
        if arguments.config:
            signal.signal(signal.SIGHUP, lambda *_: feeds.change(read_again))
        feeds.run(call.feeds)
    _end(feeds.failures)


def _end(failures: Mapping[str, BaseException]) -> None:
    """Raise the error of the only feed; of several, whose errors were printed, the code of all."""
    if "" in failures:
        raise failures[""]
    if failures:
        can_wait = all(map(may_pass, failures.values()))
        raise ExitWith(Exit.BUSY if can_wait else Exit.FOUND)


class Printer:
    """Prints what becomes of feeds, a line each; of several feeds with their names."""

    def __init__(self, call: Call, on_task: Callable[[int, int], None]) -> None:
        self.call, self._on_task = call, on_task
        self._lock = Lock()

    def begins(self, name: str, run: EmbeddedRun) -> None:
        """Says nothing: a run has a line at its end."""

    def on_task(self, _: str, done: int, tasks: int) -> None:
        """Show it on a terminal."""
        self._on_task(done, tasks)

    def batch(self, name: str, report: BatchReport) -> None:
        """Print a line about a batch."""
        from ...views.amounts import counted, format_bytes

        text = (
            f"batch {report.number}: {counted(report.splits, 'split')}, "
            f"{counted(report.rows, 'row')} in {counted(report.files, 'data file')} "
            f"({format_bytes(report.bytes)}), {report.seconds:.2f} s"
        )
        self._print(name, text, asdict(report))

    def ended(self, name: str, summary: RunSummary | None, error: BaseException | None) -> None:
        """Print a line about a run."""
        from ...views.amounts import run_text

        checkpoint = self.call.arguments[name].checkpoint if name in self.call.arguments else ""
        if summary is not None:
            document = summary.model_dump(exclude={"format"})
            document["error"] = as_flags(summary.error, checkpoint)
            self._print(name, f"run {run_text(summary)}", {"run": document})
        # The error of a single feed is that of the command.
        if name and error is not None:
            with self._lock:
                complain(as_flags(told(error), checkpoint), name)

    def _print(self, name: str, text: str, document: dict[str, Any]) -> None:
        with self._lock:
            _show(self.call, name, text, document)


def _show(call: Call, name: str, text: str, document: dict[str, Any] | None) -> None:
    """Print a line about a feed; of several feeds with its name."""
    named = {"feed": name, **(document or {})} if name else document
    show(Answer(named, [f"{name}: {text}" if name else text]), in_json=call.process.as_json)


@contextmanager
def _progress(call: Call) -> Iterator[Callable[[int, int], None]]:
    """Tasks of the running batch, on a terminal only; several feeds would take turns in it."""
    if not sys.stderr.isatty() or len(call.feeds) > 1:
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # On one terminal lines are printed above the bar; in a pipe they stay what they are.
    is_one = sys.stdout.isatty()
    console = Console(stderr=True)
    with Progress(console=console, transient=True, redirect_stdout=is_one) as bar:
        task = bar.add_task("tasks of the batch", total=None, visible=False)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=done < total)

        yield show


def _show_plans(call: Call) -> None:
    from ...host.run import checked_with_target, planned_batch
    from ...views.amounts import counted, format_bytes

    for name, feed in call.feeds.items():
        planned = planned_batch(*checked_with_target(feed.options, feed.to))
        if planned is None:
            _show(call, name, "nothing new", {"batch": None} if name else None)
            continue
        again = ", which was begun before," if planned.is_repeated else ""
        text = (
            f"batch {planned.number}{again} would read {counted(planned.splits, 'split')} "
            f"({format_bytes(planned.bytes)})"
        )
        _show(call, name, text, {"batch": asdict(planned)} if name else asdict(planned))


def _run_in_spark(call: Call) -> None:
    try:
        from .spark_run import spark_run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise not_installed("--spark cannot run", "", "pyspark", "spark") from error
    from ...host.run import checked_with_target
    from ...host.run_record import RunRecord
    from ...query.start_check import check_start
    from ...source.rehearsal import check_sink

    if len(call.feeds) > 1 and any(feed.every for feed in call.feeds.values()):
        raise OptionError("--spark with --every runs one feed", "", "several feeds", "--only NAME")
    printer, failures = Printer(call, lambda *_: None), dict[str, BaseException]()
    # One after the other: a process has one session.
    for name, feed in call.feeds.items():
        record = RunRecord()
        try:
            options, target = checked_with_target(feed.options, feed.to)
            # Spark asks the sink once a batch is planned.
            check_sink(options, target.sink)
            check_start(options, target.sink, feed.terms)
            on_batch = partial(printer.batch, name)
            spark_run(call.process.spark, options, target, feed.every, record, on_batch)
        except Exception as error:  # noqa: BLE001 - the next feed is read even so
            failures[name] = error
        error_of_run = failures.get(name)
        printer.ended(name, record.end(error_of_run) if record.has_begun else None, error_of_run)
    _end(failures)


def in_place(arguments: RunArguments) -> RunArguments:
    """Go to the directory of the configuration file, which its relative paths start from."""
    file = arguments.config
    # As `sluice check` does.
    if not any(getattr(arguments, name) for name in NEEDED) and os.path.exists(DEFAULT_FILE):
        file = file or DEFAULT_FILE
    if not file:
        return arguments
    config = os.path.abspath(file)
    # What is not there is an error of the file, which names it.
    with suppress(OSError):
        os.chdir(os.path.dirname(config))
    return replace(arguments, config=config)


def call_of(arguments: RunArguments) -> Call:
    """The feeds that a call names, or its configuration file; nothing is looked at yet.

    Raises:
        OptionError: something is wrong with the call or with the file.
    """
    from ...host.run import check_target_name

    if arguments.config:
        # What reads files takes time to import.
        from ..feeds_file import call_of_file

        return call_of_file(arguments)
    if arguments.only:
        raise OptionError("--only chooses feeds of a file", "", "no --config", "--config FILE")
    if missing := [flag for name, flag in NEEDED.items() if not getattr(arguments, name)]:
        what = "the call does not say what to read, and where to write it"
        found, expected = f"no {', '.join(missing)}", "PATH, --to and --checkpoint, or --config"
        raise OptionError(what, "", found, expected)
    check_target_name(arguments.to)
    return Call(arguments, {"": feed_of(arguments)}, {"": arguments})
