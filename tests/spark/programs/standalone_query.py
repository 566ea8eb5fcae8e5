"""Runs queries one after another on a standalone cluster, each to its end.

Usage: standalone_query.py MASTER QUERIES. QUERIES is a JSON list of objects with `source`, `sink`,
`checkpoint` (as given to readStream and writeStream) and `options`. Prints one JSON object a query:
`error` (empty where there was none), and `latest`, the source's own report in the last progress.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from pyspark_sluice.tests.patience import PATIENCE

SCHEMA = "id long, text string"


def main(master: str, queries: list[dict[str, Any]]) -> None:
    """One session for all of them."""
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("FATAL")
    for query in queries:
        print(json.dumps(_run(spark, query)), flush=True)
    spark.stop()


def _run(spark: SparkSession, query: dict[str, Any]) -> dict[str, Any]:
    reader = spark.readStream.format("sluice").schema(SCHEMA).option("fileFormat", "json")
    for key, value in {"checkpointLocation": query["checkpoint"], **query["options"]}.items():
        reader = reader.option(key, value)
    writer = reader.load(query["source"]).writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", query["checkpoint"])
    running = writer.start(query["sink"])
    error, report = "", None
    try:
        if not running.awaitTermination(PATIENCE):
            error = "the run did not end in time"
    except Exception as failure:  # noqa: BLE001 - it is what the caller asks for
        error = str(failure)
    if running.lastProgress is not None:
        report = json.loads(running.lastProgress.json)["sources"][0]["latestOffset"]
    return {"error": error, "latest": report}


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
