"""pyspark-sluice: the open Auto Loader, `spark.readStream.format("sluice")`.

Spark imports every module called `pyspark_*` to look for a `DefaultSource`, so this one is light.
"""

from .connector.data_source import SluiceDataSource as DefaultSource

__all__ = ["DefaultSource"]
