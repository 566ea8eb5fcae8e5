"""What executors see, in tasks of a session that is started for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from ....checkpoint_meta.stores.exclusive_creates import created
from ....checkpoint_meta.stores.open_store import open_store
from .check_list import Check, Finding, NotAsExpected
from .places import left_as_it_was

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
                    "tasks that see what the driver writes; exactly one of them creates an object",
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
    store = open_store(place, storage)
    seen, raced = f"doctor-{uuid.uuid4().hex}", f"doctor-{uuid.uuid4().hex}"
    store.publish(seen, b"driver")
    try:
        # A partition for each task, so that several executors can take part.
        tasks = spark.sparkContext.parallelize(range(_TASKS), _TASKS)
        answers = tasks.map(lambda at: _asked(place, storage, seen, raced, at)).collect()
    except Exception as error:
        way_out = (
            "Install pyspark-sluice on every executor; see `sluice runbook ModuleNotFoundError`."
        )
        raise NotAsExpected(_short(error), way_out) from error
    finally:
        store.delete(seen)
        store.delete(raced)
    hosts = ", ".join(sorted({host for host, _, _, _ in answers}))
    for host, _, _, problem in answers:
        if problem:
            raise NotAsExpected(f"{host}: {problem}")
    if not all(saw for _, saw, _, _ in answers):
        raise NotAsExpected(f"the state that the driver has written is missing on {hosts}")
    # Disks that are not shared let each host create it, and some file systems let several succeed.
    winners = sum(won for _, _, won, _ in answers)
    if winners != 1:
        raise NotAsExpected(f"{winners} of {_TASKS} tasks learned that they had created the object")
    return f"{_TASKS} tasks on {hosts}"


def _asked(
    place: str, storage: Mapping[str, Any], seen: str, raced: str, at: int
) -> tuple[str, bool, bool, str]:
    """In a task: its host, whether it sees an object, whether it created another, what failed."""
    import socket

    host = socket.gethostname()
    try:
        store = open_store(place, storage)
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
