"""What it takes to find one new file in a large tree, and to find none for a minute."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from .bench import Bench, Result, median
from .data import SMALL_SCHEMA, write_small
from .streams import Input, drained, load, started

_NEW = 7
_IDLE = 60.0
"""Seconds over which nothing happens."""

_SETTLING = 8.0
"""Seconds until directories that have just been read are trusted."""

_TICKS = os.sysconf("SC_CLK_TCK")


def discovery(bench: Bench) -> list[Result]:
    """One new file in a tree of 100,000 and of 1,000,000, and a minute without any."""
    results = []
    for count in (100_000, 1_000_000):
        tree = bench.data.small_json(count)
        own, idle, all_in = _waiting(bench, "sluice", tree, count)
        with_peer = bench.peers and count <= 100_000
        peer = _waiting(bench, "spark", tree, count) if with_peer else None
        results.append(
            Result(
                f"{count:,} one-line files, from the start of the query to the last", all_in, None
            )
        )
        results.append(
            Result(
                f"one new file in a tree of {count:,}", median(own),
                median(peer[0]) if peer else None,
                note=f"from its rename to the end of its batch, median of {_NEW}",
            )
        )  # fmt: skip
        results += [
            Result(
                f"{_IDLE:.0f} s without a new file in {count:,}, {what}", used,
                peer[1].get(what) if peer else None, note="processor time",
            )
            for what, used in idle.items()
        ]  # fmt: skip
    return results


def _waiting(
    bench: Bench, source: str, tree: Path, count: int
) -> tuple[list[float], dict[str, float], float]:
    """What is measured, in seconds.

    Returns:
        for each new file until its batch is done; of processor time while nothing is new, by
        process; until everything is in that was there at the start.
    """
    read = Input(tree, SMALL_SCHEMA, "json", {"maxFilesPerTrigger": str(min(count, 100_000))})
    new = [tree / "d0000" / f"new-{number}.json" for number in range(_NEW)]
    trigger = {"processingTime": "0 seconds"}
    is_spark = source == "spark"
    frame_of = partial(_spark_that_knows if is_spark else load, bench.spark, source, read)
    known = 0 if is_spark else count
    try:
        with started(frame_of, trigger) as (query, begin):
            all_in = drained(query, begin, known).seconds
            latencies = []
            time.sleep(_SETTLING)
            for number, path in enumerate(new):
                # Landing at another moment of the discovery interval each time.
                time.sleep(1.0 + number * 0.23)
                hidden = path.with_name(f".{path.name}")
                write_small(hidden, number)
                landed = time.perf_counter()
                hidden.rename(path)
                latencies.append(drained(query, landed, known + number + 1).seconds)
            time.sleep(_SETTLING)
            return latencies, _used_while_idle(), all_in
    finally:
        for path in new:
            path.unlink(missing_ok=True)


def _spark_that_knows(spark: SparkSession, source: str, read: Input, checkpoint: str) -> DataFrame:
    """Spark's source on a checkpoint in whose log every file is: to read them takes minutes."""
    with tempfile.TemporaryDirectory() as seed:
        write_small(Path(seed) / "seed.json", 0)
        first = load(spark, source, replace(read, path=Path(seed)), checkpoint)
        writer = first.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    log = Path(checkpoint) / "sources" / "0" / "0"
    version, entry = log.read_text(encoding="utf-8").splitlines()
    fields = json.loads(entry)
    with log.open("w", encoding="utf-8") as out:
        out.write(version)
        for folder, _, names in os.walk(read.path):
            for name in names:
                path = f"file://{folder}/{name}"
                out.write("\n" + json.dumps({**fields, "path": path}, separators=(",", ":")))
    (log.parent / ".0.crc").unlink(missing_ok=True)
    return load(spark, source, read, checkpoint)


def _used_while_idle() -> dict[str, float]:
    before = _processor_seconds()
    time.sleep(_IDLE)
    used: dict[str, float] = {}
    for (what, process), seconds in _processor_seconds().items():
        # Without the workers that Spark has ended meanwhile.
        used[what] = used.get(what, 0.0) + seconds - before.get((what, process), 0.0)
    return used


def _processor_seconds() -> dict[tuple[str, int], float]:
    """Of each Python process below this one (the source's is one), and of Spark's driver."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,comm="],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    below = {os.getpid()}
    while more := {int(row[0]) for row in rows if int(row[1]) in below} - below:
        below |= more
    used = {}
    for process, _, command in rows:
        if int(process) in below and int(process) != os.getpid():
            what = "the JVM" if "java" in command else "Python processes"
            used[what, int(process)] = _seconds_of(int(process))
    return used


def _seconds_of(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    except FileNotFoundError:
        return 0.0
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / _TICKS
