"""Exactly once into a Delta table with the package `deltalake`: plain Python, no JAR.

    pip install '.[tables]'
    python delta.py LANDING TABLE CHECKPOINT

A batch has a name: the query's id and the batch's number. It goes into the table in the
commit that adds the rows, as an application transaction of Delta's protocol. When Spark repeats a
batch after a crash, the name is there already, and nothing is written.
"""

import sys

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sluice import tables  # before the session is made

SCHEMA = "id long, at timestamp, name string"


def append(batch: DataFrame, number: int, table: str, query: str) -> None:
    """Add batch `number` of the query to the table, unless it is there."""
    rows = batch.toArrow()  # through the driver's memory: hence maxBytesPerTrigger
    delta = DeltaTable.create(table, rows.schema, mode="ignore")
    done = delta.transaction_version(query)
    if done is not None and done >= number:
        return
    # Written onto the version that was looked at: of two writers of one batch, one is refused.
    name = CommitProperties(app_transactions=[Transaction(query, number)])
    write_deltalake(delta, rows, mode="append", commit_properties=name)


def start(spark: SparkSession, landing: str, table: str, checkpoint: str) -> StreamingQuery:
    """Ingest what is in `landing`, in batches of at most 64 MiB of files."""
    events = (
        spark.readStream.format("sluice")
        .option("fileFormat", "json")
        .option("maxBytesPerTrigger", "64m")
        .option("checkpointLocation", checkpoint)
        .schema(SCHEMA)
        .load(landing)
    )
    return (
        events.writeStream.foreachBatch(
            lambda batch, number: append(batch, number, table, tables.query_id(checkpoint))
        )
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    start(spark, *sys.argv[1:4]).awaitTermination()
    print(DeltaTable(sys.argv[2]).count(), "rows in the table")
