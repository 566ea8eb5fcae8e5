"""Sluice: a streaming source for Apache Spark that ingests files exactly once.

Import the package before you create the session: Spark then looks for sources with the interpreter
that runs your program, even if its virtual environment is not activated. For a session that already
exists, call `register(spark)`. `landing`, `checkpoint` and `table` are paths here:

    >>> import pyspark_sluice
    >>> orders = pyspark_sluice.stream(spark, landing, checkpoint=checkpoint, format="json")
    >>> orders.to_delta(table).awaitTermination()
    >>> spark.read.parquet(table).count()
    2

Public names:

    options             checks options and returns a dictionary for `.options(**...)`
    register            makes `format("sluice")` known to a session that already exists
    run                 reads new files into a table without Spark, on the same checkpoint
    run_with_evolution  runs a query and restarts it whenever new columns stop it
    stream              describes a stream of files, and writes it into a Delta table
    HybridSource        reads one source to its end and then another
    DefaultSource       the class that Spark finds and registers as "sluice"
    tables              sinks that add data files to Delta and Iceberg tables, or list them
    errors              the exceptions that a query raises, subclasses of `errors.SluiceError`
    __version__         the version of the installed package

`pyspark_sluice.sources` has the contracts of a source of your own, `pyspark_sluice.formats` those
of a format, `pyspark_sluice.testing` the suites for both, and `pyspark_sluice.prometheus` the
listener for metrics. All other modules are internal.
"""

# Spark imports every module called `pyspark_*` to look for a `DefaultSource`, and the command line
# starts without Spark, so this module is light: it imports what it exports on first use.

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .connector.spark.registration import use_this_interpreter

if TYPE_CHECKING:
    from . import errors, tables
    from .connector.host.run import run
    from .connector.options.call import options
    from .connector.source.hybrid_source import HybridSource
    from .connector.spark.data_source import SluiceDataSource as DefaultSource
    from .connector.spark.file_stream import run_with_evolution, stream
    from .connector.spark.registration import register

__all__ = [
    "DefaultSource",
    "HybridSource",
    "errors",
    "options",
    "register",
    "run",
    "run_with_evolution",
    "stream",
    "tables",
]

_HOMES = {
    "DefaultSource": (".connector.spark.data_source", "SluiceDataSource"),
    "HybridSource": (".connector.source.hybrid_source", "HybridSource"),
    "options": (".connector.options.call", "options"),
    "register": (".connector.spark.registration", "register"),
    "run": (".connector.host.run", "run"),
    "run_with_evolution": (".connector.spark.file_stream", "run_with_evolution"),
    "stream": (".connector.spark.file_stream", "stream"),
}

# When Spark makes its session it reads the variables that this sets, so not on first use.
use_this_interpreter()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module, there = _HOMES[name]
        return getattr(import_module(module, __name__), there)
    if name in __all__:
        return import_module(f".{name}", __name__)
    if name == "__version__":
        # On demand: it takes longer than all the rest of this module.
        from importlib.metadata import version

        return version("pyspark-sluice")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
