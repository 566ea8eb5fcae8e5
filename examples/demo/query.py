"""The streaming query, a program of its own: JSON files in, Parquet out, exactly once.

Started again with the same arguments, it continues. With `--direct` its tasks write the data files,
so that `sluice run` can continue it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sluice import tables


def main() -> None:
    """Stream until the file named by `--until` exists, then drain what is there and end."""
    arguments = _arguments()
    spark = _session(arguments.home)
    query = _start(spark, arguments, {"processingTime": arguments.every})
    # Of direct writes, Spark counts files.
    unit = "data files" if arguments.direct else "rows"
    _follow(query, Path(arguments.until), unit)
    query.stop()
    # AvailableNow lists again before its first batch, so nothing that has landed is left out.
    # Under Spark 4.0 and 4.1 a run that repeats a batch ends with it, so another one follows.
    while _follow(_start(spark, arguments, {"availableNow": True}), None, unit):
        pass
    print("drained", flush=True)
    spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("landing", "sink", "checkpoint", "schema", "until", "home"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--files", type=int, default=20, help="most files in a batch")
    parser.add_argument("--direct", action="store_true", help="write the files in the tasks")
    parser.add_argument("--every", default="0 seconds", help="trigger interval")
    return parser.parse_args()


def _session(home: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("sluice demo")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", f"{home}/spark")
        .config("spark.sql.warehouse.dir", f"{home}/warehouse")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def _start(
    spark: SparkSession, arguments: argparse.Namespace, trigger: dict[str, str | bool]
) -> StreamingQuery:
    events = (
        spark.readStream.format("sluice")
        .option("fileFormat", "json")
        .option("checkpointLocation", arguments.checkpoint)
        .option("maxFilesPerTrigger", arguments.files)
        .option("discoveryInterval", "200ms")
        # Spark 4.0 and 4.1 do not tell a source its trigger.
        .option("availableNow", "availableNow" in trigger)
    )
    if arguments.direct:
        events = events.option("writeTo", arguments.sink).option("writeSchema", arguments.schema)
    else:
        events = events.schema(arguments.schema)
    writer = events.load(arguments.landing).writeStream.option(
        "checkpointLocation", arguments.checkpoint
    )
    writer = writer.trigger(**trigger)  # type: ignore[arg-type]
    if arguments.direct:
        return writer.foreachBatch(tables.manifest(f"{arguments.sink}/_sluice")).start()
    return writer.format("parquet").start(arguments.sink)


def _follow(query: StreamingQuery, until: Path | None, unit: str) -> bool:
    """Print each batch as it is done, until the query ends or `until` exists; was there one?"""
    shown = -1
    while True:
        active = query.isActive
        for progress in query.recentProgress:
            if progress["batchId"] > shown and progress["numInputRows"]:
                shown = progress["batchId"]
                seconds = progress["batchDuration"] / 1000
                count = f"{progress['numInputRows']:,} {unit}"
                print(f"batch {shown}: {count}, {seconds:.2f} s", flush=True)
        if not active:
            query.awaitTermination(1)  # raises what the query failed with
            return shown >= 0
        if until is not None and until.exists():
            return shown >= 0
        time.sleep(0.2)


if __name__ == "__main__":
    main()
