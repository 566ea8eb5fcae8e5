"""Into a table: direct writes, against Spark's file source into its Parquet sink.

`python -m benchmarks tables` prints it, as docs/tables.md has it. What is in the tables is compared
before anything is measured: the number of rows and a hash over all columns. Not here: rows that
stay in Spark (`shape_rows.py`).
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from pyspark_sluice import tables

from .bench import Bench, Result
from .data import SCHEMA, SMALL_SCHEMA, size_of
from .process_tree import PeakMemory, processor_seconds
from .run_rows import command, ran
from .shape_rows import digest, input_of
from .shapes import SHAPES, SMALL, Shape
from .streams import PATIENCE, Input

_WITHOUT_PEER = frozenset({"avro"})
_WARM_UPS = 2
_WRITTEN: Final = ("parquet", "delta")
_INTO: Final = {
    "parquet": "Parquet, manifests",
    "delta": "Delta",
    "spark": "Parquet by Spark",
    "run": "Parquet, `sluice run`",
}
_HEAD: Final = (
    "\n| shape | into | batches, s | speedup | whole query, s | CPU time, s | written, MB | files "
    "| peak memory, GB |\n|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class _Run:
    """One finished query into a table of its own, or the medians of some."""

    batches: float
    whole: float
    processor: float
    memory: float
    """The most that all processes had at once: the JVM, too."""
    written: float
    files: float


def into_tables(bench: Bench) -> Iterator[str]:
    """Every shape into Parquet with manifests and into Delta, against Spark's Parquet sink."""
    yield _HEAD
    measured = {}
    for work, read in _inputs(bench):
        measured[work] = _measured(bench, read)
        yield from _lines(work, measured[work])
    for kind in _WRITTEN:
        times = {
            work: runs["spark"].batches / runs[kind].batches for work, runs in measured.items()
        }
        savings = {
            w: runs["spark"].processor / runs[kind].processor for w, runs in measured.items()
        }
        yield _summary(f"**geometric mean of {len(times)}**", kind, _mean(times), _mean(savings))
        yield _summary(f"lowest speedup: {_lowest(times)}", kind, min(times.values()))
        lowest = min(savings.values())
        yield _summary(f"least CPU time saved: {_lowest(savings)}", kind, None, lowest)


def into_delta(bench: Bench, shape: Shape) -> Result:
    """One shape into Delta."""
    runs = _measured(bench, input_of(bench, shape), kinds=("delta", "spark"))
    ours, theirs = runs["delta"], runs["spark"]
    note = (
        f"query {ours.whole:.1f} against {theirs.whole:.1f} s; CPU time "
        f"{ours.processor:.1f} against {theirs.processor:.1f} s"
    )
    work = f"{shape.file_format}, {shape.name}, into delta"
    return Result(work, ours.batches, theirs.batches, "s", "Spark into Parquet", note)


def by_run(bench: Bench) -> Iterator[str]:
    """Every shape by `sluice run`, against the same query under Spark; 100,000 one-line files."""
    yield _HEAD
    times = {}
    for work, read in _inputs(bench):
        runs = _measured(bench, read, kinds=("run", "parquet"))
        times[work] = runs["parquet"].batches / runs["run"].batches
        yield from _lines(work, runs, "parquet")
    yield _summary(f"**geometric mean of {len(times)}**", "run", _mean(times))
    yield _summary(f"lowest speedup: {_lowest(times)}", "run", min(times.values()))
    read = Input(bench.data.small_json(100_000), SMALL_SCHEMA, "json", {"mode": "PERMISSIVE"})
    runs = _measured(bench, read, turns=1, warm_ups=0, kinds=("run", *_WRITTEN, "spark"))
    yield from _lines("JSON, 100,000 files of one line", runs)


def _inputs(bench: Bench) -> Iterator[tuple[str, Input]]:
    names = {"csv": "CSV", "json": "JSON", "parquet": "Parquet", "orc": "ORC"}
    for shape in (*SHAPES, *SMALL):
        kind = shape.file_format
        if kind not in _WITHOUT_PEER:
            yield f"{names.get(kind, kind)}, {shape.name}", input_of(bench, shape)
    yield "JSON, gzip", Input(bench.data.gzip_json(), SCHEMA, "json", {"mode": "PERMISSIVE"})


