"""The command line `sluice`: its commands and their arguments.

Starts without Spark; a command imports what it needs.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Final

import typer

from .arguments import register
from .typer_app import new_app, run_app

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
        ("inspect", "inspect", "ck/orders 42"),
        ("diff", "diff", "ck/orders 41 42"),
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
        ("take-over", "take_over", "ck/orders --yes"),
        ("rebind", "rebind", "ck/orders --yes"),
        ("take-back-schema", "take_back_schema", "ck/orders --yes"),
        ("add-batches", "table_batches", "ck/orders delta:orders --yes"),
        ("remove-batches", "table_batches", "ck/orders delta:orders --yes"),
    ),
    "Clean up": (
        ("compact", "compact", "ck/orders --yes"),
        ("compact-table", "compact_table", "delta:orders"),
        ("sweep", "sweep", "ck/orders orders --yes"),
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
    return run_app(app_of(first if is_known else ""), arguments)
