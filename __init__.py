"""pyspark-sluice: the open Auto Loader, `spark.readStream.format("sluice")`.

Import it before the session is made: Spark then looks for sources with the interpreter that runs
your program, also where that is a virtual environment nobody has activated. For a session that is
already there, call `register(spark)`.

Spark imports every module called `pyspark_*` to look for a `DefaultSource`, so this one is light.
"""

from .connector.data_source import SluiceDataSource as DefaultSource
from .connector.interpreter import register, use_this_interpreter
from .connector.restarting import run_with_evolution

__all__ = ["DefaultSource", "register", "run_with_evolution"]

use_this_interpreter()
