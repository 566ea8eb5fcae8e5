"""Ships the package to a Spark Connect server as an artifact, and reads with it once.

Usage: connect_query.py ZIP LANDING CHECKPOINT. Prints how many rows a batch read gives, and then
what becomes of a stream. Neither the client's Python nor the server's has the package.
"""

from __future__ import annotations

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

SCHEMA = "id long, text string"


def main(package: str, landing: str, checkpoint: str) -> None:
    """One session."""
    spark = SparkSession.builder.remote("local").getOrCreate()
    spark.addArtifact(package, pyfile=True)
    sys.path.insert(0, package)
    import pyspark_sluice

    pyspark_sluice.register(spark)
    print(
        "batch",
        spark.read.format("sluice")
        .option("fileFormat", "json")
        .schema(SCHEMA)
        .load(landing)
        .count(),
        flush=True,
    )
    reader = spark.readStream.format("sluice").option("fileFormat", "json").schema(SCHEMA)
    events = reader.option("checkpointLocation", checkpoint).load(landing)
    writer = events.writeStream.format("noop").option("checkpointLocation", checkpoint)
    try:
        writer.trigger(availableNow=True).start().awaitTermination()
    except PySparkException as error:
        print("stream failed", " ".join(str(error).split()), flush=True)
    else:
        print("stream done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
