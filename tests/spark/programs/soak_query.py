"""The query under soak: a stream into Parquet, one folder a batch; the sink fails at random.

Usage: soak_query.py ROOT SEED QUERY, the last a JSON object of `master`, `source`, `options` and
`table`. With a table the stream's rows are written into it, a Delta table.
Runs until ROOT/until exists, then drains and prints `drained`. A query that fails is started again
in the same session; a driver that dies is started again by the soak.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sluice import tables
from pyspark_sluice.tests.spark.versions import HAS_READ_LIMITS

SCHEMA = "id long, text string"


class Soak:
    """One start of the program."""

    def __init__(self, root: Path, seed: str, query: dict[str, Any]) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self._root = root
        self._query = query
        self._random = random.Random(seed)
        self._spark = (
            SparkSession.builder.master(query["master"])
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "1g")
            .config("spark.executor.memory", "512m")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            # On a cluster executors and workers are killed, which costs tasks their attempts.
            .config("spark.task.maxFailures", "8")
            .config("spark.local.dir", str(root / "spark"))
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        self._spark.sparkContext.setLogLevel("FATAL")

    def _sink(self, frame: DataFrame, batch: int) -> None:
        moment = self._random.random()
        if moment < 0.03:
            message = "the sink fails before it writes"
            raise RuntimeError(message)
        if table := self._query["table"]:
            storage = json.loads(self._query["options"].get("storageOptions", "{}"))
            tables.delta(table, storage_options=storage)(frame, batch)
        else:
            # Idempotent by batch: what a dead attempt has left is written over.
            frame.write.mode("overwrite").parquet(str(self._root / "sink" / f"batch={batch}"))
        if moment > 0.97:
            message = "the sink fails after it has written"
            raise RuntimeError(message)

    def _start(self, trigger: dict[str, str | bool]) -> StreamingQuery:
        checkpoint = str(self._root / "checkpoint")
        reader = (
            self._spark.readStream.format("sluice")
            .option("fileFormat", "json")
            .option("checkpointLocation", checkpoint)
            .option("maxFilesPerTrigger", "20")
            .option("maxBytesPerTrigger", "60k")
            .option("discoveryInterval", "100ms")
            # Spark 4.0 and 4.1 do not say it themselves.
            .option("availableNow", str("availableNow" in trigger))
            .options(**self._query["options"])
        )
        # Spark 4.0 and 4.1 read all that is there in one batch, which no reader may end.
        if "availableNow" not in trigger or HAS_READ_LIMITS:
            reader = reader.option("maxRowsPerTrigger", "900")
        if self._query["table"]:
            reader = reader.option("writeTo", self._query["table"]).option("writeSchema", SCHEMA)
        else:
            reader = reader.schema(SCHEMA)
        frame = reader.load(self._query["source"])
        writer = frame.writeStream.foreachBatch(self._sink)
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()  # type: ignore[arg-type]

    def stream(self) -> None:
        """Until somebody says that everything has landed."""
        until = self._root / "until"
        query = self._start({"processingTime": "0 seconds"})
        while not until.exists():
            if not query.isActive:
                print(f"query ended: {str(query.exception())[:200]!r}", flush=True)
                query = self._start({"processingTime": "0 seconds"})
            time.sleep(0.05)
        if query.isActive:
            query.stop()

    def drain(self) -> None:
        """Everything that is there, over as many runs as it takes.

        The sink fails, and under Spark 4.0 and 4.1 a run that repeats a batch ends with it.
        """
        while True:
            before = self._batches()
            query = self._start({"availableNow": True})
            while query.isActive:
                time.sleep(0.05)
            if query.exception() is not None:
                print(f"query ended: {str(query.exception())[:200]!r}", flush=True)
            elif self._batches() == before:
                print("drained", flush=True)
                return

    def _batches(self) -> int:
        commits = self._root / "checkpoint" / "commits"
        return len(list(commits.glob("[0-9]*"))) if commits.exists() else 0


if __name__ == "__main__":
    soak = Soak(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
    soak.stream()
    soak.drain()
