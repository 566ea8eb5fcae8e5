"""`sluice doctor`: all checks, in order; the later ones take longer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from ....checkpoint_meta.storage.urls import Location, join
from ....checkpoint_meta.stores.open_store import open_store, probe_name, race
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
from ..doctor_checks import (
    Check,
    Finding,
    NotAsExpected,
    check_local_directory,
    interpreter_checks,
    left_as_it_was,
    tried,
)


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


# Executors, in tasks of a session that is started for it -------------------------------------

_TASKS: Final = 4

_DOES_NOT_START: Final = "See `sluice runbook 'does not start'`."


def executor_findings(master: str, place: str, storage: Mapping[str, Any]) -> Iterator[Finding]:
    """The session, the source in it, and tasks that write to the place of the state."""
    sessions: list[Any] = []

    def begun() -> str:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master).appName("sluice doctor")
        try:
            sessions.append(builder.config("spark.ui.enabled", "false").getOrCreate())
        except Exception as error:
            raise NotAsExpected(_short(error)) from error
        return f"Spark {sessions[0].version} at {master}"

    yield Check("session", f"a session of Spark at {master}", _DOES_NOT_START, begun).finding()
    if not sessions:
        return
    (spark,) = sessions
    try:
        source = 'a source called "sluice"'
        look = partial(_registered, spark)
        yield Check("source in Spark", source, _DOES_NOT_START, look).finding()
        if place:
            with left_as_it_was(place):
                yield Check(
                    "state from executors",
                    "tasks that see what the driver writes",
                    "Put the state where every executor sees it at the same path, or into a "
                    "bucket.",
                    partial(_writing, spark, place, storage),
                ).finding()
    finally:
        # A session that stays would hold the cores of a cluster for nothing.
        spark.stop()


def _registered(spark: Any) -> str:
    try:
        # No such view: if the source is found, it answers with an error of its own and reads
        # nothing.
        spark.read.format("sluice").option("view", "none").load()
    except Exception as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            way_out = "See `sluice runbook DATA_SOURCE_NOT_FOUND`."
            raise NotAsExpected("DATA_SOURCE_NOT_FOUND", way_out) from error
        if "pyspark_sluice" not in str(error):
            raise NotAsExpected(_short(error)) from error
    return 'format("sluice") is found'


def _writing(spark: Any, place: str, storage: Mapping[str, Any]) -> str:
    store, name = open_store(place, storage), probe_name()
    store.publish(name, b"driver")
    try:
        # A partition for each task, so that several executors can take part.
        tasks = spark.sparkContext.parallelize(range(_TASKS), _TASKS)
        seen = dict(tasks.map(lambda _: _seen(place, storage, name)).collect())
    except Exception as error:
        way_out = (
            "Install pyspark-sluice on every executor; see `sluice runbook ModuleNotFoundError`."
        )
        raise NotAsExpected(_short(error), way_out) from error
    finally:
        store.delete(name)
    for host, problem in seen.items():
        if problem:
            raise NotAsExpected(f"{host}: {problem}")
    return f"{_TASKS} tasks on {', '.join(sorted(seen))}"


def _seen(place: str, storage: Mapping[str, Any], name: str) -> tuple[str, str]:
    """In a task: its host, and why it does not see an object; empty if it does."""
    import socket

    try:
        open_store(place, storage).read(name)
    except Exception as error:  # noqa: BLE001 - the driver reports it
        return socket.gethostname(), f"{type(error).__name__}: {error}"
    return socket.gethostname(), ""


def _short(error: BaseException) -> str:
    # An error of a task comes with tracebacks, and its cause is in the last line that names one.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line or "]" in line]
    return (named or lines or [type(error).__name__])[-1 if named else 0][:300]
