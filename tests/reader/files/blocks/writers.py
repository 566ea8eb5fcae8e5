"""One table as other programs write it: pyarrow, DuckDB, polars, parquet-java, Spark.

Each function yields what the file is called and the file, so that a test can tell which differs.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 40
UTC_INSTANT = pa.timestamp("us", "UTC")
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
STORED = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("i64", pa.int64()),
        ("u8", pa.uint8()),
        ("u16", pa.uint16()),
        ("u32", pa.uint32()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("s", pa.string()),
        ("x", pa.binary()),
        ("d", pa.date32()),
        ("ts", UTC_INSTANT),
        ("tn", pa.timestamp("us")),
        ("d9", pa.decimal128(9, 2)),
        ("d18", pa.decimal128(18, 4)),
        ("d38", pa.decimal128(38, 10)),
        ("l", pa.list_(pa.int32())),
        ("ll", pa.list_(pa.list_(pa.string()))),
        ("ls", pa.list_(PAIR)),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", PAIR),
    ]
)
DDL = (
    "id bigint, flag boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, u8 smallint, u16 int, "
    "u32 bigint, u64 decimal(20,0), f32 float, f64 double, s string, x binary, d date, "
    "ts timestamp, tn timestamp_ntz, d9 decimal(9,2), d18 decimal(18,4), d38 decimal(38,10), "
    "l array<int>, ll array<array<string>>, ls array<struct<a:int,b:string>>, m map<string,int>, "
    "st struct<a:int,b:string>"
)
"""As Spark reads the table; unsigned integers become the next wider type."""

ENCODINGS = {
    "i32": "DELTA_BINARY_PACKED",
    "i64": "DELTA_BINARY_PACKED",
    "u32": "DELTA_BINARY_PACKED",
    "s": "DELTA_BYTE_ARRAY",
    "x": "DELTA_LENGTH_BYTE_ARRAY",
    "flag": "RLE",
}

STYLES: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False, "write_statistics": False},
    "delta": {"use_dictionary": False, "column_encoding": ENCODINGS},
}

File = tuple[str, Path]


def row(i: int) -> dict[str, Any]:
    """Row `i` of the table: nulls in every seventh, the types' borders in the first two."""
    if i % 7 == 6:
        return {"id": i}
    signed = [(-1) ** i * (2 ** (bits - 1) - 1 - i // 2) for bits in (8, 16, 32, 64)]
    unsigned = [2**bits - 1 - i for bits in (8, 16, 32, 64)]
    pair = {"a": i, "b": f"b{i}" if i % 2 else None}
    values = (
        i % 2 == 0,
        *signed,
        *unsigned,
        (-1.5) ** (i % 30),
        1e300 / (i + 1),
        f"text {i % 5} é\U0001f600"[: i + 3],
        bytes([i, 0, 255]) * (i % 4),
        dt.date(1969, 12, 20) + dt.timedelta(days=i * 5000 - 3000),
        dt.datetime(1969, 12, 31, 23, 59, 59, 123456, dt.UTC) + dt.timedelta(days=i * 900 - 4500),
        dt.datetime.fromisoformat("2026-03-29T02:30:00.000001") + dt.timedelta(hours=i),
        Decimal(10**9 - 1 - i).scaleb(-2) * (-1) ** i,
        Decimal(10**18 - 1 - i).scaleb(-4) * (-1) ** i,
        Decimal(f"{(-1) ** i * 1234567890123456789012345678}.{i:010d}"),
        [j if j % 3 else None for j in range(i % 5)],
        [["x", None], None, []][: i % 4],
        [pair, None][: i % 3],
        [(f"k{j}", j if j % 2 else None) for j in range(i % 4)],
        pair if i % 3 else None,
    )
    return {"id": i, **dict(zip(STORED.names[1:], values, strict=True))}


def table() -> pa.Table:
    """The table as Arrow has it."""
    return pa.Table.from_pylist([row(i) for i in range(ROWS)], STORED)


def by_pyarrow(folder: Path) -> Iterator[File]:
    """Every version, page version, codec and encoding of Arrow's writer that Spark reads too."""
    codecs = cycle(["none", "snappy", "gzip", "zstd", "lz4"])
    for version in ("1.0", "2.4", "2.6"):
        for pages in ("1.0", "2.0"):
            for how, more in STYLES.items():
                name = f"pyarrow-{version}-{pages}-{how}"
                options = {"version": version, "data_page_version": pages, **more}
                yield _arrow_file(folder, name, compression=next(codecs), **options)
    yield _arrow_file(folder, "pyarrow-no-notes", store_schema=False, write_page_checksum=True)
    yield _arrow_file(folder, "pyarrow-item", use_compliant_nested_type=False, row_group_size=7)
    yield _arrow_file(folder, "pyarrow-decimal-integers", store_decimal_as_integer=True)
    yield _arrow_file(folder, "pyarrow-int96", use_deprecated_int96_timestamps=True)
    large = pa.schema([_large(field) for field in STORED])
    yield _arrow_file(folder, "pyarrow-large-types", table().cast(large))
    yield _arrow_file(folder, "pyarrow-millis", without("tn", "ts"), coerce_timestamps="ms")
    dictionaries = table().set_column(12, "s", table().column("s").dictionary_encode())
    yield _arrow_file(folder, "pyarrow-categories", dictionaries)
    yield _arrow_file(folder, "pyarrow-empty", table().slice(0, 0))
    with pq.ParquetWriter(folder / "pyarrow-no-row-groups.parquet", STORED):
        pass
    yield "pyarrow-no-row-groups", folder / "pyarrow-no-row-groups.parquet"
    yield _arrow_file(folder, "pyarrow-other-columns", pa.table({"other": [1, 2]}))


def without(*names: str) -> pa.Table:
    """The table without some columns."""
    return table().drop_columns(list(names))


def _large(field: pa.Field) -> pa.Field:
    types = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return field.with_type(types.get(field.type, field.type))


def _arrow_file(folder: Path, name: str, data: pa.Table | None = None, **options: Any) -> File:
    path = folder / f"{name}.parquet"
    pq.write_table(table() if data is None else data, path, **options)
    return name, path


def by_duckdb(folder: Path) -> Iterator[File]:
    """DuckDB's writer: both versions, each codec that Spark knows."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # Its steps beyond 32 bits in 32-bit columns are what Arrow does not decode.
        for version, data in (("V1", table()), ("V2", without("i32", "u32"))):
            connection.register("data", data)
            for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4_raw"):
                path = folder / f"duckdb-{version}-{codec}.parquet"
                connection.execute(
                    f"COPY data TO '{path}' (FORMAT parquet, PARQUET_VERSION {version}, "
                    f"CODEC '{codec}')"
                )
                yield path.stem, path


def by_polars(folder: Path) -> Iterator[File]:
    """polars' own writer, which has no maps."""
    import polars as pl

    frame = pl.from_arrow(without("m"))
    assert isinstance(frame, pl.DataFrame)
    for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4"):
        path = folder / f"polars-{codec}.parquet"
        frame.write_parquet(path, compression=codec, row_group_size=16)
        yield path.stem, path
    frame.clear().write_parquet(folder / "polars-empty.parquet")
    yield "polars-empty", folder / "polars-empty.parquet"


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
    _, path = _arrow_file(folder, "pyarrow-for-spark")
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
    _, path = _arrow_file(folder, "for-orc")
    kept = spark.read.schema(DDL).parquet(str(path)).coalesce(1)
    made = [_spark_file(kept, folder, f"orc-{c}", "orc", compression=c) for c in ORC_CODECS]
    return [path for _, path in made]
