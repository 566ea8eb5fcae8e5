"""The same table as parquet-java and Spark write it, which needs the JVM."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_sluice.tests.reader.files.formats.blocks.writers import DDL, File, arrow_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
