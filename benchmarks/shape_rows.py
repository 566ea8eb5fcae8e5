"""The table of shapes: each against Spark's own reader, with every value compared.

`python -m benchmarks shapes` prints it. Both sources read with `PERMISSIVE`, Spark's default.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from .bench import Bench, Result, median
from .decoding import decoded
from .peers import ready_rows_source
from .shapes import FILES, SHAPES, SMALL, Shape
from .streams import Input, available_now

_WITHOUT_PEER = frozenset({"avro"})
"""Spark's reader of these is a separate JAR."""

_WARM_UPS = 3
"""Values have been compared before; ready-made rows come after both sources."""


def shapes(bench: Bench, chosen: str = "") -> Iterator[Result]:
    """Data in the shapes that land in real directories, each format's mean last."""
    bench.spark.dataSource.register(ready_rows_source())
    ratios = defaultdict(list)
    for shape in (*SHAPES, *SMALL):
        if chosen in ("", shape.file_format):
            found = _measured(bench, shape)
            yield from found
            if found[0].peer is not None:
                ratios[shape.file_format].append(found[0].peer / found[0].sluice)
    yield from means(ratios)


def as_rows(bench: Bench, shape: Shape) -> Result:
    """One shape, by the time of the batches."""
    read = input_of(bench, shape)
    _same_values(bench, read)
    work = f"{shape.file_format}, {shape.name}, as rows"
    return bench.throughput(work, read, shape.rows, warm_ups=_WARM_UPS)[0]


def means(ratios: Mapping[str, list[float]]) -> list[Result]:
    """Return the geometric mean of the ratios of each name."""
    return [
        Result(
            f"{name}: geometric mean of {len(found)} shapes, by batches",
            1.0, math.prod(found) ** (1 / len(found)), "", "Spark's file source",
            f"worst {min(found):.2f}",
        )
        for name, found in ratios.items()
    ]  # fmt: skip


def _measured(bench: Bench, shape: Shape) -> list[Result]:
    read = input_of(bench, shape)
    compared = bench.peers and shape.file_format not in _WITHOUT_PEER
    if compared:
        _same_values(bench, read)
    work = f"{shape.file_format}, {shape.name}, {shape.rows:,} rows"
    batches, whole = bench.throughput(work, read, shape.rows, peers=compared, warm_ups=_WARM_UPS)
    if shape.files > FILES:
        return [batches, whole]
    note = f"{batches.note}; ready-made rows take {_floor(bench, read, shape):.2f} s"
    return [replace(batches, note=note), whole]


def input_of(bench: Bench, shape: Shape) -> Input:
    """The files of a shape, read with `PERMISSIVE` where a format has modes."""
    options = {"mode": "PERMISSIVE", **shape.options}
    if shape.file_format not in ("csv", "json"):
        options = dict(shape.options)
    return Input(bench.data.shape(shape), shape.schema, shape.file_format, options)


def _floor(bench: Bench, read: Input, shape: Shape) -> float:
    """Seconds for as many rows with the same columns that two tasks have ready made."""
    like = _first_rows(bench, read)

    def frame(_: str) -> DataFrame:
        ready = bench.spark.readStream.format("ready_rows").option("schema", read.schema)
        return ready.option("like", str(like)).option("rows", str(shape.rows // 2)).load()

    runs = [available_now(frame, shape.rows) for _ in range(_WARM_UPS + bench.runs)]
    return median([run.batch_seconds for run in runs[_WARM_UPS:]])


def _first_rows(bench: Bench, read: Input) -> Path:
    def make(folder: Path) -> None:
        schema = cast(StructType, StructType.fromDDL(read.schema))
        batches = decoded(min(read.path.iterdir()), read.file_format, schema, read.options)
        pa.parquet.write_table(pa.Table.from_batches([next(batches)]), folder / "first.parquet")

    return bench.data.made(f"{read.path.name}_ready", make) / "first.parquet"


def _same_values(bench: Bench, read: Input) -> None:
    """Raise unless both sources give the same rows: their number, and a hash over all columns."""
    found = {}
    for source in ("sluice", "spark"):
        reader = bench.spark.read.schema(read.schema).options(**read.options)
        if source == "sluice":
            reader = reader.format("sluice").option("fileFormat", read.file_format)
        else:
            reader = reader.format(read.file_format)
        found[source] = digest(reader.load(str(read.path)))
    if found["sluice"] != found["spark"]:
        msg = f"{read.path.name}: (rows, hash) differ: {found}"
        raise AssertionError(msg)


def digest(frame: DataFrame) -> tuple[int, int]:
    """How many rows there are, and a hash over all columns that does not depend on their order."""
    columns = [_hashable(f.col(f"`{field.name}`"), field.dataType) for field in frame.schema]
    each = f.xxhash64(*columns).cast("decimal(38,0)")
    row = frame.agg(f.count(f.lit(1)), f.sum(each)).first()
    assert row is not None
    return int(row[0]), int(row[1])


def _hashable(column: Column, kind: DataType) -> Column:
    """Spark hashes no maps; their entries in order it does."""
    if isinstance(kind, MapType):
        return f.array_sort(f.map_entries(column))
    if isinstance(kind, ArrayType | StructType) and "map<" in kind.simpleString():
        return f.to_json(column)
    return column
