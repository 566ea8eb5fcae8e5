"""pyspark-sluice: the open Auto Loader, `spark.readStream.format("sluice")`.

Import it before you create the session: Spark then looks for sources with the interpreter that runs
your program, even if that is in a virtual environment that is not activated. For a session that
already exists, call `register(spark)`.

Spark imports every module called `pyspark_*` to look for a `DefaultSource`, and the command line
starts without Spark, so this module is light: it imports what it exports on first use.
"""

from typing import TYPE_CHECKING, Any

from .connector.session.interpreter import use_this_interpreter

if TYPE_CHECKING:
    from .connector.options.call import options
    from .connector.session.restart_on_evolution import run_with_evolution
    from .connector.source.hybrid_source import HybridSource
    from .connector.spark.data_source import SluiceDataSource as DefaultSource
    from .connector.spark.registration import register

__all__ = ["DefaultSource", "HybridSource", "options", "register", "run_with_evolution"]

use_this_interpreter()


_EXPORTED = {
    "DefaultSource": ("connector.spark.data_source", "SluiceDataSource"),
    "HybridSource": ("connector.source.hybrid_source", "HybridSource"),
    "options": ("connector.options.call", "options"),
    "register": ("connector.spark.registration", "register"),
    "run_with_evolution": ("connector.session.restart_on_evolution", "run_with_evolution"),
}


def __getattr__(name: str) -> Any:
    if name in _EXPORTED:
        from importlib import import_module

        module, own_name = _EXPORTED[name]
        return getattr(import_module(f".{module}", __name__), own_name)
    if name == "__version__":
        from importlib.metadata import version

        return version("pyspark-sluice")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
