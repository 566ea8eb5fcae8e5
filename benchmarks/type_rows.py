"""What one value costs in each text format: our reader, pyarrow's parser alone, and Spark's.

One column of one type in one file, one core, processor time: of this process for the first two, of
a job with a single task for Spark. The cost of finding the records is in all three.
"""

from __future__ import annotations

import base64
import io
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyspark_sluice.connector.spark.types import arrow_schema

from .bench import Bench, Result
from .data import Data
from .decoding import decoded
from .shapes import SEED

VALUES = 500_000
_BLOCK = 1 << 20
_RUNS = 5


@dataclass(frozen=True, slots=True)
class Typed:
    """A Spark type, and how values of it are written."""

    ddl: str
    text: Callable[[np.random.Generator, int], list[Any]]
    formats: tuple[str, ...] = ("csv", "json")


def _numbers(low: int, high: int) -> Callable[[np.random.Generator, int], list[Any]]:
    return lambda random, count: random.integers(low, high, count).tolist()


def _moments(pattern: str) -> Callable[[np.random.Generator, int], list[Any]]:
    def made(random: np.random.Generator, count: int) -> list[Any]:
        seconds = pa.array(random.integers(0, 1_700_000_000, count), pa.timestamp("s"))
        return list(pa.compute.strftime(seconds, format=pattern).to_pylist())

    return made


def _words(random: np.random.Generator, count: int) -> list[Any]:
    return [f"word {n}" for n in random.integers(0, 1 << 20, count).tolist()]


def _encoded(random: np.random.Generator, count: int) -> list[Any]:
    return [base64.b64encode(word.encode()).decode() for word in _words(random, count)]


def _objects(random: np.random.Generator, count: int) -> list[Any]:
    return [{"a": n, "b": f"word {n}"} for n in random.integers(0, 1 << 20, count).tolist()]


def _lists(random: np.random.Generator, count: int) -> list[Any]:
    return list(random.integers(0, 1000, (count, 3)).tolist())


def _pairs(random: np.random.Generator, count: int) -> list[Any]:
    return [{f"key {n % 7}": f"word {n}"} for n in random.integers(0, 1000, count).tolist()]


_ZONED = _moments("%Y-%m-%dT%H:%M:%SZ")
TYPES = (
    Typed("boolean", lambda random, count: (random.random(count) < 0.5).tolist()),
    Typed("tinyint", _numbers(-100, 100)),
    Typed("smallint", _numbers(-30_000, 30_000)),
    Typed("int", _numbers(0, 1 << 30)),
    Typed("bigint", _numbers(0, 1 << 50)),
    Typed("float", lambda random, count: np.round(random.random(count) * 1000, 2).tolist()),
    Typed("double", lambda random, count: np.round(random.normal(0, 1e6, count), 4).tolist()),
    Typed("decimal(10,2)", lambda random, count: np.round(random.random(count) * 1e6, 2).tolist()),
    Typed("string", _words),
    Typed("binary", _words, ("csv",)),
    Typed("binary", _encoded, ("json",)),
    Typed("date", _moments("%Y-%m-%d")),
    Typed("timestamp", _ZONED),
    Typed("timestamp", _moments("%Y-%m-%d %H:%M:%S")),
    Typed("timestamp_ntz", _moments("%Y-%m-%d %H:%M:%S")),
    Typed("struct<a: long, b: string>", _objects, ("json",)),
    Typed("array<int>", _lists, ("json",)),
    Typed("map<string, string>", _pairs, ("json",)),
)


def types(bench: Bench) -> Iterator[Result]:
    """What one value of each type costs in CSV and JSON, on one core."""
    for file_format, typed in _cells():
        yield _measured(bench, file_format, typed)


def _cells() -> Iterator[tuple[str, Typed]]:
    for file_format in ("csv", "json"):
        for typed in TYPES:
            if file_format in typed.formats:
                yield file_format, typed


