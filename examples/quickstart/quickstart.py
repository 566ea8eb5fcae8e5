import json
from pathlib import Path

from pyspark.sql import SparkSession

import pyspark_sluice  # before the session is made: see "It does not start"

home = Path("/tmp/sluice")
(home / "landing").mkdir(parents=True, exist_ok=True)
rows = [json.dumps({"id": number, "name": f"row {number}"}) for number in range(1000)]
(home / "landing" / "first.json").write_text("\n".join(rows))

# Spark Connect: SparkSession.builder.remote("local").getOrCreate()
spark = SparkSession.builder.getOrCreate()
checkpoint = {"checkpointLocation": str(home / "checkpoint")}  # the same for both sides
reader = spark.readStream.format("sluice").option("fileFormat", "json").options(**checkpoint)
events = reader.schema("id long, name string").load(str(home / "landing"))
writer = events.writeStream.format("parquet").options(**checkpoint)
writer.trigger(availableNow=True).start(str(home / "table")).awaitTermination()
print(spark.read.parquet(str(home / "table")).count(), "rows ingested")
