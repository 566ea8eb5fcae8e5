"""Files of other programs, in every type and setting of their writers, read as Spark reads them."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.tests import answers
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import table_of
from pyspark_sluice.tests.reader.files.formats.json.comparing import plain_rows
from pyspark_sluice.tests.reader.readings.kinds import VARIANT, arrow_schema
from pyspark_sluice.tests.reader.readings.of_spark import set_for_a_while

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]

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


def _row(i: int) -> dict[str, Any]:
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
    return pa.Table.from_pylist([_row(i) for i in range(ROWS)], STORED)


def by_pyarrow(folder: Path) -> Iterator[File]:
    """Every version, page version, codec and encoding of Arrow's writer that Spark reads too."""
    codecs = cycle(["none", "snappy", "gzip", "zstd", "lz4"])
    for version in ("1.0", "2.4", "2.6"):
        for pages in ("1.0", "2.0"):
            for how, more in STYLES.items():
                name = f"pyarrow-{version}-{pages}-{how}"
                options = {"version": version, "data_page_version": pages, **more}
                yield arrow_file(folder, name, compression=next(codecs), **options)
    yield arrow_file(folder, "pyarrow-no-notes", store_schema=False, write_page_checksum=True)
    yield arrow_file(folder, "pyarrow-item", use_compliant_nested_type=False, row_group_size=7)
    yield arrow_file(folder, "pyarrow-decimal-integers", store_decimal_as_integer=True)
    yield arrow_file(folder, "pyarrow-int96", use_deprecated_int96_timestamps=True)
    large = pa.schema([_large(field) for field in STORED])
    yield arrow_file(folder, "pyarrow-large-types", table().cast(large))
    yield arrow_file(folder, "pyarrow-millis", without("tn", "ts"), coerce_timestamps="ms")
    dictionaries = table().set_column(12, "s", table().column("s").dictionary_encode())
    yield arrow_file(folder, "pyarrow-categories", dictionaries)
    yield arrow_file(folder, "pyarrow-empty", table().slice(0, 0))
    with pq.ParquetWriter(folder / "pyarrow-no-row-groups.parquet", STORED):
        pass
    yield "pyarrow-no-row-groups", folder / "pyarrow-no-row-groups.parquet"
    yield arrow_file(folder, "pyarrow-other-columns", pa.table({"other": [1, 2]}))


def without(*names: str) -> pa.Table:
    """The table without some columns."""
    return table().drop_columns(list(names))


def _large(field: pa.Field) -> pa.Field:
    types = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return field.with_type(types.get(field.type, field.type))


def arrow_file(folder: Path, name: str, data: pa.Table | None = None, **options: Any) -> File:
    """The table, or another one, as Arrow writes it."""
    path = folder / f"{name}.parquet"
    pq.write_table(table() if data is None else data, path, **options)
    return name, path


def by_duckdb(folder: Path) -> File:
    """DuckDB's newer writer, whose steps beyond 32 bits in 32-bit columns Arrow does not decode."""
    path = folder / "duckdb.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("data", without("i32", "u32"))
        connection.execute(f"COPY data TO '{path}' (FORMAT parquet, PARQUET_VERSION V2)")
    return path.stem, path


def by_polars(folder: Path) -> File:
    """polars' own writer, which has no maps."""
    path = folder / "polars.parquet"
    frame = pl.from_arrow(without("m"))
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, row_group_size=16)
    return path.stem, path


def _of_spark(spark: SparkSession, paths: list[Path]) -> dict[str, Rows]:
    """Rows of each file, by one read of all of them."""
    frame = spark.read.schema(DDL).parquet(*map(str, paths))
    by_file: dict[str, Rows] = defaultdict(list)
    for row in plain_rows(frame.select("*", "_metadata.file_name").toArrow()):
        by_file[str(row.pop("file_name"))].append(row)
    return {path.name: _sorted(by_file[path.name]) for path in paths}


def _sorted(rows: Rows) -> Rows:
    return sorted(rows, key=repr)


TWO_LEVELS = """message old {
    required binary s;
    optional group l (LIST) { repeated int32 array; }
    optional group ll (LIST) { repeated group array (LIST) { repeated binary array (UTF8); } }
    optional group ls (LIST) {
        repeated group ls_tuple { optional int32 a; optional binary b (UTF8); }
    }
    optional group m (MAP_KEY_VALUE) {
        repeated group map { required binary k (ENUM); optional int32 number; }
    }
}"""
"""Lists of two levels and oddly named entries: as Avro, Thrift and Hive wrote them."""


