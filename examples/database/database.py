"""Into a database by upsert, with SQLite's module of the standard library.

    python database.py LANDING DATABASE CHECKPOINT

One row for each `id`, the newest by `at`. A batch is one transaction, and an upsert that is
repeated changes nothing, so a batch that Spark repeats after a crash needs no guard. Neither does
the order in which rows arrive: an older row never replaces a newer one.

A statement that does change something when it is repeated (`count = count + 1`) needs the guard
of the recipe for Delta: a table of the query's id and its last batch, written in the same
transaction.
"""

import sqlite3
import sys
from contextlib import closing

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import pyspark_sluice  # before the session is made

SCHEMA = "id long, at timestamp, name string"
CREATE = "CREATE TABLE IF NOT EXISTS newest (id INTEGER PRIMARY KEY, at INTEGER, name TEXT)"
UPSERT = """
    INSERT INTO newest (id, at, name) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET at = excluded.at, name = excluded.name
    WHERE excluded.at >= newest.at
"""


def upsert(batch: DataFrame, database: str) -> None:
    """Put the batch's rows into the database, in one transaction."""
    rows = batch.selectExpr("id", "unix_micros(at)", "name").toLocalIterator()
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(CREATE)
        connection.executemany(UPSERT, (tuple(row) for row in rows))


def start(spark: SparkSession, landing: str, database: str, checkpoint: str) -> StreamingQuery:
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
        events.writeStream.foreachBatch(lambda batch, _: upsert(batch, database))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    start(spark, *sys.argv[1:4]).awaitTermination()
    with closing(sqlite3.connect(sys.argv[2])) as database:
        print(database.execute("SELECT count(*) FROM newest").fetchone()[0], "rows in the database")
