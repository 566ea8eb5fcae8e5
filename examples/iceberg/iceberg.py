"""Exactly once into an Iceberg table with the package `pyiceberg`: plain Python, no JAR.

    pip install '.[tables]'
    python iceberg.py LANDING WAREHOUSE CHECKPOINT

The number of the query's last batch is a property of the table, set in the commit that adds
the rows. When Spark repeats a batch after a crash, the number is there already, and nothing is
written. The summary of a snapshot could hold it as well, but snapshots expire, and the guard with
them.
"""

import sys
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sluice import tables  # before the session is made

SCHEMA = "id long, at timestamp, name string"
TABLE = "lake.events"
# A commit that meets another one fails, and its batch is repeated: the guard is looked at again.
# By default pyiceberg would put the rows on top of any other commit.
ONE_TRY = {"commit.retry.num-retries": "0"}


def open_catalog(warehouse: str) -> Catalog:
    """A catalog in one file of SQLite. In production, use yours: REST, Hive, Glue."""
    Path(warehouse).mkdir(parents=True, exist_ok=True)
    place = Path(warehouse).absolute()
    return SqlCatalog("lake", uri=f"sqlite:///{place}/catalog.db", warehouse=place.as_uri())


def append(batch: DataFrame, number: int, warehouse: str, query: str) -> None:
    """Add batch `number` of the query to the table, unless it is there."""
    rows = batch.toArrow()  # through the driver's memory: hence maxBytesPerTrigger
    catalog = open_catalog(warehouse)
    catalog.create_namespace_if_not_exists("lake")
    table = catalog.create_table_if_not_exists(TABLE, rows.schema, properties=ONE_TRY)
    last = f"sluice.{query}"
    if int(table.properties.get(last, -1)) >= number:
        return
    with table.transaction() as commit:
        commit.append(rows)
        commit.set_properties({last: str(number)})


def start(spark: SparkSession, landing: str, warehouse: str, checkpoint: str) -> StreamingQuery:
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
            lambda batch, number: append(batch, number, warehouse, tables.query_id(checkpoint))
        )
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    start(SparkSession.builder.getOrCreate(), *sys.argv[1:4]).awaitTermination()
    print(open_catalog(sys.argv[2]).load_table(TABLE).scan().count(), "rows in the table")