def _measured(bench: Bench, file_format: str, typed: Typed) -> Result:
    path, example = _file(bench.data, file_format, typed)
    schema = cast(StructType, StructType.fromDDL(f"v {typed.ddl}"))
    own = _nanoseconds(lambda: _ours(path, file_format, schema))
    bare = _nanoseconds(lambda: _bare(path, file_format, _nearest(file_format, schema, example)))
    note = f"`{example}`"
    if bench.peers:
        reader = bench.spark.read.schema(schema).format(file_format)
        frame = reader.load(str(path.parent)).coalesce(1)
        note += f"; Spark {_sparks_nanoseconds(bench.spark, frame):.0f} ns"
    return Result(f"{file_format}, {typed.ddl}", own, bare, "ns", "pyarrow alone", note)


def _nanoseconds(run: Callable[[], Any]) -> float:
    """Median for a value, after two runs to warm up."""

    def seconds() -> float:
        begin = time.process_time()
        run()
        return time.process_time() - begin

    return _median(seconds)


def _sparks_nanoseconds(spark: SparkSession, frame: DataFrame) -> float:
    """The same of the tasks that read a frame."""
    context = spark.sparkContext
    inner = cast(Any, context)._jsc.sc()  # noqa: SLF001 nothing else tells it

    def seconds() -> float:
        group = f"types {time.perf_counter_ns()}"
        context.setJobGroup(group, group)
        frame.write.format("noop").mode("overwrite").save()
        # What tasks took is reported after their end.
        inner.listenerBus().waitUntilEmpty()
        status, tracker = inner.statusStore(), context.statusTracker()
        jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
        stages = [stage for job in jobs if job is not None for stage in job.stageIds]
        spent = sum(int(status.lastStageAttempt(stage).executorCpuTime()) for stage in stages)
        return spent / 1e9

    return _median(seconds)


def _median(seconds: Callable[[], float]) -> float:
    took = [seconds() for _ in range(2 + _RUNS)][2:]
    return statistics.median(took) * 1e9 / VALUES


def _ours(path: Path, file_format: str, schema: StructType) -> None:
    rows = sum(batch.num_rows for batch in decoded(path, file_format, schema, {}))
    if rows != VALUES:
        msg = f"{path.name}: {rows} rows of {VALUES}"
        raise AssertionError(msg)


def _bare(path: Path, file_format: str, kind: pa.DataType | None) -> None:
    """The parser alone, on blocks of the same size."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        end = data.find(b"\n", at + _BLOCK) + 1 or len(data)
        block, size = io.BytesIO(data[at:end]), end - at
        if file_format == "csv":
            pa.csv.read_csv(
                block,
                pa.csv.ReadOptions(use_threads=False, block_size=size + 1, column_names=["v"]),
                convert_options=pa.csv.ConvertOptions(column_types={"v": kind}),
            )
        else:
            pa.json.read_json(
                block,
                pa.json.ReadOptions(use_threads=False, block_size=size + 1),
                pa.json.ParseOptions(explicit_schema=pa.schema([("v", kind)]) if kind else None),
            )
        at = end


def _nearest(file_format: str, schema: StructType, example: str) -> pa.DataType | None:
    """The type nearest to the column's that pyarrow's parsers know; None where they infer it."""
    kind = arrow_schema(schema).field("v").type
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if "Z" in example else None)
    if pa.types.is_map(kind):
        return None
    if pa.types.is_decimal(kind) and file_format == "json":
        return pa.float64()
    if pa.types.is_date(kind) and file_format == "json":
        return pa.string()
    return pa.string() if pa.types.is_binary(kind) else kind


def _file(data: Data, file_format: str, typed: Typed) -> tuple[Path, str]:
    """One value a line, and the first of them."""

    def make(folder: Path) -> None:
        values = typed.text(np.random.default_rng(SEED), VALUES)
        with (folder / f"values.{file_format}").open("w", encoding="utf-8") as out:
            out.writelines(f"{_line(file_format, value)}\n" for value in values)

    first = typed.text(np.random.default_rng(SEED), 1)[0]
    name = "".join(c if c.isalnum() else "_" for c in f"{typed.ddl}_{len(str(first))}")
    folder = data.made(f"{file_format}_values_{name}", make)
    return folder / f"values.{file_format}", _line(file_format, first)


def _line(file_format: str, value: Any) -> str:
    if file_format == "json":
        return json.dumps({"v": value}, separators=(",", ":"))
    return value if isinstance(value, str) else json.dumps(value)
