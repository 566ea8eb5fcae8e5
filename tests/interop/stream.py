"""A stream of rows into the sink of a connector, in a process that a test kills."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_CATALOG = "spark.sql.catalog.lake"


def session_with(jars: str, home: Path) -> Any:
    """A session that has both connectors, and Iceberg's catalog `lake`, which pyiceberg shares."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        # VACUUM without a retention.
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "jdbc",
        f"{_CATALOG}.uri": f"jdbc:sqlite:{home}/catalog.db",
        f"{_CATALOG}.warehouse": str(home / "iceberg"),
        f"{_CATALOG}.jdbc.schema-version": "V1",
        f"{_CATALOG}.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def start(
    session: Any, sink: str, landing: str, checkpoint: str, table: str, **trigger: Any
) -> Any:
    """Start the query: rows, one file a batch, by Spark's own sink for the table's format."""
    frame = session.readStream.format("sluice").schema("id long, name string, day date")
    frame = frame.option("fileFormat", "json").option("maxFilesPerTrigger", 1)
    writer = frame.option("checkpointLocation", checkpoint).load(landing).writeStream.format(sink)
    writer = writer.option("checkpointLocation", checkpoint).trigger(**trigger)
    return writer.start(table) if sink == "delta" else writer.toTable(table)


def main() -> None:
    """Stream until the process is killed."""
    jars, home, *of_query = sys.argv[1:]
    start(session_with(jars, Path(home)), *of_query, processingTime="0 seconds").awaitTermination()


if __name__ == "__main__":
    main()
