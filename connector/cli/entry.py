"""The way in: says what is missing where the command line's libraries are not installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def run() -> int:
    """Run the command that the process was given; the exit code."""
    # The main package does without both; only this extra brings them.
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"sluice: {' and '.join(missing)} not installed. "
            "The command line is an extra: pip install 'pyspark-sluice[cli]'\n"
        )
        return 2
    from ..session.processes import leave_pandas_out

    # Before the commands are imported: they make arrays, and with the first one pyarrow looks.
    leave_pandas_out()
    from .app import main

    return main()
