"""What executors see, in tasks of a session that is started for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from ....checkpoint_meta.stores.open_store import open_store, probe_name
from .checks import Check, Finding, NotAsExpected, left_as_it_was

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
