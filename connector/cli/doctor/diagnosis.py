"""All checks, in order, and what they print.

With what executors see, for which a session is started, and packages that places and options need
in addition to what is always there.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import typer

from ....checkpoint_meta.storage import sftp_storage
from ....checkpoint_meta.storage.client_options import check_known_to_fsspec
from ....checkpoint_meta.storage.hdfs_storage import SCHEME
from ....checkpoint_meta.storage.providers import AZURE, BY_SCHEME, GOOGLE, S3
from ....checkpoint_meta.storage.urls import absolute, join, local_path, scheme_of, storage_url
from ....checkpoint_meta.stores.exclusive_creates import created
from ....checkpoint_meta.stores.open_store import open_store
from ....errors import SluiceError, StateMissingError, is_installed
from ...query.spark_checkpoint import lacks_metadata
from ...views.amounts import counted
from ..output import Ended, Exit, print_json
from ..state_argument import find_state, parsed_options, parsed_storage_options
from .interpreters import python_findings
from .patient import Finding, Patient
from .storage import (
    check_local_directory,
    left_as_it_was,
    no_place,
    path_finding,
    place_findings,
    state_findings,
)

_MARKS = {"ok": "ok     ", "warning": "warning", "failed": "FAILED "}


def findings(patient: Patient) -> Iterator[Finding]:
    """One after the other: the later ones take longer."""
    options = parsed_options(patient.option or ())
    yield from python_findings()
    written = dict(_written_places(patient, options))
    places = [each for each in (patient.state, patient.path, *written.values()) if each]
    failed = False
    # First the clients: without its client a place fails with an error that says less.
    for finding in _extra_findings(places, patient.path, options):
        failed = failed or finding.verdict == "failed"
        yield finding
    place = ""
    if not failed:
        if patient.state:
            try:
                place = _place_of(patient)
            except SluiceError as error:
                yield no_place(error)
            else:
                yield from state_findings(place, patient.storage_options)
                yield from _spark_findings(patient.state, place, patient.storage_options)
        for option, written_place in written.items():
            yield from place_findings(option, written_place, patient.storage_options)
        if patient.path:
            yield path_finding(patient.path, patient.storage_options, options)
    if patient.master or patient.spark:
        master = patient.master or "local[2]"
        yield from _executor_findings(master, place, patient.storage_options)


_PLACES: Final = ("writeTo", "badRecordsPath", "sourceArchiveDir")


def _written_places(patient: Patient, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield where the call writes files, in addition to its state, by the names of the options."""
    values = {name.lower(): text for name, text in options.items()}
    yield from ((name, values[name.lower()]) for name in _PLACES if values.get(name.lower()))
    kind, _, place = patient.to.partition(":")
    # An Iceberg table is found by its catalog, which also decides which commit is first.
    if place and kind in ("delta", "parquet"):
        yield "--to", place


def _spark_findings(checkpoint: str, place: str, storage_options: str) -> Iterator[Finding]:
    options = parsed_storage_options(storage_options)
    # A place that cannot be opened is a finding about the state already.
    with contextlib.suppress(SluiceError, ImportError, OSError):
        if lacks_metadata(checkpoint, open_store(place, options), options):
            yield Finding(
                "Spark's checkpoint",
                "failed",
                f"no metadata in {absolute(checkpoint)}, although the query has batches",
                "the id of the query, without which Spark 4.2 and newer do not start it",
                "Put the file back from a copy; or prepare a new query with `sluice fork`, which "
                "starts it after the newest checkpoint that the sink has.",
            )


def _place_of(patient: Patient) -> str:
    """Return where the state of the query is, or will be."""
    check_local_directory(patient.state)
    try:
        return find_state(patient.state, patient.source_name, patient.storage_options).location
    except StateMissingError:
        return join(absolute(patient.state), "sluice", patient.source_name)


