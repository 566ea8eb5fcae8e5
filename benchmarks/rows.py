"""The rows of the table: each measures Sluice and its peer on the same files in the same run."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from .audit_row import audit
from .bench import Bench, Result, median
from .data import SCHEMA, SMALL_SCHEMA, write_small
from .decoder_rows import decoders
from .feed_rows import feeds
from .growth import growth
from .memory_row import memory
from .other_tools import tools
from .readme_row import readme
from .replace_rows import replacing
from .run_rows import new_columns, starts
from .scale import scale
from .shape_rows import shapes
from .shapes import SHAPES
from .streams import PATIENCE, Input, Run, available_now, drained, load, started
from .table_rows import by_run, into_tables
from .type_rows import types

_SMALL_COLUMNS = "id BIGINT, name STRING, `value` DOUBLE"
"""`SMALL_SCHEMA` in Flink's SQL."""


def csv(bench: Bench) -> list[Result]:
    """CSV, 4 million rows."""
    read = Input(bench.data.csv(), SCHEMA, "csv", {"header": "true"})
    return bench.throughput("CSV, 4 M rows", read)


def json(bench: Bench) -> list[Result]:
    """JSON lines, 4 million rows."""
    return bench.throughput("JSON lines, 4 M rows", Input(bench.data.json(), SCHEMA, "json"))


def parquet(bench: Bench) -> list[Result]:
    """Parquet, 4 million rows."""
    return bench.throughput("Parquet, 4 M rows", Input(bench.data.parquet(), SCHEMA, "parquet"))


def gzip(bench: Bench) -> list[Result]:
    """JSON lines under gzip, 4 million rows."""
    read = Input(bench.data.gzip_json(), SCHEMA, "json")
    return bench.throughput("gzip JSON lines, 4 M rows", read)


def small(bench: Bench) -> Iterator[Result]:
    """10,000 one-line JSON files in 200 directories, without a limit and with one; 30,000."""
    for count, options, peers in (
        (10_000, {}, True),
        (10_000, {"maxFilesPerTrigger": "1000"}, True),
        (30_000, {}, False),
    ):
        read = Input(bench.data.small_json(count), SMALL_SCHEMA, "json", options)
        limit = "".join(f", {name}={value}" for name, value in options.items())
        work = f"{count:,} one-line JSON files{limit}"
        yield from bench.throughput(work, read, count, peer_once=True, peers=peers, warm_ups=2)


def small100k(bench: Bench) -> list[Result]:
    """100,000 one-line JSON files in 200 directories; the peers take a quarter of an hour."""
    count = 100_000
    options = {"maxFilesPerTrigger": "10000"}
    read = Input(bench.data.small_json(count), SMALL_SCHEMA, "json", options)
    work = f"{count:,} one-line JSON files"
    now = bench.throughput(f"{work}, AvailableNow", read, count, peer_once=True)
    if bench.flink and bench.peers:
        flink = flink_seconds(bench.flink, read.path, read.file_format, _SMALL_COLUMNS)
        now.append(Result(work, now[-1].sluice, flink, "s", "Flink's FileSource", "start to end"))
    sluice = [_processing_time(bench, "sluice", read, count) for _ in range(bench.runs)]
    spark = [_processing_time(bench, "spark", read, count)] if bench.peers else []
    landed = [latency for _, latencies in sluice for latency in latencies]
    return [
        *now,
        Result(
            f"{work}, processing time", median([seconds for seconds, _ in sluice]),
            spark[0][0] if spark else None, note=f"median of {bench.runs}, the peer once",
        ),
        Result(
            f"one new file among {count:,}", median(landed),
            median(spark[0][1]) if spark else None,
            note=f"from its rename to the end of its batch, median of {len(landed)}",
        ),
    ]  # fmt: skip


def _processing_time(
    bench: Bench, source: str, read: Input, count: int
) -> tuple[float, list[float]]:
    """Seconds until everything is in; then, for single new files, until each is."""
    extra = read.path / "d0000"
    new = [extra / f"new-{number}.json" for number in range(5)]
    trigger = {"processingTime": "0 seconds"}
    try:
        with started(partial(load, bench.spark, source, read), trigger) as (query, begin):
            seconds = drained(query, begin, count).seconds
            latencies = []
            for number, path in enumerate(new):
                # Landing at another moment of the discovery interval each time.
                time.sleep(1.0 + number * 0.23)
                hidden = path.with_name(f".{path.name}")
                write_small(hidden, number)
                landed = time.perf_counter()
                hidden.rename(path)
                latencies.append(drained(query, landed, count + number + 1).seconds)
            return seconds, latencies
    finally:
        for path in new:
            path.unlink(missing_ok=True)


def flink_seconds(python: str, path: Path, file_format: str, columns: str) -> float:
    """What Flink's FileSource takes for the same files, in a process of its own."""
    program = Path(__file__).with_name("flink_peer.py")
    done = subprocess.run(
        [python, program, path, file_format, columns],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode:
        msg = f"Flink failed: {done.stderr.strip().splitlines()[-1:]}"
        raise RuntimeError(msg)
    return float(done.stdout.split()[-1])


def fixed(bench: Bench) -> list[Result]:
    """What one batch costs at least: one tiny file."""
    batches = 60
    folder = bench.data.home / "fixed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(batches):
        write_small(folder / f"{number:03}.json", number)
    read = Input(folder, SMALL_SCHEMA, "json", {"maxFilesPerTrigger": "1"})
    peers: dict[str, Callable[[str], object]] = {
        "sluice": partial(load, bench.spark, "sluice", read),
        "Spark's file source": partial(load, bench.spark, "spark", read),
    }
    found: dict[str, list[Run]] = {name: [] for name in peers}
    for _ in range(min(3, bench.runs)):
        for name, frame_of in peers.items():
            found[name].append(available_now(frame_of, batches))
    cost = {name: median([run.median_ms(skip=10) for run in runs]) for name, runs in found.items()}
    planning = median([run.median_ms("latestOffset", skip=10) for run in found["sluice"]])
    note = f"median of {batches} batches; latestOffset takes {planning:.0f} ms of it"
    own = cost.pop("sluice")
    return [
        Result("one batch with one tiny file", own, figure, "ms", name, note)
        for name, figure in cost.items()
    ]


def _shapes_of(kind: str) -> Callable[[Bench], Iterable[Result]]:
    def row(bench: Bench) -> Iterable[Result]:
        return shapes(bench, kind)

    row.__doc__ = f"The shapes in {kind} alone."
    return row


ALL: Mapping[str, Callable[[Bench], Iterable[Result | str]]] = {
    "csv": csv,
    "json": json,
    "parquet": parquet,
    "gzip": gzip,
    "fixed": fixed,
    "growth": growth,
    "scale": scale,
    "small": small,
    "memory": memory,
    "small100k": small100k,
    "readme": readme,
    "shapes": shapes,
    "tables": into_tables,
    "run": by_run,
    "run-start": starts,
    "run-columns": new_columns,
    "feeds": feeds,
    "audit": audit,
    "replace": replacing,
    "types": types,
    "peers": tools,
    "decoders": decoders,
    **{f"shapes-{kind}": _shapes_of(kind) for kind in sorted({s.file_format for s in SHAPES})},
}
USUAL = ("csv", "json", "parquet", "gzip", "fixed", "small")
