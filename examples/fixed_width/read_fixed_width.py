"""Reads fixed-width text with a format of your own, from data that the program writes itself.

python -m pyspark_sluice.examples.fixed_width.read_fixed_width HOME
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_sluice  # before the session is made

home = Path(sys.argv[1])
(home / "landing").mkdir(parents=True, exist_ok=True)
lines = [
    f"{number:<8}{f'row {number}':<20}2026-01-{1 + number % 28:02}\n" for number in range(1000)
]
(home / "landing" / "first.txt").write_text("".join(lines))

spark = SparkSession.builder.getOrCreate()
checkpoint = {"checkpointLocation": str(home / "checkpoint")}
fixed_width = "pyspark_sluice.examples.fixed_width.fixed_width:FixedWidthFormat"
reader = spark.readStream.format("sluice").option("fileFormat", fixed_width).options(**checkpoint)
reader = reader.option("columns", "id 8, name 20, day 10").schema("id long, name string, day date")
writer = reader.load(str(home / "landing")).writeStream.format("parquet").options(**checkpoint)
writer.trigger(availableNow=True).start(str(home / "table")).awaitTermination()
print(spark.read.parquet(str(home / "table")).count(), "rows read")
