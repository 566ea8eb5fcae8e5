"""Makes the source known to a session that is there, so that its streams may start together.

Spark keeps one environment for all processes of a source, and each stream that starts writes four
names into it without a lock. Two that write them for the first time at once can spoil the map; then
no query of the session can use the source any more (`Illegal size 5 of collection, expected 6`).
Where the names are there already, only values change.

A package that was shipped as a zip file (`--py-files`, `addPyFile`) is looked for by the source's
own process in a folder that Spark never fills. That process learns where the file is.

Not here: which Python the processes run (`session/interpreter.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..session.interpreter import run_this_interpreter_in

_WRITTEN_BY_STREAMS = (
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_LOCAL_DIRS",
    "SPARK_PYTHON_RUNTIME",
)
"""See Spark's PythonStreamingSourceRunner; every process is started with values of its own."""


def register(spark: Any) -> None:
    """Make `format("sluice")` known to an existing session.

    Call it if the session existed before `import pyspark_sluice` (as in a notebook), if several
    streams of the session start at the same time, or if the package is shipped with `--py-files`.
    Otherwise it has no effect. You can call it more than once.

        >>> register(spark)
        >>> spark.read.format("sluice").schema("id long, name string").load(landing).count()
        2

    Args:
        spark: a classic or Spark Connect session. A Connect server needs the package, too.
    """
    from .data_source import SluiceDataSource

    context = getattr(spark, "_sc", None)
    if context is not None:
        run_this_interpreter_in(context)
    # The environment of Spark Connect is out of reach.
    environment = {} if context is None else context.environment
    with _names_of_streams(environment), _path_of_zip(environment):
        spark.dataSource.register(SluiceDataSource)


@contextmanager
def _names_of_streams(environment: dict[str, str]) -> Iterator[None]:
    """Functions that are handed to Spark within have the names in their environment."""
    missing = [name for name in _WRITTEN_BY_STREAMS if name not in environment]
    environment.update(dict.fromkeys(missing, ""))
    try:
        yield
    finally:
        for name in missing:
            del environment[name]


@contextmanager
def _path_of_zip(environment: dict[str, str]) -> Iterator[None]:
    """Functions that are handed to Spark within find this package, if it is in a zip file."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    archive, before = os.path.dirname(package), environment.get("PYTHONPATH")
    if os.path.isdir(archive):
        yield
        return
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (archive, before)))
    try:
        yield
    finally:
        if before is None:
            del environment["PYTHONPATH"]
        else:
            environment["PYTHONPATH"] = before
