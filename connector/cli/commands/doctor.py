"""The command `doctor` and its arguments.

Not here: what it looks at (`doctor/`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from ..arguments import SharedArguments
from ..output import plainly


def doctor(
    given: SharedArguments,
    state: Annotated[
        str,
        typer.Argument(
            metavar="[STATE]",
            help=("A state directory or a checkpointLocation, which need not exist yet."),
        ),
    ] = "",
    path: Annotated[str, typer.Option("--path", help="The path that the query loads.")] = "",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="NAME=VALUE: an option of the query. May be repeated."),
    ] = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Start a session, and run the checks in its tasks as well."),
    ] = False,
    master: Annotated[
        str, typer.Option("--master", help="The master of that session; implies --spark.")
    ] = "",
) -> None:
    """Check if a query can start: Python, Java, packages, registration, paths, executors."""
    with plainly():
        from ..doctor.diagnosis import Patient, diagnose, options_of

        wanted = master or ("local[2]" if spark else "")
        options = options_of(option or [])
        patient = Patient(state, path, given.source_name, given.storage_options, options, wanted)
        diagnose(patient, as_json=given.as_json)


COMMANDS = (doctor,)
