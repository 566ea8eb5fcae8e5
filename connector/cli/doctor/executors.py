"""What executors see: starts a session, and asks tasks.

Not here: the same from the driver (`storage.py`, `interpreters.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from ....checkpoint_meta.stores.open_store import open_store
from ..state_argument import parsed_storage_options
from .finding import Finding
from .storage import created, left_as_it_was

_TASKS = 4


def executor_findings(master: str, place: str, storage_options: str) -> Iterator[Finding]:
    """The session, the source in it, and tasks that write to the place of the state."""
    try:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master).appName("sluice doctor")
        spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    except Exception as error:  # noqa: BLE001 - whatever keeps Spark from starting is the finding
        way_out = "See docs/it-does-not-start.md."
        yield Finding("session", "ill", _short(error), f"a session of Spark at {master}", way_out)
        return
    try:
        yield Finding("session", "well", f"Spark {spark.version} at {master}")
        yield _registered(spark)
        if place:
            with left_as_it_was(place):
                yield _writing(spark, place, storage_options)
    finally:
        spark.stop()


def _registered(spark: Any) -> Finding:
    what, expected = "source in Spark", 'a source called "sluice"'
    try:
        spark.read.format("sluice").option("view", "none").load()
    except Exception as error:  # noqa: BLE001 - told apart by its text
        text = str(error)
        if "DATA_SOURCE_NOT_FOUND" in text:
            way_out = "See docs/it-does-not-start.md, the first section."
            return Finding(what, "ill", "DATA_SOURCE_NOT_FOUND", expected, way_out)
        if "pyspark_sluice" not in text:
            return Finding(what, "ill", _short(error), expected, "See docs/it-does-not-start.md.")
    return Finding(what, "well", 'format("sluice") is found', expected)


def _writing(spark: Any, place: str, storage_options: str) -> Finding:
    what = "state from executors"
    expected = "tasks that see what the driver writes, and of which one creates an object"
    store = open_store(place, parsed_storage_options(storage_options))
    seen, raced = f"doctor-{uuid.uuid4().hex}", f"doctor-{uuid.uuid4().hex}"
    store.publish(seen, b"driver")
    try:
        tasks = spark.sparkContext.parallelize(range(_TASKS), _TASKS)
        told = tasks.map(lambda at: asked(place, storage_options, seen, raced, at)).collect()
    except Exception as error:  # noqa: BLE001 - whatever a task fails with is the finding
        way_out = "Install pyspark-sluice on every executor; see docs/it-does-not-start.md."
        return Finding(what, "ill", _short(error), expected, way_out)
    finally:
        store.delete(seen)
        store.delete(raced)
    hosts = sorted({host for host, _, _, _ in told})
    problems = [f"{host}: {problem}" for host, _, _, problem in told if problem]
    winners = sum(won for _, _, won, _ in told)
    shared = "Put the state where every executor has it under the same path, or into a bucket."
    if problems:
        return Finding(what, "ill", problems[0], expected, shared)
    if not all(saw for _, saw, _, _ in told):
        found = f"what the driver has written is not there on {', '.join(hosts)}"
        return Finding(what, "ill", found, expected, shared)
    if winners != 1:
        found = f"{winners} of {_TASKS} tasks were told that they had created one object"
        return Finding(what, "ill", found, expected, shared)
    return Finding(what, "well", f"{_TASKS} tasks on {', '.join(hosts)}", expected)


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
    except Exception as error:  # noqa: BLE001 - it is told to the driver
        return host, False, False, f"{type(error).__name__}: {error}"
    return host, saw, won, ""


def _short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line or "]" in line]
    return (named or lines or [type(error).__name__])[-1 if named else 0][:300]
