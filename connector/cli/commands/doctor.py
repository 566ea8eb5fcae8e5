"""The command `doctor` and its arguments.

Not here: what it looks at (`doctor/`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from ..arguments import SharedArguments


def doctor(
    given: SharedArguments,
    state: Annotated[
        str,
        typer.Argument(
            metavar="[STATE]",
            help=("Check this state directory or checkpointLocation, which need not exist yet."),
        ),
    ] = "",
    path: Annotated[str, typer.Option("--path", help="Check the path that the query loads.")] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            help="Check with this option of the query, as NAME=VALUE. Repeat it for more options.",
        ),
    ] = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Start a session, and run the checks in its tasks as well."),
    ] = False,
    master: Annotated[
        str, typer.Option("--master", help="Use this master for that session; implies --spark.")
    ] = "",
) -> None:
    """Check whether a query can start on this machine.

    Looks at Python, Java, packages, registration, paths and executors.
    """
    from ..doctor.diagnosis import Patient, diagnose
    from ..state_argument import parsed_options

    wanted = master or ("local[2]" if spark else "")
    options = parsed_options(option or ())
    patient = Patient(state, path, given.source_name, given.storage_options, options, wanted)
    diagnose(patient, as_json=given.as_json)


COMMANDS = (doctor,)
