"""Files of other programs, in every type and setting of their writers, read as Spark reads them."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.tests.reader.files.formats.blocks import writers
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import table_of
from pyspark_sluice.tests.reader.files.formats.blocks.writers import DDL, File, arrow_file
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


def _same(spark: SparkSession, paths: list[Path], ddl: str, kind: str) -> None:
    expected = _of_spark(spark, paths, ddl, kind)
    schema = arrow_schema(ddl)
    for path in paths:
        rows = _sorted(plain_rows(table_of(kind, [path], schema)))
        assert rows == expected[path.name], path.name


# Files of parquet-java and Spark, which need the JVM -------------------------------------------

OLD_SHAPES = """message old {
    required int64 id;
    optional int32 i8 (INT_8);
    optional int32 u16 (UINT_16);
    optional binary s;
    optional binary x (BSON);
    optional int64 ts (TIMESTAMP_MILLIS);
    optional fixed_len_byte_array(9) d18 (DECIMAL(18, 4));
    optional binary d38 (DECIMAL(38, 10));
    optional group l (LIST) { repeated int32 array; }
    optional group ll (LIST) { repeated group array (LIST) { repeated binary array (UTF8); } }
    optional group ls (LIST) {
        repeated group ls_tuple { optional int32 a; optional binary b (UTF8); }
    }
    optional group m (MAP_KEY_VALUE) {
        repeated group map { required binary k (ENUM); optional int32 number; }
    }
}"""
"""Two-level lists, oddly named entries, bytes for numbers: as Avro, Thrift and Hive wrote them."""


def by_parquet_java(spark: SparkSession, folder: Path) -> Iterator[File]:
    """parquet-java's own writer, with the shapes that older programs gave their columns."""
    yield "java-old-shapes", _java_file(spark, folder / "java-old-shapes.parquet", OLD_SHAPES, _old)
    repeated = "message r { required int64 id; repeated int32 l; }"
    yield "java-repeated", _java_file(spark, folder / "java-repeated.parquet", repeated, _repeated)
    edges = "message e { required int64 id; optional int96 ts; }"
    yield "java-int96-edges", _java_file(spark, folder / "java-int96.parquet", edges, _edge)


def _java_file(spark: SparkSession, path: Path, schema: str, fill: Any) -> Path:
    jvm: Any = spark._jvm
    kind = jvm.org.apache.parquet.schema.MessageTypeParser.parseMessageType(schema)
    target = jvm.org.apache.hadoop.fs.Path(f"file:{path}")
    builder = jvm.org.apache.parquet.hadoop.example.ExampleParquetWriter.builder(target)
    writer = builder.withType(kind).build()
    groups = jvm.org.apache.parquet.example.data.simple.SimpleGroupFactory(kind)
    number = 0
    while True:
        group = groups.newGroup()
        if not fill(jvm, group, number):
            break
        writer.write(group)
        number += 1
    writer.close()
    return path


def _bytes(jvm: Any, data: bytes) -> Any:
    return jvm.org.apache.parquet.io.api.Binary.fromConstantByteArray(bytearray(data))


def _old(jvm: Any, group: Any, i: int) -> bool:
    _add_long(jvm, group, "id", i)
    if i == 1:
        return True
    group.append("i8", -i).append("u16", 65535 - i).append("s", f"text {i}")
    group.add("x", _bytes(jvm, bytes([i, 255])))
    _add_long(jvm, group, "ts", -i * 86_400_001)
    for name, width in (("d18", 9), ("d38", 5)):
        group.add(name, _bytes(jvm, (-i).to_bytes(width, "big", signed=True)))
    numbers, outer = group.addGroup("l"), group.addGroup("ll")
    pairs, entries = group.addGroup("ls"), group.addGroup("m")
    for j in range(i % 4):
        numbers.append("array", j)
        outer.addGroup("array").append("array", f"t{j}")
        pairs.addGroup("ls_tuple").append("a", j).append("b", f"b{j}")
        entries.addGroup("map").append("k", f"k{j}").append("number", j)
    return i < 9


def _add_long(jvm: Any, group: Any, name: str, number: int) -> None:
    # Python's small numbers go over as `int`, which the writer takes for another type.
    value = jvm.org.apache.parquet.example.data.simple.LongValue(number)
    group.add(group.getType().getFieldIndex(name), value)


def _repeated(jvm: Any, group: Any, i: int) -> bool:
    _add_long(jvm, group, "id", i)
    for j in range(i % 3):
        group.append("l", j)
    return i < 6


EDGES = [
    (2_440_588, 0),
    (0, 0),
    (0, 5_999),
    (1, 0),
    (2**31 - 1, 7_000),
    (-1, 0),
    (-(2**31), 1),
    (2_440_588, -1),
    (2_440_588, -1_999),
    (2_440_588, -(2**63)),
    (2_440_588, 2**63 - 1),
    (2_440_588, 86_400_000_005_000),
    (2_440_588 + 106_751_995, 0),
]
"""Julian days and nanoseconds, at and beyond what either should be."""


