"""Variants that Parquet keeps in columns of their own come out as Spark puts them together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.tests import answers
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import table_of
from pyspark_sluice.tests.reader.readings.kinds import VARIANT

SCHEMA = pa.schema([("id", pa.int64()), ("v", VARIANT)])
ROWS = """
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
    try:
        if shredding:
            spark.conf.set(key, shredding)
        spark.sql(ROWS).write.parquet(str(tmp_path / "x"))
    finally:
        spark.conf.unset(key)
    paths = sorted((tmp_path / "x").glob("*.parquet"))
    stored = pq.ParquetFile(paths[0]).schema_arrow.field("v").type
    assert stored.get_field_index("typed_value") >= 0 or not shredding
    expected = spark.read.parquet(str(tmp_path / "x")).orderBy("id").toArrow()
    table = table_of("parquet", paths, SCHEMA).sort_by("id")
    assert table.to_pylist() == expected.to_pylist()


def _file(path: Path, group: dict[str, pa.Array]) -> Path:
    fields = [pa.field(name, array.type) for name, array in group.items()]
    column = pa.StructArray.from_arrays(list(group.values()), fields=fields)
    pq.write_table(pa.table({"id": list(range(len(column))), "v": column}), path)
    return path


EMPTY = b"\x01\x00\x00"
"""A dictionary without names."""


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
    group = {
        "metadata": pa.array([EMPTY]),
        "value": pa.array([value], pa.binary()),
        "typed_value": typed,
    }
    path = _file(tmp_path / "x.parquet", group)
    with pytest.raises(SchemaMismatchError, match="column 'v'") as caught:
        table_of("parquet", [path], SCHEMA)
    assert found in caught.value.found
    assert caught.value.where.startswith(str(path))