def _measured(
    bench: Bench,
    read: Input,
    turns: int | None = None,
    warm_ups: int = _WARM_UPS,
    kinds: Sequence[str] = (*_WRITTEN, "spark"),
) -> Mapping[str, _Run]:
    """The medians of each kind of table."""
    runs: dict[str, list[_Run]] = {kind: [] for kind in kinds}
    digests = {}
    for turn in range(warm_ups + (turns or bench.runs)):
        for kind, done in runs.items():
            with _ran(bench.spark, kind, read) as (run, table):
                if turn == 0:
                    digests[kind] = digest(table)
                if turn >= warm_ups:
                    done.append(run)
    if len(set(digests.values())) > 1:
        msg = f"{read.path.name}: (rows, hash) differ: {digests}"
        raise AssertionError(msg)
    return {kind: _median(done) for kind, done in runs.items()}


def _median(runs: Sequence[_Run]) -> _Run:
    return _Run(*(median(getattr(run, field.name) for run in runs) for field in fields(_Run)))


def _lines(work: str, runs: Mapping[str, _Run], peer: str = "spark") -> Iterator[str]:
    for kind, run in runs.items():
        speedup = "" if kind == peer else f"{runs[peer].batches / run.batches:.2f}"
        yield (
            f"| {work} | {_INTO[kind]} | {run.batches:.1f} | {speedup} | {run.whole:.1f} "
            f"| {run.processor:.1f} | {run.written / 1e6:,.0f} | {run.files:,.0f} "
            f"| {run.memory / 1e9:.2f} |"
        )


def _summary(work: str, kind: str, speedup: float | None, processor: float | None = None) -> str:
    times = "" if speedup is None else f"{speedup:.2f}"
    saved = "" if processor is None else f"{processor:.2f} times less"
    return f"| {work} | {_INTO[kind]} | | {times} | | {saved} | | | |"


def _mean(ratios: Mapping[str, float]) -> float:
    return math.prod(ratios.values()) ** (1 / len(ratios))


def _lowest(ratios: Mapping[str, float]) -> str:
    return min(ratios, key=lambda work: ratios[work])


@contextmanager
def _ran(spark: SparkSession, kind: str, read: Input) -> Iterator[tuple[_Run, DataFrame]]:
    root = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    # The JVM returns what the run before had, so that each peak is that of its own run.
    spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]  # noqa: SLF001
    try:
        began, before = time.perf_counter(), processor_seconds()
        if kind == "run":
            call = command(read, f"parquet:{root / 'table'}", root / "checkpoint")
            batches, peak = ran(call)
        else:
            with PeakMemory() as peak:
                batches = _by_spark(spark, kind, read, root)
        whole, processor = time.perf_counter() - began, processor_seconds() - before
        files = [path for path in (root / "table").rglob("*.parquet") if path.is_file()]
        run = _Run(batches, whole, processor, peak.bytes, size_of(root / "table"), len(files))
        yield run, _table(spark, kind, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _by_spark(spark: SparkSession, kind: str, read: Input, root: Path) -> float:
    query = _started(spark, kind, read, root)
    if not query.awaitTermination(int(PATIENCE)):
        msg = f"not drained after {PATIENCE:.0f} s"
        raise TimeoutError(msg)
    batches = sum(p["durationMs"].get("triggerExecution", 0) for p in query.recentProgress)
    return float(batches) / 1000


def _started(spark: SparkSession, kind: str, read: Input, root: Path) -> Any:
    checkpoint, table = str(root / "checkpoint"), str(root / "table")
    reader = spark.readStream
    if kind == "spark":
        reader = reader.options(**read.options).schema(read.schema).format(read.file_format)
        frame = reader.option("recursiveFileLookup", "true").load(str(read.path))
        writer = frame.writeStream.format("parquet").option("path", table)
    else:
        reader = reader.options(**read.options).format("sluice")
        reader = reader.option("fileFormat", read.file_format)
        reader = reader.option("writeTo", table).option("writeSchema", read.schema)
        frame = reader.option("checkpointLocation", checkpoint).load(str(read.path))
        sink = tables.delta(table) if kind == "delta" else tables.manifest(str(root / "manifests"))
        writer = frame.writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def _table(spark: SparkSession, kind: str, root: Path) -> DataFrame:
    if kind in ("parquet", "run"):
        return tables.read(str(root / ("manifests" if kind == "parquet" else "table/_sluice")))
    if kind == "delta":
        from deltalake import DeltaTable

        return spark.read.parquet(*DeltaTable(str(root / "table")).file_uris())
    return spark.read.parquet(str(root / "table"))