def _edge(jvm: Any, group: Any, i: int) -> bool:
    if i >= len(EDGES):
        return False
    _add_long(jvm, group, "id", i)
    day, nanoseconds = EDGES[i]
    group.add("ts", _bytes(jvm, struct.pack("<qi", nanoseconds, day)))
    return True


SETTINGS: dict[str, dict[str, str]] = {
    "legacy": {"spark.sql.parquet.writeLegacyFormat": "true"},
    "int96": {"spark.sql.parquet.outputTimestampType": "INT96"},
    "micros": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
    "millis": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
    "field-ids": {"spark.sql.parquet.fieldId.write.enabled": "true"},
}


def by_spark(spark: SparkSession, folder: Path) -> Iterator[File]:
    """Spark's writer with each of its options."""
    _, path = arrow_file(folder, "pyarrow-for-spark")
    kept = spark.read.schema(DDL).parquet(str(path)).coalesce(1)
    for name, settings in SETTINGS.items():
        before = {key: spark.conf.get(key) for key in settings}
        try:
            for key, value in settings.items():
                spark.conf.set(key, value)
            yield _spark_file(kept, folder, name)
        finally:
            for key, old in before.items():
                spark.conf.set(key, str(old))
    for codec in ("none", "snappy", "gzip", "lz4", "lz4_raw", "zstd"):
        yield _spark_file(kept, folder, codec, compression=codec)
    yield _spark_file(kept, folder, "version-2", **{"parquet.writer.version": "PARQUET_2_0"})
    yield _spark_file(
        kept, folder, "plain", **{"parquet.enable.dictionary": "false", "parquet.page.size": "100"}
    )


def _spark_file(frame: Any, folder: Path, name: str, kind: str = "parquet", **options: str) -> File:
    target = folder / f"of-{name}"
    frame.write.format(kind).options(**options).save(str(target))
    (written,) = target.glob("part-*")
    return f"spark-{name}", written.rename(folder / f"spark-{name}.{kind}")


ORC_CODECS = ("none", "snappy", "zlib", "lz4", "zstd")


def orc_by_spark(spark: SparkSession, folder: Path) -> list[Path]:
    """Spark's ORC files with each codec that Arrow reads."""
    _, path = arrow_file(folder, "for-orc")
    kept = spark.read.schema(DDL).parquet(str(path)).coalesce(1)
    made = [_spark_file(kept, folder, f"orc-{c}", "orc", compression=c) for c in ORC_CODECS]
    return [path for _, path in made]


@pytest.mark.thorough("six writers of one format; names, damage and footers are tested one by one")
def test_parquet_of_every_writer_reads_as_spark_reads_it(spark, tmp_path):
    files = [
        *writers.by_pyarrow(tmp_path),
        *writers.by_duckdb(tmp_path),
        *writers.by_polars(tmp_path),
        *by_parquet_java(spark, tmp_path),
        *by_spark(spark, tmp_path),
    ]
    assert len({path for _, path in files}) == len(files) > 50
    _same(spark, [path for _, path in files], DDL, "parquet")


def test_orc_of_every_codec_reads_as_spark_reads_it(spark, tmp_path):
    paths = orc_by_spark(spark, tmp_path)
    _same(spark, paths, DDL, "orc")


def test_avro_of_fastavro_and_polars_holds_the_rows_that_were_written(tmp_path):
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
        assert table_of("avro", [path], data.schema).to_pylist() == data.to_pylist(), path.name


RAW_IN_SPARK = {
    "halves": (pa.array([1.5], pa.float16()), pa.binary()),
    "times": (pa.array([1000], pa.time64("us")), pa.int64()),
    "milliseconds": (pa.array([1000], pa.time32("ms")), pa.int32()),
    "nanoseconds": (pa.array([1500], pa.timestamp("ns")), pa.int64()),
    "durations": (pa.array([1000], pa.duration("us")), pa.int64()),
}
"""What Spark hands out as the number or bytes that it is stored in; see docs/differences.md."""


@pytest.mark.parametrize("name", RAW_IN_SPARK)
def test_what_spark_hands_out_as_stored_is_refused_with_both_types_named(name, tmp_path):
    array, target = RAW_IN_SPARK[name]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": array}), path, version="2.6")
    expected = f"column 'c' does not fit.*{path}.*{re.escape(str(array.type))}.*expected {target}"
    with pytest.raises(SchemaMismatchError, match=expected):
        table_of("parquet", [path], pa.schema([("c", target)]))


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
def test_what_spark_refuses_is_read_where_no_value_is_lost(name, tmp_path):
    array, target, values = REFUSED_BY_SPARK[name]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": array}), path, version="2.6", compression="brotli")
    column = table_of("parquet", [path], pa.schema([("c", target)])).column("c")
    found = column.cast(pa.int64()) if pa.types.is_timestamp(target) else column
    assert found.to_pylist() == values
