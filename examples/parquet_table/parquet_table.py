"""Exactly once into a Parquet table that any engine can read, written by the executors.

    python parquet_table.py LANDING TABLE CHECKPOINT

A batch has a directory of its own, named by the query's id and the batch's number. When Spark
repeats a batch after a crash, the directory is replaced as a whole: the same rows again. Readers
see two more columns, `query` and `batch`.

Spark's own file sink (`writeStream.format("parquet")`) is exactly once too, but only for readers
that know its log `_spark_metadata`: others also see files of attempts that failed.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sluice import tables  # before the session is made

SCHEMA = "id long, at timestamp, name string"


def replace(batch: DataFrame, number: int, table: str, query: str) -> None:
    """Write batch `number` of the query where it belongs, and replace what is there."""
    batch.write.mode("overwrite").parquet(f"{table}/query={query}/batch={number}")


def start(spark: SparkSession, landing: str, table: str, checkpoint: str) -> StreamingQuery:
    """Ingest what is in `landing`, in batches of at most a GiB of files."""
    events = (
        spark.readStream.format("sluice")
        .option("fileFormat", "json")
        .option("maxBytesPerTrigger", "1g")
        .option("checkpointLocation", checkpoint)
        .schema(SCHEMA)
        .load(landing)
    )
    return (
        events.writeStream.foreachBatch(
            lambda batch, number: replace(batch, number, table, tables.query_id(checkpoint))
        )
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    start(spark, *sys.argv[1:4]).awaitTermination()
    print(spark.read.parquet(sys.argv[2]).count(), "rows in the table")
