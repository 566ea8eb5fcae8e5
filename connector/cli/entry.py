"""The way in: prepares the process before anything heavy is imported."""

from __future__ import annotations


def run() -> int:
    """Run the command that the process was given; the exit code."""
    from ..session.processes import leave_pandas_out

    # Before the commands are imported: they make arrays, and with the first one pyarrow looks.
    leave_pandas_out()
    from .app import main

    return main()
