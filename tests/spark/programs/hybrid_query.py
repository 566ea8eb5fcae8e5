"""A query over an archived log, a program of its own: Parquet out, until a file tells it to end."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_sluice.examples.log_source.archived_log import ArchivedLog


class SlowSeam(ArchivedLog):
    """Takes its time at the seam, so that it can be killed there."""

    def state_at(self, part: int, position: Any) -> Any:
        time.sleep(0.5)
        return super().state_at(part, position)


SOURCE = f"pyspark_sluice.tests.spark.programs.hybrid_query:{SlowSeam.__name__}"


def main(home: Path) -> None:
    """Stream until `<home>/until` exists, then read what is there and end."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", f"{home}/spark")
        .config("spark.sql.warehouse.dir", f"{home}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    lines = (
        spark.readStream.format("sluice")
        .option("source", SOURCE)
        .option("sourceOptions", '{"slice": 20}')
        .option("checkpointLocation", f"{home}/checkpoint")
        .option("maxFilesPerTrigger", "2")
        .option("discoveryInterval", "100ms")
        .schema("partition string, position long, line string")
        .load(f"{home}/logs")
    )
    triggers: list[dict[str, Any]] = [{"processingTime": "0 seconds"}, {"availableNow": True}]
    for trigger in triggers:
        writer = lines.writeStream.format("parquet").trigger(**trigger)
        query = writer.option("checkpointLocation", f"{home}/checkpoint").start(f"{home}/sink")
        while query.isActive and not ("processingTime" in trigger and (home / "until").exists()):
            time.sleep(0.1)
        query.stop()
        if query.exception() is not None:
            raise query.exception()  # type: ignore[misc]
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
