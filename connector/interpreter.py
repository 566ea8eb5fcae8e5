"""Which Python Spark's own processes run, and with what: this one, unless somebody says otherwise.

Spark looks for sources with the interpreter that PYSPARK_PYTHON or PYSPARK_DRIVER_PYTHON name in
the environment of its virtual machine, else with the first `python3` of the PATH. Where a virtual
environment is not activated that is another one, which does not have this package.

Spark keeps one environment for all processes of a source, and each stream that starts writes four
names into it without a lock. Two that write them for the first time at once can spoil the map; then
no query of the session can use the source any more (`Illegal size 5 of collection, expected 6`).
Where the names are there already only values change, to the same ones.

Not here: the data source itself.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_SAID = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

_WRITTEN_BY_STREAMS = (
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_LOCAL_DIRS",
    "SPARK_PYTHON_RUNTIME",
)
"""See Spark's PythonStreamingSourceRunner; every process is started with values of its own."""

_BEFORE = {name: os.environ[name] for name in _SAID if os.environ.get(name)}


def use_this_interpreter() -> None:
    """Let a session that is made from now on run this interpreter.

    Changes nothing where the environment names one, or where `python3` is this one anyway.
    """
    if sys.executable and not any(os.environ.get(name) for name in _SAID):
        found = shutil.which("python3")
        if found is None or not _same(found, sys.executable):
            os.environ["PYSPARK_PYTHON"] = sys.executable


def said_before() -> Mapping[str, str]:
    """What the environment said before this package was imported, by variable."""
    return _BEFORE


def register(spark: Any) -> None:
    """Make `format("sluice")` known to a session that is already there.

    Needed for what `import pyspark_sluice` came too late for, such as the session of a notebook,
    and where streams of one session start at the same time; does no harm elsewhere.

    Args:
        spark: a session, classic or of Spark Connect. A Connect server needs the package as well.
    """
    from .data_source import SluiceDataSource

    context = getattr(spark, "_sc", None)
    if context is not None and context.master.startswith("local") and not _is_said(context):
        # The context keeps the name that it hands to all Python processes.
        context.pythonExec = sys.executable
    if context is None:
        spark.dataSource.register(SluiceDataSource)
        return
    with _names_of_streams(context):
        spark.dataSource.register(SluiceDataSource)


@contextmanager
def _names_of_streams(context: Any) -> Iterator[None]:
    """Functions that are handed to Spark within have the names in their environment."""
    missing = [name for name in _WRITTEN_BY_STREAMS if name not in context.environment]
    context.environment.update(dict.fromkeys(missing, ""))
    try:
        yield
    finally:
        for name in missing:
            del context.environment[name]


def _is_said(context: Any) -> bool:
    found = shutil.which(context.pythonExec)
    return context.pythonExec != "python3" or (found is not None and _same(found, sys.executable))


def _same(one: str, other: str) -> bool:
    """True if both are in one environment; what their links lead to is the same for many."""
    return os.path.realpath(os.path.dirname(one)) == os.path.realpath(os.path.dirname(other))
