"""Reading with Spark's own readers: any format that Spark knows, here XML.

    python spark_readers.py LANDING TABLE CHECKPOINT

The stream is one of paths: `binaryFile` without its column `content` opens no file. Which files
are read when, in batches of which size, exactly once, is the stream's part; what is in them is
Spark's, in `foreachBatch`. So do Parquet and ORC get Spark's vectorised readers, and readers of
third parties their place in a stream.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sluice import tables  # before the session is made

SCHEMA = "title string, year int"


def replace(batch: DataFrame, number: int, table: str, query: str) -> None:
    """Read the batch's files and write their rows where the batch belongs."""
    # What does not parse fails the query; Spark would make nulls of it.
    options = {"rowTag": "book", "mode": "FAILFAST"}
    books = tables.frame(batch, "xml", options, schema=SCHEMA)
    books.write.mode("overwrite").parquet(f"{table}/query={query}/batch={number}")


def start(spark: SparkSession, landing: str, table: str, checkpoint: str) -> StreamingQuery:
    """Ingest what is in `landing`, in batches of at most 1,000 files and a GiB."""
    files = (
        spark.readStream.format("sluice")
        .option("fileFormat", "binaryFile")
        .option("pathGlobFilter", "*.xml")
        .option("maxFilesPerTrigger", "1000")
        .option("maxBytesPerTrigger", "1g")
        .option("checkpointLocation", checkpoint)
        .schema("path string, modificationTime timestamp, length long")
        .load(landing)
    )
    return (
        files.writeStream.foreachBatch(
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
