"""A stream for each mode of evolution, all in one session that somebody kills.

Usage: evolving.py ROOT STREAM.... The first time each stream reads a file; then files with new
columns land, and none gets past them: it stops, blocks in the middle of storing the next schema, or
holds its batch open. The test kills the process then. The second time each is started again
until all is read, and `drained` is printed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_sluice import register, run_with_evolution

ROWS = 50
BLOCKED = "-blocked"
"""Of these the kill comes before the new schema is stored, of the others after it."""

STREAMS = (
    "rescue",
    "none",
    "failOnNewColumns",
    "addNewColumns",
    f"addNewColumns{BLOCKED}",
    "addNewColumnsWithTypeWidening",
    f"addNewColumnsWithTypeWidening{BLOCKED}",
)


def second_version(home: Path) -> Path:
    """Where the schema with the new columns is stored."""
    return home / "checkpoint" / "sluice" / "source" / "schemas" / "0000000001.json"


def longest(home: Path) -> int:
    """A value of the column `size` that a type which may grow has to grow for."""
    return 2**40 if "Widening" in home.name else 2


class Stream:
    """One of them, in a folder that bears its mode's name."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark = spark
        self._home = home
        self._mode = home.name.removesuffix(BLOCKED)

    def start(self, *, hold: bool, mode: str = "", **trigger: Any) -> StreamingQuery:
        """Start it; with `hold`, no batch after the first one ends."""
        checkpoint = {"checkpointLocation": str(self._home / "checkpoint")}
        reader = self._spark.readStream.format("sluice").options(**checkpoint)
        reader = reader.option("schemaEvolutionMode", mode or self._mode)
        reader = reader.option("schemaHints", "id int, size int").option("discoveryInterval", 200)
        frame = reader.option("fileFormat", "json").load(str(self._home / "landing"))
        writer = frame.writeStream.options(**checkpoint).trigger(**trigger)
        return writer.foreachBatch(partial(self._sink, hold)).start()

    def _sink(self, hold: bool, batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").json(str(self._home / "sink" / f"batch={number}"))
        while hold and number:
            (self._home / "held").touch()
            time.sleep(0.1)

    def begin(self) -> StreamingQuery:
        """Start it and let it read a first file."""
        _land(self._home, "first", {"size": 1})
        query = self.start(hold=True, processingTime="200 milliseconds")
        read = self._home / "sink" / "batch=0" / "_SUCCESS"
        _until(lambda: read.exists() or not query.isActive)
        if not query.isActive:
            raise RuntimeError(str(query.exception()))
        return query

    def meet_new_columns(self, query: StreamingQuery) -> None:
        """Let it run into files with more columns, and wait for it to fail of them."""
        if self._home.name.endswith(BLOCKED):
            # A search for the newest version blocks until somebody writes to it.
            os.mkfifo(second_version(self._home))
        later = {"size": longest(self._home), "other": {"a": 1}}
        _land(self._home, "later", {"size": 1, "new": 1}, later)
        _until(lambda: not query.isActive)
        self._note("failed", query.exception())

    def drain(self) -> None:
        """Go on where the kill has left everything, to the end."""
        start = partial(self.start, hold=False, availableNow=True)
        try:
            run_with_evolution(start)
        except StreamingQueryException as error:
            self._note("failed again", error)
            # As the user would: let the columns in.
            run_with_evolution(partial(start, mode="addNewColumns"))

    def _note(self, name: str, error: Exception | None) -> None:
        """Store the error whole: the test kills as soon as the file exists."""
        hidden = self._home / f".{name}"
        hidden.write_text(str(error))
        hidden.rename(self._home / name)


def _land(home: Path, name: str, *columns: dict[str, Any]) -> None:
    """A folder of files, put in place atomically; ids continue from folder to folder."""
    hidden = home / "landing" / f".{name}"
    hidden.mkdir(parents=True)
    ids = iter(range(ROWS * (name != "first"), 3 * ROWS))
    for number, more in enumerate(columns):
        rows = [json.dumps({"id": next(ids), **more}) + "\n" for _ in range(ROWS)]
        (hidden / f"{number}.json").write_text("".join(rows))
    hidden.rename(home / "landing" / name)


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def main(root: Path, names: Sequence[str]) -> None:
    """The first run or the second."""
    again = (root / names[0]).exists()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Tasks that are blocked must not keep the others' from running.
    builder = SparkSession.builder.master("local[8]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    # It lives for seconds, in which thorough compilation does not pay.
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    # Streams that start at the same time.
    register(spark)
    streams = [Stream(spark, root / name) for name in names]
    # Spark waits seconds for a source's process to start: not for all at once on a busy machine.
    with ThreadPoolExecutor(2) as few, ThreadPoolExecutor(len(streams)) as all_of_them:
        if again:
            list(few.map(Stream.drain, streams))
        else:
            queries = list(few.map(Stream.begin, streams))
            list(all_of_them.map(Stream.meet_new_columns, streams, queries))
    print("drained" if again else "stopped", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
