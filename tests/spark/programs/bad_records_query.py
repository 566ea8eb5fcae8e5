"""Reads records of which some are bad until all is read; somebody kills it on the way.

Usage: bad_records_query.py ROOT FORMAT SINK, where SINK is parquet or delta (with a direct write).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_sluice import tables


def main(root: Path, file_format: str, sink: str) -> None:
    """One AvailableNow run."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    checkpoint = str(root / "checkpoint")
    reader = spark.readStream.format("sluice").option("fileFormat", file_format)
    reader = reader.option("checkpointLocation", checkpoint)
    reader = reader.option("badRecordsPath", str(root / "bad"))
    reader = reader.option("maxFilesPerTrigger", "6").option("parallelism", "4")
    schema, table = "id long, text string", str(root / "sink")
    if sink == "delta":
        reader = reader.option("writeTo", table).option("writeSchema", schema)
        frame = reader.load(str(root / "landing"))
        writer = frame.writeStream.foreachBatch(tables.delta(table))
    else:
        frame = reader.schema(schema).load(str(root / "landing"))
        writer = frame.writeStream.format("parquet").option("path", table)
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start().awaitTermination()
    print("drained", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
