"""Files that Spark wrote are read as Spark reads them, and files that Arrow wrote likewise."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pyspark_sluice.tests.reader.readings.kinds import arrow_schema
from pyspark_sluice.tests.thorough import sampled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_sluice.tests.answers import SparkAnswers

ROWS = """
SELECT CAST(id AS BYTE) AS tiny, CAST(id AS SHORT) AS small, CAST(id AS INT) AS plain, id AS big,
    CAST(id AS FLOAT) / 3 AS real, CAST(id AS DOUBLE) / 3 AS exact, id % 2 = 0 AS flag,
    CAST(id AS DECIMAL(7, 2)) / 7 AS price, CAST(id AS DECIMAL(30, 10)) / 7 AS wide,
    IF(id % 3 = 0, NULL, CONCAT('text ', id)) AS text, CAST(CAST(id AS STRING) AS BINARY) AS bytes,
    DATE_ADD(DATE'1969-12-20', CAST(id AS INT)) AS day,
    TIMESTAMP'1969-12-31 23:59:59.123456' + MAKE_INTERVAL(0, 0, 0, 0, CAST(id AS INT)) AS at,
    TIMESTAMP_NTZ'2026-03-29 02:30:00' + MAKE_INTERVAL(0, 0, 0, 0, CAST(id AS INT)) AS local,
    ARRAY(id, NULL, id + 1) AS many, MAP(CONCAT('k', id), id * 2) AS named,
    IF(id % 4 = 0, NULL, STRUCT(id AS a, STRUCT('x' AS c) AS b)) AS nested,
    ARRAY(STRUCT(id AS x, MAP('m', DATE'2026-01-01') AS y)) AS deep
FROM RANGE(0, 100, 1, 1)
"""


def _own_rows(fmt: Any, read: Any, version_of: Any, folder: Path, kind: str, schema: Any) -> Any:
    found = []
    for path in sorted(folder.glob(f"*.{kind}")):
        found += read(fmt(kind, schema), version_of(path))
    return sorted(found, key=repr)


def _rows_of_spark(frame: DataFrame) -> tuple[Any, pa.Schema]:
    table = frame.toArrow()
    return sorted(table.to_pylist(), key=repr), table.schema


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize(
    "zone",
    sampled(
        ["UTC", "America/Los_Angeles"],
        lambda zone: zone != "UTC",
        reason="a zone in which instants are wall clocks",
    ),
)
def test_every_type_that_spark_wrote_reads_as_spark_reads_it(
    kind: str, zone: str, spark: SparkSession, fmt: Any, read: Any, version_of: Any, tmp_path: Path
) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        folder = tmp_path / kind
        frame = spark.sql(ROWS)
        frame.write.format(kind).save(str(folder))
        expected, schema = _rows_of_spark(
            spark.read.schema(frame.schema).format(kind).load(str(folder))
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    target = pa.schema([_utc(field) for field in schema])
    found = _own_rows(fmt, read, version_of, folder, kind, target)
    assert len(found) == 100
    assert [_instants(row) for row in found] == [_instants(row) for row in expected]


def _utc(field: pa.Field) -> pa.Field:
    zoned = pa.types.is_timestamp(field.type) and field.type.tz
    return field.with_type(pa.timestamp("us", "UTC")) if zoned else field


def _instants(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "at": row["at"].astimezone(dt.UTC)}


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2, None], pa.int32()),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array(["a"], pa.large_string()),
        pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
        pa.array([dt.date(2026, 1, 1)]),
        pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], pa.timestamp("ms", "UTC")),
        pa.array([[1, None], None, []], pa.large_list(pa.int64())),
        pa.array([{"a": 1, "b": [{"c": 1}]}, None]),
    ],
    ids=lambda array: str(array.type).replace("\n", " ")[:30],
)
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_what_arrow_wrote_reads_as_spark_reads_it(
    kind: str,
    array: pa.Array,
    spark_answers: SparkAnswers,
    fmt: Any,
    read: Any,
    version_of: Any,
    tmp_path: Path,
) -> None:
    path = tmp_path / f"x.{kind}"
    if kind == "orc" and pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind == "orc" and pa.types.is_large_string(array.type):
        array = array.cast(pa.string())
    table = pa.table({"c": array})
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        orc.write_table(table, path)

    def by_spark(spark: SparkSession) -> tuple[str, list[Any]]:
        frame = spark.read.format(kind).load(str(path))
        return frame.schema.fields[0].dataType.simpleString(), _rows_of_spark(frame)[0]

    ddl, expected = spark_answers(by_spark, kind, str(array.type), array)
    schema = arrow_schema(f"c {ddl}")
    assert _own_rows(fmt, read, version_of, tmp_path, kind, schema) == expected


def test_binary_files_read_as_spark_reads_them(
    spark_answers: SparkAnswers, fmt: Any, read: Any, version_of: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a b.bin"
    path.write_bytes(b"\x00\x01")
    # Hadoop's local file system knows milliseconds only.
    os.utime(path, ns=(0, 1_700_000_000_123_000_000))

    def by_spark(spark: SparkSession) -> tuple[str, dict[str, Any]]:
        frame = spark.read.format("binaryFile").load(str(tmp_path))
        ddl = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)
        return ddl, _below(tmp_path, *_rows_of_spark(frame)[0])

    ddl, expected = spark_answers(by_spark, path)
    (found,) = read(fmt("binaryFile", arrow_schema(ddl)), version_of(path))
    assert _below(tmp_path, found) == expected


def _below(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "path": row["path"].removeprefix(f"file:{folder}/")}
