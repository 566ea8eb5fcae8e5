"""The command line without its commands: how it is called, and its exit code."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from .output import Exit, ExitWith


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


def run_app(app: typer.Typer, arguments: list[str] | None = None) -> int:
    """Run a command of `app`; the exit code."""
    try:
        # Standalone, so that typer itself reports a wrong call; it ends with SystemExit in any
        # case.
        _command(app)(args=arguments, prog_name="sluice", standalone_mode=True)
    except ExitWith as ended:
        return int(ended.code)
    except SystemExit as ended:
        return int(ended.code or 0) if isinstance(ended.code, int | None) else 1
    # 128 and the number of SIGINT, which is what a shell reports.
    except KeyboardInterrupt:
        return 130
    return int(Exit.FINE)
