"""The streaming query, a program of its own: JSON files in, Parquet out, exactly once.

It knows nothing of being killed. Started again with the same arguments it goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def main() -> None:
    """Stream until the file named by `--until` exists, then drain what is there and end."""
    arguments = _arguments()
    spark = _session(arguments.home)
    events = (
        spark.readStream.format("sluice")
        .option("fileFormat", "json")
        .option("checkpointLocation", arguments.checkpoint)
        .option("maxFilesPerTrigger", arguments.files)
        .option("discoveryInterval", "200ms")
        .schema(arguments.schema)
        .load(arguments.landing)
    )
    query = _start(events, arguments, {"processingTime": arguments.every})
    _follow(query, Path(arguments.until))
    query.stop()
    # AvailableNow lists anew before its first batch, so nothing that has landed is left out.
    query = _start(events, arguments, {"availableNow": True})
    _follow(query, None)
    print("drained", flush=True)
    spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("landing", "sink", "checkpoint", "schema", "until", "home"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--files", type=int, default=20, help="most files in a batch")
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
    events: DataFrame, arguments: argparse.Namespace, trigger: dict[str, str | bool]
) -> StreamingQuery:
    writer = events.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", arguments.checkpoint)
    return writer.trigger(**trigger).start(arguments.sink)  # type: ignore[arg-type]


def _follow(query: StreamingQuery, until: Path | None) -> None:
    """Print each batch as it is done; return when the query ends or `until` exists."""
    shown = -1
    while True:
        active = query.isActive
        for progress in query.recentProgress:
            if progress["batchId"] > shown and progress["numInputRows"]:
                shown = progress["batchId"]
                seconds = progress["batchDuration"] / 1000
                rows = progress["numInputRows"]
                print(f"batch {shown:3}: {rows:6,} rows in {seconds:.1f} s", flush=True)
        if not active:
            query.awaitTermination(1)  # raises what the query failed with
            return
        if until is not None and until.exists():
            return
        time.sleep(0.2)


if __name__ == "__main__":
    main()