def by_parquet_java(spark: SparkSession, folder: Path) -> Iterator[File]:
    """parquet-java's own writer, with the shapes that older programs gave their columns."""
    parquet: Any = spark._jvm.org.apache.parquet
    kind = parquet.schema.MessageTypeParser.parseMessageType(TWO_LEVELS)
    path = folder / "java-two-levels.parquet"
    target = spark._jvm.org.apache.hadoop.fs.Path(f"file:{path}")
    builder = parquet.hadoop.example.ExampleParquetWriter.builder(target)
    writer = builder.withType(kind).build()
    groups = parquet.example.data.simple.SimpleGroupFactory(kind)
    for count in range(4):
        group = groups.newGroup()
        group.append("s", f"text {count}")
        numbers, outer = group.addGroup("l"), group.addGroup("ll")
        pairs, entries = group.addGroup("ls"), group.addGroup("m")
        for j in range(count):
            numbers.append("array", j)
            outer.addGroup("array").append("array", f"t{j}")
            pairs.addGroup("ls_tuple").append("a", j).append("b", f"b{j}")
            entries.addGroup("map").append("k", f"k{j}").append("number", j)
        writer.write(group)
    writer.close()
    yield path.stem, path


SETTINGS: dict[str, dict[str, str]] = {
    "legacy": {"spark.sql.parquet.writeLegacyFormat": "true"},
    "int96": {"spark.sql.parquet.outputTimestampType": "INT96"},
    "micros": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
    "millis": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
    "field-ids": {"spark.sql.parquet.fieldId.write.enabled": "true"},
}


def by_spark(spark: SparkSession, folder: Path) -> Iterator[File]:
    """Spark's writer with each of its options."""
    _, path = arrow_file(folder, "for-spark")
    kept = spark.read.schema(DDL).parquet(str(path)).coalesce(1)
    for name, settings in SETTINGS.items():
        with set_for_a_while(spark, settings):
            yield _spark_file(kept, folder, name)
    yield _spark_file(kept, folder, "version-2", **{"parquet.writer.version": "PARQUET_2_0"})
    yield _spark_file(
        kept, folder, "plain", **{"parquet.enable.dictionary": "false", "parquet.page.size": "100"}
    )


def _spark_file(frame: Any, folder: Path, name: str, **options: str) -> File:
    target = folder / f"of-{name}"
    frame.write.options(**options).parquet(str(target))
    (written,) = target.glob("part-*")
    return f"spark-{name}", written.rename(folder / f"spark-{name}.parquet")


@pytest.mark.thorough("files of five writers; names, damage and footers are tested one by one")
def test_parquet_of_every_writer_reads_as_spark_reads_it(spark, tmp_path):
    files = [
        *by_pyarrow(tmp_path),
        by_duckdb(tmp_path),
        by_polars(tmp_path),
        *by_parquet_java(spark, tmp_path),
        *by_spark(spark, tmp_path),
    ]
    assert len({path for _, path in files}) == len(files) > 30
    expected = _of_spark(spark, [path for _, path in files])
    schema = arrow_schema(DDL)
    for _, path in files:
        rows = _sorted(plain_rows(table_of("parquet", [path], schema)))
        assert rows == expected[path.name], path.name


def test_what_spark_refuses_is_read_where_no_value_is_lost(tmp_path):
    stored = {
        "half": pa.array([1.5, None], pa.float16()),
        "whole": pa.array([2000, None], pa.timestamp("ns")),
        "fixed": pa.array([b"0123", None], pa.binary(4)),
        "wide": pa.array([7, None], pa.decimal256(50, 0)),
        "empty": pa.nulls(2),
    }
    types = [pa.float64(), pa.timestamp("us"), pa.string(), pa.decimal128(38), pa.list_(pa.int32())]
    path, schema = tmp_path / "x.parquet", pa.schema(list(zip(stored, types, strict=True)))
    pq.write_table(pa.table(stored), path, version="2.6", compression="brotli")
    values, nulls = table_of("parquet", [path], schema).to_pylist()
    whole = dt.datetime.fromisoformat("1970-01-01T00:00:00.000002")
    assert [*values.values()] == [1.5, whole, "0123", 7, None]
    assert [*nulls.values()] == [None] * 5


