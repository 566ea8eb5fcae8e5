"""Batch reads leave out files and row groups by Spark's own conditions, and no row besides."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ENABLED = "spark.sql.python.filterPushdown.enabled"
SCHEMA = (
    "i int, d double, s string, n decimal(9,2), on date, at timestamp, ntz timestamp_ntz, "
    "b boolean, day int"
)
CONDITIONS = [
    "i <> 3 AND day > 1",
    "NOT i IN (1, 5) AND i IN (0, 1, 7, null)",
    "i IS NULL OR i = 4",
    "d > 1e9 AND i <=> 5",
    "d IN (0.0, double('NaN'))",
    "s < 'ä' AND s LIKE 'a%'",
    "n IN (1.25, 2.50) AND NOT b",
    "on >= DATE'2024-01-05'",
    "at > TIMESTAMP'2024-01-03 00:00:00' AND i > 2.5",
    "ntz < TIMESTAMP_NTZ'2024-01-04 12:00:00'",
]


@pytest.fixture
def pushing(spark):
    spark.conf.set(ENABLED, "true")
    yield
    spark.conf.unset(ENABLED)


def _table():
    days = [datetime(2024, 1, 1 + n, 12, tzinfo=UTC) if n != 4 else None for n in range(10)]
    cents = pa.decimal128(9, 2)
    return pa.table(
        {
            "i": pa.array([None if n == 2 else n for n in range(10)], pa.int32()),
            "d": [0.0, -0.0, float("nan"), None, 0.5, 1e300, float("inf"), -1.5, 2.0, float("nan")],
            "s": ["a", "ä", "", None, "abc", "b", "Z", "a", "zz", "\U0001f600"],
            "n": pa.array([Decimal(n) * 5 / 4 if n != 5 else None for n in range(10)], cents),
            "on": [date(1, 1, 1), None, *(date(2024, 1, n) for n in range(2, 10))],
            "at": pa.array(days, pa.timestamp("us", "UTC")),
            "ntz": pa.array([day and day.replace(tzinfo=None) for day in days], pa.timestamp("us")),
            "b": [True, False, None] * 3 + [True],
        }
    )


@pytest.mark.usefixtures("pushing")
def test_pushed_conditions_leave_the_rows_that_spark_leaves(spark, tmp_path):
    for name in ("parquet", "json"):
        for day in (1, 2, 3):
            folder = tmp_path / name / f"day={day}"
            folder.mkdir(parents=True)
            if name == "parquet":
                pq.write_table(_table(), folder / "a.parquet", row_group_size=2)
                continue
            rows = _table().to_pylist()
            lines = (
                json.dumps({k: v for k, v in row.items() if v is not None}, default=str)
                for row in rows
            )
            (folder / "a.json").write_text("\n".join(lines))
    own = spark.read.schema(SCHEMA).parquet(str(tmp_path / "parquet"))
    own.createOrReplaceTempView("own")
    for name in ("parquet", "json"):
        reader = spark.read.format("sluice").schema(SCHEMA).option("fileFormat", name)
        reader.load(str(tmp_path / name)).createOrReplaceTempView(f"ours_{name}")
    counts = ", ".join(f"count_if({c})" for c in CONDITIONS)
    expected = spark.sql(f"SELECT {counts} FROM own").first()
    sums = "count(*) AS c, sum(day) AS days, sum(i) AS total"
    select = " UNION ALL ".join(
        f"SELECT '{view}' AS view, {n} AS n, {sums} FROM {view} WHERE {c}"
        for n, c in enumerate(CONDITIONS)
        for view in ("own", "ours_parquet", "ours_json")
        if view != "ours_json" or n in (0, 7)
    )
    found = {(row.view, row.n): (row.c, row.days, row.total) for row in spark.sql(select).collect()}
    for n, condition in enumerate(CONDITIONS):
        assert found["own", n][0] == expected[n], condition
        assert found["ours_parquet", n] == found["own", n], condition
        assert found.get(("ours_json", n), found["own", n]) == found["own", n], condition


@pytest.mark.usefixtures("pushing")
def test_files_and_row_groups_that_cannot_match_are_not_read(spark, tmp_path):
    table = pa.table({"id": list(range(1000)), "text": ["x" * 100] * 1000})
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
    path = tmp_path / "day=1" / "a.parquet"
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="none")
    first = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[4:first] = bytes(first - 4)
    path.write_bytes(data)
    (tmp_path / "day=2" / "b.parquet").write_bytes(b"no parquet at all")
    reader = spark.read.format("sluice").schema("id long, text string, day int")
    frame = reader.option("fileFormat", "parquet").load(str(tmp_path))
    assert frame.where("day = 1 AND id >= 250").count() == 750
    for condition in ("day = 1 AND id >= 50", "id >= 250"):
        with pytest.raises(Exception, match=r"(?s)cannot be decoded|not a readable"):
            frame.where(condition).count()
    spark.conf.set(ENABLED, "false")
    with pytest.raises(Exception, match=r"(?s)cannot be decoded|not a readable"):
        frame.where("day = 1 AND id >= 250").count()
