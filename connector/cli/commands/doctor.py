"""`sluice doctor`: all checks, in order; the later ones take longer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from ....checkpoint_meta.storage.urls import Location, join
from ....checkpoint_meta.stores.open_store import open_store, race
from ....enumerator.files.discovery.tree_discovery import all_files
from ....errors import SluiceError, StateMissingError
from ...options.model import parse_options
from ...source.discovery import make_listing
from ...views.amounts import counted
from ..answer import Answer, Exit
from ..arguments import (
    SharedArguments,
    argument,
    find_state,
    flag,
    parsed_options,
    parsed_storage_options,
    setting,
)
from ..doctor.checks import (
    Check,
    Finding,
    NotAsExpected,
    check_local_directory,
    left_as_it_was,
    tried,
)
from ..doctor.executors import executor_findings
from ..doctor.interpreters import interpreter_checks


@dataclass(frozen=True, kw_only=True)
class DoctorArguments(SharedArguments):
    """The arguments of the command."""

    state: Annotated[
        str,
        argument(
            "STATE", "Check this state directory or checkpointLocation, which need not exist yet."
        ),
    ] = ""
    path: Annotated[str, setting("PATH", "Check the path that the query loads.")] = ""
    to: Annotated[
        str, setting("TABLE", "Check the place of this table, such as delta:URL or parquet:URL.")
    ] = ""
    option: Annotated[
        list[str] | None,
        setting(
            "NAME=VALUE",
            "Check with this option of the query, as NAME=VALUE. Repeat it for more options.",
        ),
    ] = None
    spark: Annotated[
        bool, flag("--spark", "Start a session, and run the checks in its tasks as well.")
    ] = False
    master: Annotated[
        str, setting("MASTER", "Use this master for that session; implies --spark.")
    ] = ""


def doctor(arguments: DoctorArguments) -> Generator[str, None, Answer]:
    """Check whether a query can start on this machine.

    Looks at Python, Java, packages, registration, paths and executors.
    """
    findings = []
    for finding in _findings(arguments):
        findings.append(finding)
        yield str(finding)
    verdicts = [finding.verdict for finding in findings]
    failed, warned = verdicts.count("failed"), verdicts.count("warning")
    document = {"findings": [vars(finding) for finding in findings], "failed": failed}
    said = f"{counted(len(findings), 'check')}: {failed} failed, {warned} with a warning"
    return Answer(document, [said], Exit.FOUND if failed else Exit.FINE)


def _findings(arguments: DoctorArguments) -> Iterator[Finding]:
    options = parsed_options(arguments.option or ())
    storage = parsed_storage_options(arguments.storage_options)
    for check in (*interpreter_checks(), *_place_checks(arguments, options, storage)):
        yield check.finding()
    if arguments.master or arguments.spark:
        place = ""
        # A place that cannot be used is a finding already.
        with suppress(SluiceError):
            place = arguments.state and _place_of(arguments)
        yield from executor_findings(arguments.master or "local[2]", place, storage)


_PLACES: Final = ("writeTo", "badRecordsPath", "sourceArchiveDir")


def _place_checks(
    arguments: DoctorArguments, options: Mapping[str, str], storage: Mapping[str, Any]
) -> Iterator[Check]:
    """What the call reads and writes, as far as it names it."""
    good = "a place to write to and read from, in which one of several writers creates an object"
    if arguments.state:
        elsewhere = "Repair access, or keep state in a place that has it (stateLocation)."
        look = partial(_writable, partial(_place_of, arguments), storage, to_read=False)
        yield Check("state from the driver", good, elsewhere, look)
    values = {name.lower(): text for name, text in options.items()}
    written = {name: values.get(name.lower(), "") for name in _PLACES}
    kind, _, table = arguments.to.partition(":")
    # An Iceberg table is found by its catalog, which also decides which commit is first.
    written["--to"] = table if kind in ("delta", "parquet") else ""
    for option, place in written.items():
        if place:
            repair = f"Repair access, or choose another place for {option}."
            look = partial(_writable, partial(str, place), storage, to_read=True)
            yield Check(option, good, repair, look)
    if arguments.path:
        given = {**options, "path": arguments.path, "storageOptions": arguments.storage_options}
        repair = "Repair access, or correct the path."
        yield Check("files of the path", "files to be read", repair, partial(_first_file, given))


def _place_of(arguments: DoctorArguments) -> str:
    """Return where the state of the query is, or will be."""
    check_local_directory(arguments.state)
    try:
        return find_state(
            arguments.state, arguments.source_name, arguments.storage_options
        ).location
    except StateMissingError:
        return join(Location.of(arguments.state).url, "sluice", arguments.source_name)


def _writable(place: Any, storage: Mapping[str, Any], *, to_read: bool) -> str:

    where = place()
    # What readers write may be on more file systems than a state.
    store = open_store(where, storage, to_read=to_read)
    with left_as_it_was(where):
        return f"{tried(store)}; {race(store)}"


def _first_file(given: Mapping[str, Any]) -> str:

    first = next(all_files(make_listing(parse_options(given, streaming=False))), None)
    if first is None:
        nothing = "See `sluice runbook 'ingests nothing'`."
        raise NotAsExpected(f"nothing at {given['path']}", nothing, "warning")
    return f"{first.path} and others, if any"
