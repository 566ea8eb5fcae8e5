"""Into a table: rows that are landed, against Spark's file source into its Parquet sink.

`python -m benchmarks tables` prints it. What is in the tables is compared before anything is
measured: the number of rows and a hash over all columns. Not here: rows that stay in Spark
(`shape_rows.py`).
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_sluice import tables

from .bench import Bench, Result
from .data import size_of
from .process_tree import PeakMemory, processor_seconds
from .shape_rows import digest
from .shapes import SHAPES, SMALL, Shape
from .streams import PATIENCE, Input

_WITHOUT_PEER = frozenset({"avro"})
_WARM_UPS = 2


@dataclass(frozen=True, slots=True)
class _Run:
    """One finished query into a table of its own."""

    batches: float
    whole: float
    processor: float
    memory: int
    written: int
    files: int


def into_tables(bench: Bench, chosen: str = "") -> Iterator[Result]:
    """Every shape into Parquet with manifests and into Delta, against Spark's Parquet sink."""
    ratios: dict[str, list[float]] = {"parquet": [], "delta": []}
    for shape in (*SHAPES, *SMALL):
        if chosen not in ("", shape.file_format) or shape.file_format in _WITHOUT_PEER:
            continue
        runs = _measured(bench, bench.data.shape(shape), shape)
        for kind, found in ratios.items():
            result = _result(f"{shape.file_format}, {shape.name}", kind, runs)
            found.append((result.peer or 0.0) / result.sluice)
            yield result
    for kind, found in ratios.items():
        mean = math.prod(found) ** (1 / len(found))
        work = f"into {kind}: geometric mean of {len(found)} shapes, by batches"
        yield Result(work, 1.0, mean, "", "Spark", f"worst {min(found):.2f}")


def into_delta(bench: Bench, shape: Shape) -> Result:
    """One shape into Delta."""
    runs = _measured(bench, bench.data.shape(shape), shape, kinds=("delta", "spark"))
    return _result(f"{shape.file_format}, {shape.name}", "delta", runs)


def small_into_tables(bench: Bench) -> Iterator[Result]:
    """100,000 one-line files into a table."""
    folder = bench.data.small_json(100_000)
    shape = Shape("", "json", "id long, name string, value double", 100_000, lambda *_: None)
    runs = _measured(bench, folder, shape, turns=1, warm_ups=0)
    yield _result("json, 100,000 files of one line", "parquet", runs)


def _measured(
    bench: Bench,
    folder: Path,
    shape: Shape,
    turns: int | None = None,
    warm_ups: int = _WARM_UPS,
    kinds: tuple[str, ...] = ("parquet", "delta", "spark"),
) -> Mapping[str, list[_Run]]:
    options = {"mode": "PERMISSIVE", **shape.options}
    if shape.file_format not in ("csv", "json"):
        options = dict(shape.options)
    read = Input(folder, shape.schema, shape.file_format, options)
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
        msg = f"{folder.name}: (rows, hash) differ: {digests}"
        raise AssertionError(msg)
    return runs


def _result(work: str, kind: str, runs: Mapping[str, list[_Run]]) -> Result:
    ours, theirs = (
        {name: median(getattr(run, name) for run in runs[of]) for name in _Run.__slots__}
        for of in (kind, "spark")
    )
    note = (
        f"query {ours['whole']:.1f} against {theirs['whole']:.1f} s; processors "
        f"{ours['processor']:.1f} against {theirs['processor']:.1f} s; written "
        f"{ours['written'] / 1e6:,.0f} against {theirs['written'] / 1e6:,.0f} MB in "
        f"{ours['files']:,.0f} against {theirs['files']:,.0f} files; at most "
        f"{ours['memory'] / 1e9:.1f} against {theirs['memory'] / 1e9:.1f} GB"
    )
    return Result(
        f"{work}, into {kind}", ours["batches"], theirs["batches"], "s", "Spark into Parquet", note
    )


@contextmanager
def _ran(spark: SparkSession, kind: str, read: Input) -> Iterator[tuple[_Run, DataFrame]]:
    root = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    try:
        began, before = time.perf_counter(), processor_seconds()
        with PeakMemory() as peak:
            query = _started(spark, kind, read, root)
            if not query.awaitTermination(int(PATIENCE)):
                msg = f"not drained after {PATIENCE:.0f} s"
                raise TimeoutError(msg)
        whole, processor = time.perf_counter() - began, processor_seconds() - before
        batches = sum(p["durationMs"].get("triggerExecution", 0) for p in query.recentProgress)
        files = [path for path in (root / "table").rglob("*.parquet") if path.is_file()]
        run = _Run(
            batches / 1000, whole, processor, peak.bytes, size_of(root / "table"), len(files)
        )
        yield run, _table(spark, kind, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _started(spark: SparkSession, kind: str, read: Input, root: Path) -> Any:
    checkpoint, table = str(root / "checkpoint"), str(root / "table")
    reader = spark.readStream.options(**read.options)
    if kind == "spark":
        reader = reader.schema(read.schema).format(read.file_format)
        frame = reader.option("recursiveFileLookup", "true").load(str(read.path))
        writer = frame.writeStream.format("parquet").option("path", table)
    else:
        reader = reader.format("sluice").option("fileFormat", read.file_format)
        reader = reader.option("landAt", table).option("landSchema", read.schema)
        frame = reader.option("checkpointLocation", checkpoint).load(str(read.path))
        sink = tables.delta(table) if kind == "delta" else tables.manifest(str(root / "manifests"))
        writer = frame.writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def _table(spark: SparkSession, kind: str, root: Path) -> DataFrame:
    if kind == "parquet":
        return tables.read(str(root / "manifests"))
    if kind == "spark":
        return spark.read.parquet(str(root / "table"))
    from deltalake import DeltaTable

    return spark.read.parquet(*DeltaTable(str(root / "table")).file_uris())
