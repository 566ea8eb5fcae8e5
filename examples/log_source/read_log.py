"""Reads a partitioned log with a source of your own, from a log that the program writes itself.

python -m pyspark_sluice.examples.log_source.read_log HOME
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_sluice  # before the session is made

home = Path(sys.argv[1])
(home / "log").mkdir(parents=True, exist_ok=True)
for partition in range(4):
    lines = [f"line {number}\n" for number in range(250)]
    (home / "log" / f"p{partition}.log").write_text("".join(lines))

spark = SparkSession.builder.getOrCreate()
checkpoint = {"checkpointLocation": str(home / "checkpoint")}
log_source = "pyspark_sluice.examples.log_source.log_source:LogSource"
reader = spark.readStream.format("sluice").option("source", log_source).options(**checkpoint)
reader = reader.schema("partition string, position long, line string")
writer = reader.load(str(home / "log")).writeStream.format("parquet").options(**checkpoint)
writer.trigger(availableNow=True).start(str(home / "table")).awaitTermination()
print(spark.read.parquet(str(home / "table")).count(), "lines read")