def diagnose(patient: Patient) -> None:
    """Look, and print what is found."""
    results: list[Finding] = []
    for finding in findings(patient):
        results.append(finding)
        if not patient.as_json:
            _print(finding)
    failed = [finding for finding in results if finding.verdict == "failed"]
    if patient.as_json:
        print_json({"findings": [vars(finding) for finding in results], "failed": len(failed)})
    else:
        warnings = sum(finding.verdict == "warning" for finding in results)
        typer.echo(
            f"{counted(len(results), 'check')}: {len(failed)} failed, {warnings} with a warning"
        )
    if failed:
        raise Ended(Exit.FOUND)


def _print(finding: Finding) -> None:
    typer.echo(f"{_MARKS[finding.verdict]}  {finding.what}: {finding.found}")
    if finding.verdict != "ok":
        if finding.expected:
            typer.echo(f"          expected: {finding.expected}")
        if finding.way_out:
            typer.echo(f"          fix:      {finding.way_out}")


_TASKS = 4


def _executor_findings(master: str, place: str, storage_options: str) -> Iterator[Finding]:
    """The session, the source in it, and tasks that write to the place of the state."""
    try:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master).appName("sluice doctor")
        spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    except Exception as error:  # noqa: BLE001 - any reason for which Spark does not start is the finding
        way_out = "See `sluice runbook 'does not start'`."
        yield Finding(
            "session", "failed", _short(error), f"a session of Spark at {master}", way_out
        )
        return
    try:
        yield Finding("session", "ok", f"Spark {spark.version} at {master}")
        yield _registered(spark)
        if place:
            with left_as_it_was(place):
                yield _writing(spark, place, storage_options)
    finally:
        # A session that stays would hold the cores of a cluster for nothing.
        spark.stop()


def _registered(spark: Any) -> Finding:
    what, expected = "source in Spark", 'a source called "sluice"'
    try:
        # No such view: if the source is found, it answers with an error of its own and reads
        # nothing.
        spark.read.format("sluice").option("view", "none").load()
    except Exception as error:  # noqa: BLE001 - told apart by its text
        text = str(error)
        if "DATA_SOURCE_NOT_FOUND" in text:
            way_out = "See `sluice runbook DATA_SOURCE_NOT_FOUND`."
            return Finding(what, "failed", "DATA_SOURCE_NOT_FOUND", expected, way_out)
        if "pyspark_sluice" not in text:
            return Finding(
                what, "failed", _short(error), expected, "See `sluice runbook 'does not start'`."
            )
    return Finding(what, "ok", 'format("sluice") is found', expected)


def _writing(spark: Any, place: str, storage_options: str) -> Finding:
    what = "state from executors"
    expected = "tasks that see what the driver writes; exactly one of them creates an object"
    store = open_store(place, parsed_storage_options(storage_options))
    seen, raced = f"doctor-{uuid.uuid4().hex}", f"doctor-{uuid.uuid4().hex}"
    store.publish(seen, b"driver")
    try:
        # A partition for each task, so that several executors can take part.
        tasks = spark.sparkContext.parallelize(range(_TASKS), _TASKS)
        answers = tasks.map(lambda at: asked(place, storage_options, seen, raced, at)).collect()
    except Exception as error:  # noqa: BLE001 - any error of a task is the finding
        way_out = (
            "Install pyspark-sluice on every executor; see `sluice runbook ModuleNotFoundError`."
        )
        return Finding(what, "failed", _short(error), expected, way_out)
    finally:
        store.delete(seen)
        store.delete(raced)
    hosts = sorted({host for host, _, _, _ in answers})
    problems = [f"{host}: {problem}" for host, _, _, problem in answers if problem]
    winners = sum(won for _, _, won, _ in answers)
    shared = "Put the state where every executor sees it at the same path, or into a bucket."
    if problems:
        return Finding(what, "failed", problems[0], expected, shared)
    if not all(saw for _, saw, _, _ in answers):
        found = f"the state that the driver has written is missing on {', '.join(hosts)}"
        return Finding(what, "failed", found, expected, shared)
    # Disks that are not shared let each host create it, and some file systems let several succeed.
    if winners != 1:
        found = f"{winners} of {_TASKS} tasks learned that they had created the object"
        return Finding(what, "failed", found, expected, shared)
    return Finding(what, "ok", f"{_TASKS} tasks on {', '.join(hosts)}", expected)


