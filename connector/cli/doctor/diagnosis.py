"""Everything that is looked at, in order, and what is printed of it.

Not here: the single looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import typer

from ....checkpoint_meta.storage.urls import absolute, join
from ....errors import OptionError, SluiceError, StateMissingError
from ..output import Ended, Exit, print_json
from ..state_argument import find_state
from .finding import Finding
from .interpreters import python_findings
from .optional_packages import extra_findings
from .storage import check_local_directory, no_place, path_findings, state_findings

_MARKS = {"well": "well    ", "doubtful": "doubtful", "ill": "ILL     "}


@dataclass(frozen=True)
class Patient:
    """What the command line said."""

    state: str = ""
    path: str = ""
    source_name: str = "source"
    storage_options: str = "{}"
    options: Mapping[str, str] = field(default_factory=dict)
    master: str = ""
    """Of the session to start; empty: none."""

    def place(self) -> str:
        """Where the state of the query is, or will be.

        Raises:
            SluiceError: that cannot be told.
        """
        check_local_directory(self.state)
        try:
            return find_state(self.state, self.source_name, self.storage_options).location
        except StateMissingError:
            return join(absolute(self.state), "sluice", self.source_name)


def findings(patient: Patient) -> Iterator[Finding]:
    """One after the other: the later ones take longer."""
    yield from python_findings()
    places = [each for each in (patient.state, patient.path) if each]
    ill = False
    for finding in extra_findings(places, patient.options):
        ill = ill or finding.verdict == "ill"
        yield finding
    place = ""
    if not ill:
        if patient.state:
            try:
                place = patient.place()
            except SluiceError as error:
                yield no_place(error)
            else:
                yield from state_findings(place, patient.storage_options)
        if patient.path:
            yield from path_findings(patient.path, patient.storage_options, patient.options)
    if patient.master:
        from .executors import executor_findings

        yield from executor_findings(patient.master, place, patient.storage_options)


def diagnose(patient: Patient, *, as_json: bool) -> None:
    """Look, and print what is found.

    Raises:
        Ended: with code 1, where anything is ill.
    """
    found: list[Finding] = []
    for finding in findings(patient):
        found.append(finding)
        if not as_json:
            _print(finding)
    ill = [finding for finding in found if finding.verdict == "ill"]
    if as_json:
        print_json({"findings": [each.document() for each in found], "ill": len(ill)})
    else:
        doubtful = sum(finding.verdict == "doubtful" for finding in found)
        typer.echo(f"{len(found)} looked at: {len(ill)} ill, {doubtful} doubtful")
    if ill:
        raise Ended(Exit.FOUND)


def _print(finding: Finding) -> None:
    typer.echo(f"{_MARKS[finding.verdict]}  {finding.what}: {finding.found}")
    if finding.verdict != "well":
        if finding.expected:
            typer.echo(f"          expected: {finding.expected}")
        if finding.way_out:
            typer.echo(f"          way out:  {finding.way_out}")


def options_of(said: list[str]) -> dict[str, str]:
    """NAME=VALUE, several of them.

    Raises:
        OptionError: one is not of that form.
    """
    pairs = [each.partition("=") for each in said]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        raise OptionError("--option does not parse", "", repr(wrong[0]), "NAME=VALUE")
    return {name: value for name, _, value in pairs}