WITH_VARIANT = pa.schema([("id", pa.int64()), ("v", VARIANT)])
VARIANTS = """
    SELECT id, CASE id % 6
        WHEN 0 THEN parse_json('{"a":1,"b":"x","c":{"d":1.5,"e":[1,2,3]},"f":true,"u":null}')
        WHEN 1 THEN to_variant_object(named_struct(
            'a', DATE'2020-01-01', 'b', TIMESTAMP'2020-01-01 00:00:00',
            'c', TIMESTAMP_NTZ'1500-01-01 00:00:00', 'f', 1.5f, 'g', CAST('abc' AS BINARY),
            'h', CAST(2.5 AS DOUBLE), 'i', CAST(1.25 AS DECIMAL(5, 2)),
            'j', ARRAY(NAMED_STRUCT('k', id), NAMED_STRUCT('k', -id))))
        WHEN 2 THEN parse_json(CONCAT('{"a":', id * 1000000007, ',"b":"', REPEAT('é', 70),
            '","c":{"d":12345678901234567890.123,"e":[]},"f":false,"z":{"y":1,"a":{}}}'))
        WHEN 3 THEN parse_json('[1,2,{"x":[null]},"text",0.001]')
        WHEN 4 THEN parse_json('"text alone"')
        ELSE parse_json(CAST(id AS STRING)) END AS v
    FROM RANGE(0, 30, 1, 1)"""


@pytest.mark.skipif(answers.LINE == "4.0", reason="Spark 4.0 does not shred variants")
@pytest.mark.sample(
    "array<int>",
    "a int, b string, c struct<d decimal(10,2), e array<int>>, f boolean",
    why="more types",
)
@pytest.mark.parametrize(
    "shredding",
    [
        "",
        "a int, b string, c struct<d decimal(10,2), e array<int>>, f boolean",
        (
            "a date, b timestamp, c timestamp_ntz, f float, g binary, h double, i decimal(5,2), "
            "j array<struct<k bigint>>, z variant"
        ),
        "array<int>",
        "string",
    ],
)
def test_shredded_variants_are_the_bytes_that_spark_reads(shredding, spark, tmp_path):
    key = "spark.sql.variant.forceShreddingSchemaForTest"
    with set_for_a_while(spark, {key: shredding} if shredding else {}):
        spark.sql(VARIANTS).write.parquet(str(tmp_path / "x"))
    paths = sorted((tmp_path / "x").glob("*.parquet"))
    stored = pq.ParquetFile(paths[0]).schema_arrow.field("v").type
    assert stored.get_field_index("typed_value") >= 0 or not shredding
    expected = spark.read.parquet(str(tmp_path / "x")).orderBy("id").toArrow()
    table = table_of("parquet", paths, WITH_VARIANT).sort_by("id")
    assert table.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(
    ("typed", "value", "found"),
    [
        (pa.array([1], pa.time64("us")), None, "time64"),
        (pa.array([1], pa.timestamp("ns")), None, "timestamp"),
        (pa.array([1], pa.uint32()), None, "uint32"),
        (pa.array([{"a": 1}]), None, "within a shredded variant"),
        (pa.array([None], pa.int32()), b"\x44\x00\x00\x00\x00\x00\x00\x00\x00", "the type 17"),
        (pa.array([None], pa.int32()), b"\x10\x01", "ends early"),
        (pa.array([None], pa.int32()), b"\x02\x01\x00\x00\x02\x0c\x01", "number 0 of 0 names"),
        (pa.array([None], pa.int32()), None, "without any value"),
        (pa.array([{"a": {"value": b"\x00"}}]), b"\x0c\x05", "not an object"),
    ],
)
def test_what_spark_s_variants_have_not_is_refused_by_name(typed, value, found, tmp_path):
    # A dictionary without names.
    parts = {"metadata": pa.array([b"\x01\x00\x00"]), "value": pa.array([value], pa.binary())}
    parts["typed_value"] = typed
    column = pa.StructArray.from_arrays(list(parts.values()), list(parts))
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [0], "v": column}), path)
    with pytest.raises(SchemaMismatchError, match="column 'v'") as caught:
        table_of("parquet", [path], WITH_VARIANT)
    assert found in caught.value.found
    assert caught.value.where.startswith(str(path))
