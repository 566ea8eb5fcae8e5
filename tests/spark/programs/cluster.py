"""Ingests a directory on a cluster of two executors and kills one in the middle of a batch.

Usage: cluster.py ROOT ZIP. ROOT/landing is read into ROOT/sink; ZIP is shipped by addPyFile.
Prints `killed <pid>` and where the executors import the package from.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_sluice.examples.demo.driver import descendants
from pyspark_sluice.tests.patience import PATIENCE, wait_until


def executors() -> list[int]:
    """Executor processes of this driver."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            found.append(pid)
    return found


def in_the_middle_of_a_batch(checkpoint: Path, started: Path) -> bool:
    """A task reads in a batch, not the first, that Spark has not committed."""

    def newest(folder: str) -> int:
        path = checkpoint / folder
        names = path.iterdir() if path.exists() else ()
        return max((int(p.name) for p in names if p.name.isdigit()), default=-1)

    running = newest("offsets")
    if not running > newest("commits") >= 0 or not started.exists():
        return False
    planned = (checkpoint / "offsets" / str(running)).stat().st_mtime_ns
    return started.stat().st_mtime_ns > planned


def kill_one_executor(checkpoint: Path, started: Path) -> None:
    wait_until(lambda: in_the_middle_of_a_batch(checkpoint, started), "a batch under way")
    pid = executors()[0]
    os.kill(pid, signal.SIGKILL)
    print(f"killed {pid}", flush=True)


def main(root: Path, archive: str) -> None:
    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.task.maxFailures", "4")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.multiplier", "1.1")
        .config("spark.speculation.quantile", "0.3")
        .config("spark.speculation.minTaskRuntime", "100ms")
        .config("spark.local.dir", str(root / "local"))
    )
    spark = builder.getOrCreate()
    spark.sparkContext.addPyFile(archive)
    spark.sparkContext.setLogLevel("ERROR")
    import pyspark_sluice

    pyspark_sluice.register(spark)
    checkpoint = root / "checkpoint"

    def slowly(batches):
        import pyspark_sluice

        where.add(pyspark_sluice.__file__)
        for batch in batches:
            time.sleep(0.5)
            yield batch

    class Where:
        def add(self, path: str) -> None:
            (root / "where").write_text(path)

    where = Where()
    schema = "id long, text string"
    frame = (
        spark.readStream.format("sluice")
        .option("fileFormat", "json")
        .option("checkpointLocation", str(checkpoint))
        .option("maxFilesPerTrigger", "8")
        .option("parallelism", "4")
        .schema(schema)
        .load(str(root / "landing"))
        .mapInArrow(slowly, schema)
    )
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .start(str(root / "sink"))
    )
    killer = threading.Thread(
        target=kill_one_executor, args=(checkpoint, root / "where"), daemon=True
    )
    killer.start()
    # An AvailableNow run is one batch before Spark 4.2.
    killer.join(PATIENCE)
    landed = sum(len(path.read_text().splitlines()) for path in (root / "landing").iterdir())

    def all_written() -> bool:
        query.processAllAvailable()
        return spark.read.parquet(str(root / "sink")).count() >= landed

    wait_until(all_written, "the last rows")
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
