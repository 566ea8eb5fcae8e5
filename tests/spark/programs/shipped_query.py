"""Runs one query to its end on a cluster whose Python lacks the package.

Usage: shipped_query.py HOW ZIP LANDING SINK CHECKPOINT. HOW is `register` where the package was
shipped by the caller, `addPyFile` where this program ships ZIP, and `find` where Spark is to find
the source by itself. Prints where the driver and a task import the package from. It imports nothing
of the package but what a user would.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

SCHEMA = "id long, text string"


def _place(_: Iterable[int]) -> Iterator[str]:
    import pyspark_sluice

    yield f"{sys.executable} {pyspark_sluice.__file__}"


def main(how: str, package: str, landing: str, sink: str, checkpoint: str) -> None:
    """One session, one query."""
    spark = SparkSession.builder.getOrCreate()
    if how == "addPyFile":
        spark.sparkContext.addPyFile(package)
    if how != "find":
        import pyspark_sluice

        pyspark_sluice.register(spark)
        print("driver", sys.executable, pyspark_sluice.__file__, flush=True)
    tasks = spark.sparkContext.parallelize([1], 1)
    print("task", *tasks.mapPartitions(_place).collect(), flush=True)
    reader = spark.readStream.format("sluice").option("fileFormat", "json").schema(SCHEMA)
    events = reader.option("checkpointLocation", checkpoint).load(landing)
    writer = events.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(sink).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:6])
