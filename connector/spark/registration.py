"""Makes Spark find this package: which Python its processes run, and where they look for it.

Spark looks for sources with the interpreter that PYSPARK_PYTHON or PYSPARK_DRIVER_PYTHON name in
the environment of its JVM, else with the first `python3` of the PATH. Where a virtual environment
is not activated that is another one, which does not have this package.

Spark keeps one environment for all processes of a source, and each stream that starts writes four
names into it without a lock. Two that write them for the first time at once can spoil the map; then
no query of the session can use the source any more (`Illegal size 5 of collection, expected 6`).
Where the names are there already, only values change.

A package that was shipped as a zip file (`--py-files`, `addPyFile`) is looked for by the source's
own process in a folder that Spark never fills. That process learns where the file is.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# See Spark's PythonStreamingSourceRunner; every process is started with values of its own.
_WRITTEN_BY_STREAMS = (
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_LOCAL_DIRS",
    "SPARK_PYTHON_RUNTIME",
)


def register(spark: Any) -> None:
    """Make `format("sluice")` known to an existing session.

    Call it if the session existed before `import pyspark_sluice` (as in a notebook), if several
    streams of the session start at the same time, or if the package is shipped with `--py-files`.
    Otherwise it has no effect. You can call it more than once.

        >>> register(spark)
        >>> spark.read.format("sluice").schema("id long").load(landing, fileFormat="json").count()
        2

    Args:
        spark: a classic or Spark Connect session. A Connect server needs the package, too.
    """
    from pyspark.errors import AnalysisException

    from .data_source import SluiceDataSource

    context = getattr(spark, "_sc", None)
    # Spark Connect has no context on this side of the wire.
    if context is not None:
        run_this_interpreter_in(context)
    # The environment of Spark Connect is out of reach.
    environment = {} if context is None else context.environment
    names = {name: environment.get(name, "") for name in _WRITTEN_BY_STREAMS}
    with _set_for_now(environment, {**names, **_path_of_zip(environment)}):
        try:
            spark.dataSource.register(SluiceDataSource)
        except AnalysisException as error:
            # Spark 4.0 refuses the name of a source that it has found by itself.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
            _put_into_environment_of_source(spark, names)


def _put_into_environment_of_source(spark: Any, names: Mapping[str, str]) -> None:
    """Names that the source of all sessions lacks, which Spark has found by itself."""
    session = getattr(spark, "_jsparkSession", None)
    # Spark Connect has none on this side of the wire.
    if session is not None:
        source = session.sessionState().dataSourceManager().lookupDataSource("sluice")
        environment = source.dataSourceCls().envVars()
        for name, value in names.items():
            environment.putIfAbsent(name, value)


@contextmanager
def _set_for_now(environment: dict[str, str], names: Mapping[str, str]) -> Iterator[None]:
    """Functions that are handed to Spark within have the names in their environment."""
    before = dict(environment)
    environment.update(names)
    try:
        yield
    finally:
        # Other sources and functions of the session must not see these values.
        for name in names:
            if name in before:
                environment[name] = before[name]
            else:
                del environment[name]


def _path_of_zip(environment: Mapping[str, str]) -> dict[str, str]:
    """Return where functions of Spark's find this package, if it is in a zip file."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    archive = os.path.dirname(package)
    # Installed or checked out: only a zip file is no directory.
    if os.path.isdir(archive):
        return {}
    return {"PYTHONPATH": os.pathsep.join(filter(None, (archive, environment.get("PYTHONPATH"))))}


_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

# Taken at import, since `use_this_interpreter` changes the environment afterwards.
_BEFORE = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}


def use_this_interpreter() -> None:
    """Let a session that is made from now on run this interpreter.

    Changes nothing where the environment names one, or where `python3` is this one anyway.
    """
    # Where Python is embedded there is no executable to name.
    if sys.executable and not any(os.environ.get(name) for name in _VARIABLES):
        python = shutil.which("python3")
        if python is None or not is_same_environment(python):
            os.environ["PYSPARK_PYTHON"] = sys.executable


def interpreters_before() -> Mapping[str, str]:
    """Return what the environment said before this package was imported, by variable."""
    return _BEFORE


def run_this_interpreter_in(context: Any) -> None:
    """Let Python processes that a local SparkContext starts from now on run this interpreter."""
    # On a cluster the workers need not have this interpreter at the same path.
    if context.master.startswith("local") and not _is_configured(context):
        # The context keeps the name that it hands to all Python processes.
        context.pythonExec = sys.executable


def _is_configured(context: Any) -> bool:
    python = shutil.which(context.pythonExec)
    return context.pythonExec != "python3" or (python is not None and is_same_environment(python))


def is_same_environment(python: str) -> bool:
    """True for an interpreter of this environment; what links lead to is the same for many."""
    folders = (os.path.dirname(each) for each in (python, sys.executable))
    return len(set(map(os.path.realpath, folders))) == 1
