"""From an empty directory to a Delta table that any engine reads.

pip install '.[tables]'
python quickstart_table.py [HOME]    # without HOME: /tmp/sluice-table
"""

import json
import sys
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pyspark_sluice import tables

home = Path(*sys.argv[1:] or ["/tmp/sluice-table"])
(home / "landing").mkdir(parents=True, exist_ok=True)
rows = [json.dumps({"order_id": n, "customer": "Ada"}) for n in range(1000)]
(home / "landing" / "orders-1.json").write_text("\n".join(rows))

spark = SparkSession.builder.getOrCreate()
table, checkpoint = str(home / "table"), str(home / "checkpoint")
files = (
    spark.readStream.format("sluice")
    .option("fileFormat", "json")
    .option("writeTo", table)
    .option("writeSchema", "order_id long, customer string")
    .option("checkpointLocation", checkpoint)
    .load(str(home / "landing"))
)
writer = files.writeStream.foreachBatch(tables.delta(table))
writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
writer.start().awaitTermination()
print(DeltaTable(table).count(), "rows in the table")
