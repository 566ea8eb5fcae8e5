"""Formats with two decoders: what each takes into a Delta table, and what Spark's reader takes.

`python -m benchmarks decoders` prints it; with `--packages` and the coordinates of spark-avro, also
against Spark's reader of Avro.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StringType, StructField, StructType

from .bench import Bench, Result, median
from .decoding import decoded
from .run_rows import command
from .shape_rows import input_of
from .shapes import DECODED, Shape
from .streams import Input
from .table_rows import into_delta

_RUN = "from pyspark_sluice.connector.cli.entry import run; run()"
_ONE_BY_ONE = f"""
from pyspark_sluice.reader.files.formats.avro.plain_blocks import PlainBlocks
from pyspark_sluice.reader.files.formats.xml.plain_records import PlainRecords
PlainBlocks.columns = PlainRecords.columns = lambda *_: None
{_RUN}
"""
# So small that `sluice run` reads a batch in its own process, whose decoder is exchanged.
_BATCH = "15m"


def decoders(bench: Bench) -> Iterator[Result]:
    """Avro and XML by `sluice run`, against reading them one by one, and against Spark."""
    for shape in DECODED:
        read = input_of(bench, shape)
        one = _first_row(bench, shape)
        kinds = [(rows, program) for program in (_RUN, _ONE_BY_ONE) for rows in (read, one)]
        times = [[_processor_seconds(*kind) for kind in kinds] for _ in range(bench.runs)]
        fast, start, slow, other_start = map(median, map(list, zip(*times, strict=True)))
        yield Result(
            f"{shape.file_format}, {shape.name}, by sluice run into delta",
            fast - start, slow - other_start, "s", "one by one",
            f"{shape.rows:,} rows; CPU time above that of one row, which takes {start:.1f} s",
        )  # fmt: skip
        if bench.peers and (shape.file_format != "avro" or bench.packages):
            yield into_delta(bench, shape)
    yield _wide_struct(bench)


_FIELDS, _ROWS = 689, 2_000


def _wide_struct(bench: Bench) -> Result:
    """A struct with one long text, against the same columns at the top level."""
    texts = {f"f{i}": pa.array([f"{i} {j % 7}" for j in range(_ROWS)]) for i in range(_FIELDS)}
    texts["body"] = pa.array(["x" * 500_000, *["y"] * (_ROWS - 1)])
    struct = pa.StructArray.from_arrays(list(texts.values()), list(texts))

    def make(folder: Path) -> None:
        for name, table in (("flat", pa.table(texts)), ("struct", pa.table({"s": struct}))):
            pq.write_table(table, folder / f"{name}.parquet")

    folder = bench.data.made("parquet_wide_struct", make)
    fields = StructType([StructField(name, StringType()) for name in texts])
    schemas = {"struct": StructType([StructField("s", fields)]), "flat": fields}
    times: dict[str, list[float]] = {name: [] for name in schemas}
    for _ in range(bench.runs):
        for name, schema in schemas.items():
            before = process_time()
            deque(decoded(folder / f"{name}.parquet", "parquet", schema, {}), maxlen=0)
            times[name].append(process_time() - before)
    return Result(
        "parquet, a struct of 690 texts, one of them long, decoded",
        median(times["struct"]), median(times["flat"]), "s", "as columns", f"{_ROWS:,} rows",
    )  # fmt: skip


def _processor_seconds(read: Input, program: str) -> float:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        given = Input(
            read.path, read.schema, read.file_format, {"maxBytesPerTrigger": _BATCH, **read.options}
        )
        call = command(given, f"delta:{name}/table", Path(name) / "checkpoint")
        before = _of_ended_children()
        program_call = [sys.executable, "-c", program, *call[3:]]
        subprocess.run(program_call, stdout=subprocess.PIPE, check=True)
        return _of_ended_children() - before


def _of_ended_children() -> float:
    # Not of the JVM, which goes on.
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _first_row(bench: Bench, shape: Shape) -> Input:
    def make(folder: Path) -> None:
        shape.write(folder / f"one.{shape.file_format}", np.random.default_rng(1), 1)

    path = bench.data.made(f"{shape.file_format}_{shape.name}_one", make)
    return Input(path, shape.schema, shape.file_format, shape.options)
