"""What `sluice doctor` is asked to look at, and what one check finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from ..arguments import SharedArguments

Verdict = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, kw_only=True)
class Patient(SharedArguments):
    """The arguments of the command."""

    state: Annotated[
        str,
        typer.Argument(
            metavar="[STATE]",
            help="Check this state directory or checkpointLocation, which need not exist yet.",
        ),
    ] = ""
    path: Annotated[str, typer.Option(help="Check the path that the query loads.")] = ""
    to: Annotated[
        str, typer.Option(help="Check the place of this table, such as delta:URL or parquet:URL.")
    ] = ""
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="Check with this option of the query, as NAME=VALUE. Repeat it for more options."
        ),
    ] = None
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Start a session, and run the checks in its tasks as well."),
    ] = False
    master: Annotated[
        str, typer.Option(help="Use this master for that session; implies --spark.")
    ] = ""


@dataclass(frozen=True)
class Finding:
    """One check: what was found, what was expected, and the way out."""

    what: str
    verdict: Verdict
    found: str
    expected: str = ""
    way_out: str = ""
