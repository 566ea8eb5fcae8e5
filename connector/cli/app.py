"""The command line `sluice`: its commands and their arguments, how it is called, its exit code.

Starts without Spark; a command imports what it needs.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typing_extensions import override

from .answer import Exit, ExitWith
from .arguments import register


class _Grouped(TyperGroup):
    """Lists the commands of each panel below its name, in the order in which they were added."""

    @override
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = str(getattr(command, "rich_help_panel", "") or "Commands")
            panels.setdefault(panel, []).append((name, command.get_short_help_str(1000)))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


def new_app() -> typer.Typer:
    """Create the command line; `register` adds a command."""
    app = typer.Typer(
        name="sluice",
        cls=_Grouped,
        no_args_is_help=True,
        # With it, a pattern such as [a-z] in a help text would be taken for markup.
        rich_markup_mode=None,
        # Its tracebacks print local variables, which may be secrets.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(sluice)
    return app


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"pyspark-sluice {version('pyspark-sluice')}")
        raise typer.Exit


def sluice(
    is_version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version of this package and exit.",
            callback=_version,
            # Before the command is looked for, of which there may be none.
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Run a query without Spark, inspect and verify a state, and start new queries from it."""
    del is_version


# Typer itself puts all commands together again at each call.
_command = cache(typer.main.get_command)


# In the order of `sluice --help`: the name, the module in commands/, and arguments for the example.
_COMMANDS: Final = {
    "Read": (
        ("run", "run", "landing --to delta:orders --checkpoint ck/orders"),
        ("check", "check", "--config sluice.toml"),
    ),
    "Look": (
        ("status", "status", "ck/orders"),
        ("watch", "watch", "ck/orders --interval 5"),
        ("files", "files", "ck/orders --in-state pending --matching '*/2026/*'"),
        ("checkpoints", "files", "ck/orders"),
        ("inspect", "files", "ck/orders 42"),
        ("diff", "files", "ck/orders 41 42"),
        ("verify", "verify", "ck/orders"),
        ("audit", "audit", "ck/orders --table delta:orders"),
    ),
    "Start a new query": (
        ("fork", "bootstrap", "ck/orders ck/again --at 41"),
        ("import-spark", "bootstrap", "old-checkpoint landing ck/orders"),
        ("import-auto-loader", "bootstrap", "export.csv landing ck/orders"),
    ),
    "Read files again, or never": (
        ("requeue", "reprocess", "ck/orders --matching '*/2026-01-02/*' --yes"),
        ("rewind", "reprocess", "ck/orders --to 41 --yes"),
        ("forget", "reprocess", "ck/orders --quarantined --yes"),
        ("retract", "reprocess", "ck/orders --matching '*/2026-01-02/*' --yes"),
        ("waive", "reprocess", "ck/orders --yes"),
        ("reread", "reprocess", "ck/orders --to delta:orders --yes"),
        ("orders", "reprocess", "ck/orders"),
    ),
    "Repair": (
        ("take-over", "repair", "ck/orders --yes"),
        ("rebind", "repair", "ck/orders --yes"),
        ("take-back-schema", "repair", "ck/orders --yes"),
        ("add-batches", "repair", "ck/orders delta:orders --yes"),
        ("remove-batches", "repair", "ck/orders delta:orders --yes"),
    ),
    "Clean up": (
        ("compact", "clean_up", "ck/orders --yes"),
        ("compact-table", "clean_up", "delta:orders"),
        ("sweep", "clean_up", "ck/orders orders --yes"),
    ),
    "Help": (
        ("doctor", "doctor", "ck/orders --path landing --to delta:orders"),
        ("runbook", "runbook", "FencedError"),
    ),
}


@cache
def app_of(chosen: str = "") -> typer.Typer:
    """The command line with one command, or with all: what the others import takes time."""
    app = new_app()
    for panel, commands in _COMMANDS.items():
        for name, module, example in commands:
            if chosen in ("", name):
                functions = import_module(f".commands.{module}", __package__)
                function = getattr(functions, name.replace("-", "_"))
                register(app, function, panel, f"Example: sluice {name} {example}")
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code.

    Args:
        arguments: of the command line; those of the process if None.
    """
    first = "".join((sys.argv[1:] if arguments is None else arguments)[:1])
    is_known = any(name == first for panel in _COMMANDS.values() for name, _, _ in panel)
    try:
        # Standalone, so that typer itself reports a wrong call; it ends with SystemExit in any
        # case.
        command = _command(app_of(first if is_known else ""))
        command(args=arguments, prog_name="sluice", standalone_mode=True)
    except ExitWith as ended:
        return int(ended.code)
    except SystemExit as ended:
        return int(ended.code or 0) if isinstance(ended.code, int | None) else 1
    # 128 and the number of SIGINT, which is what a shell reports.
    except KeyboardInterrupt:
        return 130
    return int(Exit.FINE)
