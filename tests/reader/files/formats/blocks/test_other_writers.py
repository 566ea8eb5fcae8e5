"""Files of other programs, in every type and setting of their writers, read as Spark reads them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.tests.reader.files.formats.blocks import jvm_writers, writers
from pyspark_sluice.tests.reader.files.formats.json.comparing import plain_rows
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]


def _of_spark(spark: SparkSession, paths: list[Path], ddl: str, kind: str) -> dict[str, Rows]:
    """Rows of each file, by one read of all of them."""
    frame = spark.read.schema(ddl).format(kind).load([str(path) for path in paths])
    by_file: dict[str, Rows] = defaultdict(list)
    for row in plain_rows(frame.select("*", "_metadata.file_name").toArrow()):
        by_file[str(row.pop("file_name"))].append(row)
    return {path.name: _sorted(by_file[path.name]) for path in paths}


def _sorted(rows: Rows) -> Rows:
    return sorted(rows, key=repr)


def _same(spark: SparkSession, read: Any, paths: list[Path], ddl: str, kind: str) -> None:
    expected = _of_spark(spark, paths, ddl, kind)
    schema = arrow_schema(ddl)
    for path in paths:
        found = _sorted(plain_rows(read(kind, schema, path)))
        assert found == expected[path.name], path.name


@pytest.fixture
def table_of(fmt: Any, read_table: Any) -> Any:
    """The rows of one file by the reader."""

    def read(kind: str, schema: pa.Schema, path: Path) -> pa.Table:
        return read_table(fmt(kind, schema), [path], schema)

    return read


def test_parquet_of_every_writer_reads_as_spark_reads_it(spark, table_of, tmp_path):
    files = [
        *writers.by_pyarrow(tmp_path),
        *writers.by_duckdb(tmp_path),
        *writers.by_polars(tmp_path),
        *jvm_writers.by_parquet_java(spark, tmp_path),
        *jvm_writers.by_spark(spark, tmp_path),
    ]
    assert len({path for _, path in files}) == len(files) > 50
    _same(spark, table_of, [path for _, path in files], writers.DDL, "parquet")


def test_orc_of_every_codec_reads_as_spark_reads_it(spark, table_of, tmp_path):
    paths = jvm_writers.orc_by_spark(spark, tmp_path)
    _same(spark, table_of, paths, writers.DDL, "orc")


def test_avro_of_fastavro_and_polars_holds_the_rows_that_were_written(table_of, tmp_path):
    import polars as pl

    names = ["id", "flag", "i32", "i64", "f32", "f64", "s", "x", "d", "l", "ll", "ls", "st"]
    data = writers.table().select(names)
    by_polars, by_fastavro = tmp_path / "polars.avro", tmp_path / "fastavro.avro"
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    frame.write_avro(by_polars, compression="snappy")
    with by_polars.open("rb") as source:
        found = fastavro.reader(source).writer_schema
    with by_fastavro.open("wb") as sink:
        fastavro.writer(sink, found, data.to_pylist(), codec="deflate", sync_interval=300)
    for path in (by_polars, by_fastavro):
        assert table_of("avro", data.schema, path).to_pylist() == data.to_pylist(), path.name


RAW_IN_SPARK = {
    "halves": (pa.array([1.5], pa.float16()), pa.binary()),
    "times": (pa.array([1000], pa.time64("us")), pa.int64()),
    "milliseconds": (pa.array([1000], pa.time32("ms")), pa.int32()),
    "nanoseconds": (pa.array([1500], pa.timestamp("ns")), pa.int64()),
    "durations": (pa.array([1000], pa.duration("us")), pa.int64()),
}
"""What Spark hands out as the number or bytes that it is stored in; see docs/differences.md."""


@pytest.mark.parametrize("name", RAW_IN_SPARK)
def test_what_spark_hands_out_as_stored_is_refused_with_both_types_named(name, table_of, tmp_path):
    array, target = RAW_IN_SPARK[name]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": array}), path, version="2.6")
    expected = f"column 'c' does not fit.*{path}.*{re.escape(str(array.type))}.*expected {target}"
    with pytest.raises(SchemaMismatchError, match=expected):
        table_of("parquet", pa.schema([("c", target)]), path)


REFUSED_BY_SPARK = {
    "halves": (pa.array([1.5, None], pa.float16()), pa.float64(), [1.5, None]),
    "whole microseconds": (pa.array([2000], pa.timestamp("ns")), pa.timestamp("us"), [2]),
    "fixed bytes": (pa.array([b"0123"], pa.binary(4)), pa.string(), ["0123"]),
    "wide decimals": (pa.array([7], pa.decimal256(50, 0)), pa.decimal128(38, 0), [7]),
    "small numbers": (pa.array([5], pa.int64()), pa.int32(), [5]),
    "nothing": (pa.nulls(2), pa.list_(pa.int32()), [None, None]),
}
"""What Spark does not read, and no value is lost by reading it."""


@pytest.mark.parametrize("name", REFUSED_BY_SPARK)
def test_what_spark_refuses_is_read_where_no_value_is_lost(name, table_of, tmp_path):
    array, target, values = REFUSED_BY_SPARK[name]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": array}), path, version="2.6", compression="brotli")
    column = table_of("parquet", pa.schema([("c", target)]), path).column("c")
    found = column.cast(pa.int64()) if pa.types.is_timestamp(target) else column
    assert found.to_pylist() == values