def asked(
    place: str, storage_options: str, seen: str, raced: str, at: int
) -> tuple[str, bool, bool, str]:
    """In a task: its host, whether it sees an object, whether it created another, what failed."""
    import socket

    host = socket.gethostname()
    try:
        store = open_store(place, parsed_storage_options(storage_options))
        won = created(store, raced, b"%d" % at)
        try:
            saw = store.read(seen) == b"driver"
        except FileNotFoundError:
            saw = False
    except Exception as error:  # noqa: BLE001 - the driver reports it
        return host, False, False, f"{type(error).__name__}: {error}"
    return host, saw, won, ""


def _short(error: BaseException) -> str:
    # An error of a task comes with tracebacks, and its cause is in the last line that names one.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line or "]" in line]
    return (named or lines or [type(error).__name__])[-1 if named else 0][:300]


_CLIENT: Final = ("obstore", "arro3.core")


_QUEUE_CLIENTS: Final = {
    S3.path_scheme: ("boto3",),
    AZURE.path_scheme: ("azure.storage.queue", "azure.identity"),
    GOOGLE.path_scheme: ("google.pubsub_v1",),
}
"""What paths begin with -> what the queue of their events is asked through."""


def _extra_findings(
    places: Sequence[str], path: str, options: Mapping[str, str]
) -> Iterator[Finding]:
    """Check what the places need, one of which may be the `path` that is read, and the options."""
    seen: set[str] = set()
    for place in places:
        scheme = scheme_of(storage_url(place))
        if local_path(place) is not None or scheme in seen:
            continue
        seen.add(scheme)
        yield _client(scheme)
    # Names of Auto Loader's options are accepted as well.
    values = {name.lower().removeprefix("cloudfiles."): text for name, text in options.items()}
    if (values.get("fileformat") or values.get("format", "")).lower() == "avro":
        yield _needed("fileFormat=avro", ("fastavro", "pyruhvro"), "avro")
    if values.get("rowvalidationxsdpath"):
        yield _needed("rowValidationXSDPath", ("lxml",), "xml")
    if values.get("discoverymode") == "journal":
        yield _needed("discoveryMode=journal", ("pyiceberg",), "tables")
    if values.get("discoverymode") == "notifications":
        queue = values.get("queueurl", "")
        service = AZURE if ".queue.core." in queue else GOOGLE if "//pubsub." in queue else S3
        scheme = scheme_of(storage_url(path)) if path else service.path_scheme
        # Paths of other kinds have no queue, and a query refuses them.
        if scheme in _QUEUE_CLIENTS:
            clients, extra = _QUEUE_CLIENTS[scheme], BY_SCHEME[scheme].extra
            yield _needed("discoveryMode=notifications", clients, extra)


def _client(scheme: str) -> Finding:
    what = f"client for {scheme}://"
    if scheme in BY_SCHEME:
        return _needed(what, _CLIENT, BY_SCHEME[scheme].extra)
    if scheme == SCHEME:
        return _needed(what, ("hdfs_native",), SCHEME)
    if scheme == sftp_storage.SCHEME:
        return _needed(what, ("paramiko",), scheme)
    try:
        check_known_to_fsspec(scheme)
    except (ImportError, ValueError) as error:
        way_out = f"Install fsspec's package for {scheme}."
        return Finding(what, "failed", str(error), "a file system that fsspec knows", way_out)
    return Finding(what, "ok", "fsspec knows it")


def _needed(what: str, modules: Sequence[str], extra: str) -> Finding:
    missing = [name for name in modules if not is_installed(name)]
    if not missing:
        return Finding(what, "ok", ", ".join(modules))
    way_out = f"pip install '.[{extra}]' in the checkout, on the driver and the executors"
    return Finding(what, "failed", f"not installed: {', '.join(missing)}", "", way_out)
