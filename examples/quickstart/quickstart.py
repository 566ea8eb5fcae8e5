from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

import pyspark_sluice

landing, checkpoint, table = "/tmp/sluice/landing", "/tmp/sluice/checkpoint", "/tmp/sluice/orders"
Path(landing).mkdir(parents=True, exist_ok=True)
lines = [f'{{"order_id": {n}, "customer": "Ada", "amount": 12.5}}\n' for n in range(1000)]
Path(landing, "orders-1.json").write_text("".join(lines))

spark = SparkSession.builder.getOrCreate()
orders = pyspark_sluice.stream(spark, landing, checkpoint=checkpoint, format="json")
orders.to_delta(table).awaitTermination()
print(DeltaTable(table).count(), "orders in the table")
