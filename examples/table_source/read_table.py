"""Reads new rows of a database table with a source of your own, from a table that it makes itself.

python -m pyspark_sluice.examples.table_source.read_table HOME
"""

import contextlib
import sqlite3
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_sluice  # before the session is made

home = Path(sys.argv[1])
home.mkdir(parents=True, exist_ok=True)
with contextlib.closing(sqlite3.connect(home / "events.db")) as database, database:
    database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, text TEXT)")
    rows = [(number, f"row {number}") for number in range(1, 1001)]
    database.executemany("INSERT INTO events VALUES (?, ?)", rows)

spark = SparkSession.builder.getOrCreate()
checkpoint = {"checkpointLocation": str(home / "checkpoint")}
table_source = "pyspark_sluice.examples.table_source.table_source:TableSource"
reader = spark.readStream.format("sluice").option("source", table_source).options(**checkpoint)
reader = reader.option("sourceOptions", '{"rows": 100}').schema("id long, text string")
writer = reader.load(str(home / "events.db")).writeStream.format("parquet").options(**checkpoint)
writer.trigger(availableNow=True).start(str(home / "table")).awaitTermination()
print(spark.read.parquet(str(home / "table")).count(), "rows read")
