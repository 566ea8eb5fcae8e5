"""Dates and timestamps of the hybrid Julian calendar come out as Spark rebases them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.values import spark_metadata as under_test
from pyspark_sluice.reader.files.values.spark_metadata import HybridCalendar
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    format_of,
    rows_of,
    table_of,
)
from pyspark_sluice.tests.reader.files.reading import read_rows, version
from pyspark_sluice.tests.reader.readings.of_spark import in_zones, set_for_a_while
from pyspark_sluice.tests.repository import tool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INSTANT = pa.timestamp("us", "UTC")
LEGACY = {
    b"org.apache.spark.version": b"4.3.0",
    b"org.apache.spark.legacyDateTime": b"",
    b"org.apache.spark.legacyINT96": b"",
    b"org.apache.spark.timeZone": b"America/Los_Angeles",
}
JULIAN = dt.date(1000, 3, 6)
"""What the day 1 March 1000 of the Julian calendar looks like if nobody rebases it."""


def test_every_zone_is_rebased_as_by_spark_s_own_table():
    table = tool("calendar_zones").spark_table()
    random = np.random.default_rng(1)
    assert len(table) > 500
    for record in table:
        switches = np.array(record["switches"]) * 1_000_000
        amounts = np.array(record["diffs"]) * 1_000_000
        some = random.integers(switches[0], 4_102_444_800_000_000, 200)
        found = np.concatenate([some, switches[1:] - 1, switches, switches + 1])
        expected = found + amounts[np.searchsorted(switches, found, side="right") - 1]
        rebased = HybridCalendar(record["tz"]).instants(pa.array(found, pa.timestamp("us")))
        assert np.array_equal(rebased.cast(pa.int64()).to_numpy(), expected), record["tz"]


def test_the_shipped_zones_are_those_of_the_installed_spark():
    zones = tool("calendar_zones")
    shipped = (Path(under_test.__file__).parent / "calendar_zones.txt").read_text()
    assert shipped == zones.HEAD + "\n".join(zones.lines(zones.spark_table())) + "\n"


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 1_000), ("us", 1_000_000)])
def test_every_unit_is_rebased_alike_and_nulls_stay(unit, per_second):
    # 1684 is Gregorian, 1584 is too, 1484 is nine days off.
    seconds = [-9_000_000_000, -12_180_000_000, -15_335_000_000]
    array = pa.array([*(second * per_second + 1 for second in seconds), None], pa.timestamp(unit))
    moved = HybridCalendar("UTC").instants(array).cast(pa.int64()).to_pylist()
    seconds[2] -= 9 * 86_400
    assert moved == [*(second * per_second + 1 for second in seconds), None]


def test_days_before_the_year_one_keep_their_month_and_day():
    # 1 March of the year 0 in both calendars.
    assert HybridCalendar("UTC").dates(pa.array([-719_470], pa.int32()).view(pa.date32())).view(
        pa.int32()
    ).to_pylist() == [-719_468]


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("d", pa.date32()),
        ("t", INSTANT),
        ("n", pa.timestamp("us")),
        ("deep", pa.list_(pa.struct([("d", pa.date32())]))),
        ("mapped", pa.map_(pa.string(), INSTANT)),
    ]
)


def _over_the_centuries(spark: SparkSession) -> DataFrame:
    """Years 1 to 2100, with some null, and with the days around the change of the calendar."""
    return spark.sql("""
        WITH days AS (
            SELECT id, IF(id < 950, CAST(id * 807 - 719160 AS INT), CAST(id - 142400 AS INT)) AS day
            FROM RANGE(0, 1000, 1, 1)
        ), moments AS (
            SELECT id, IF(id % 9 = 4, NULL, DATE_FROM_UNIX_DATE(day)) AS d,
                IF(id % 9 = 5, NULL, TIMESTAMP_MILLIS(
                    (day + 2) * 86400000L + id * 12345678L % 86400000L)) AS t
            FROM days
        )
        SELECT id, d, t, CAST(t AS TIMESTAMP_NTZ) AS n,
            ARRAY(STRUCT(d AS d)) AS deep, MAP('k', t) AS mapped
        FROM moments""")


@pytest.mark.thorough("Spark writes the files; stored ones are read elsewhere in this module")
@pytest.mark.parametrize(
    ("file_format", "stored", "session"),
    [
        ("parquet", "INT96", "America/Los_Angeles"),
        ("parquet", "TIMESTAMP_MILLIS", "Europe/Amsterdam"),
        ("orc", "INT96", "UTC"),
    ],
)
def test_old_dates_of_spark_s_writers_are_read_as_by_spark(
    file_format, stored, session, spark, tmp_path
):
    keys = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": stored,
    }
    with in_zones(spark, session, "Asia/Kolkata"), set_for_a_while(spark, keys):
        rows = _over_the_centuries(spark)
        rows = rows if file_format == "parquet" else rows.select("id", "d", "deep")
        rows.write.format(file_format).save(str(tmp_path / "x"))
    # In UTC, so that no zone rule of Python's has a part in the comparison.
    with in_zones(spark, "UTC", "UTC"):
        expected = spark.read.format(file_format).load(str(tmp_path / "x")).orderBy("id").toArrow()
    paths = sorted((tmp_path / "x").glob(f"*.{file_format}"))
    schema = pa.schema([SCHEMA.field(name) for name in rows.columns])
    found = table_of(file_format, paths, schema, timeZone="Pacific/Auckland").sort_by("id")
    assert found.to_pylist() == expected.to_pylist()


def test_dates_of_orc_without_a_note_are_of_the_hybrid_calendar(tmp_path):
    days = pa.array(range(-719_000, -141_000, 601), pa.int32()).view(pa.date32())
    orc.write_table(pa.table({"d": days}), tmp_path / "x.orc")
    dates = table_of("orc", [tmp_path / "x.orc"], pa.schema([("d", pa.date32())]))["d"]
    assert dates.combine_chunks() == HybridCalendar("UTC").dates(days)
    assert dates.combine_chunks() != days


def _parquet(path: Path, notes: dict[bytes, bytes], *, int96: bool = False) -> Path:
    """One row: 1 March 1000 of the Julian calendar, as a date and at noon."""
    days = pa.array([JULIAN])
    noon = pa.array([dt.datetime.combine(JULIAN, dt.time(12))], pa.timestamp("us"))
    column = noon if int96 else noon.cast(INSTANT)
    table = pa.table({"d": days, "t": column}).replace_schema_metadata(notes)
    pq.write_table(table, path, use_deprecated_int96_timestamps=int96)
    return path


DAY_AND_TIME = pa.schema([("d", pa.date32()), ("t", INSTANT)])


@pytest.mark.parametrize("int96", [False, True])
@pytest.mark.parametrize(
    ("version", "options", "rebased"),
    [
        ("", {}, (False, False)),
        ("", {"datetimeRebaseMode": "LEGACY"}, (True, False)),
        ("", {"int96RebaseMode": "LEGACY"}, (False, True)),
        ("2.4.8", {}, (True, True)),
        ("3.0.3", {}, (False, True)),
        ("3.5.0", {"datetimeRebaseMode": "LEGACY"}, (False, False)),
    ],
)
def test_version_and_marks_decide_and_options_where_they_are_missing(
    version, options, rebased, int96, tmp_path
):
    notes = {b"org.apache.spark.version": version.encode()} if version else {}
    path = _parquet(tmp_path / "x.parquet", notes, int96=int96)
    (row,) = table_of("parquet", [path], DAY_AND_TIME, **options).to_pylist()
    plain, kept_in_int96 = rebased
    assert row["d"] == (dt.date(1000, 3, 1) if plain else JULIAN)
    moved = kept_in_int96 if int96 else plain
    assert row["t"].date() == (dt.date(1000, 3, 1) if moved else JULIAN)


@pytest.mark.parametrize("int96", [False, True])
def test_each_of_the_two_modes_refuses_its_own_values_only(int96, tmp_path):
    path, schema = _parquet(tmp_path / "x.parquet", {}, int96=int96), pa.schema([("t", INSTANT)])
    own, other = ["datetimeRebaseMode", "int96RebaseMode"][:: -1 if int96 else 1]
    (row,) = rows_of(
        format_of("parquet", schema, **{own: "LEGACY", other: "EXCEPTION"}), version(path)
    )
    assert row["t"].date() == dt.date(1000, 3, 1)
    with pytest.raises(SchemaMismatchError, match=own):
        rows_of(format_of("parquet", schema, **{own: "EXCEPTION", other: "LEGACY"}), version(path))


def test_a_zone_without_known_rules_is_refused_by_name(tmp_path):
    notes = {**LEGACY, b"org.apache.spark.timeZone": b"Mars/Olympus"}
    path = _parquet(tmp_path / "x.parquet", notes)
    with pytest.raises(SchemaMismatchError, match="Mars/Olympus"):
        rows_of(format_of("parquet", DAY_AND_TIME), version(path))


def test_a_filter_sees_rebased_values_with_any_bounds_of_row_groups(tmp_path):
    days = pa.array(range(-355_000, -354_000), pa.int32()).view(pa.date32())
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"d": days}).replace_schema_metadata(LEGACY), path, row_group_size=10)
    schema = pa.schema([("d", pa.date32())])
    everything = rows_of(format_of("parquet", schema), version(path))
    assert all(row["d"] < day.as_py() for row, day in zip(everything, days, strict=True))
    wanted = [row for row in everything if row["d"] == dt.date(999, 1, 20)]
    assert len(wanted) == 1
    chosen = {"file_format": "parquet", "filter": "d = '0999-01-20'"}
    assert read_rows([path], schema, **chosen) == wanted


def test_avro_with_spark_s_marks_is_rebased_like_parquet(tmp_path):
    noon = dt.datetime.combine(JULIAN, dt.time(12), dt.UTC)
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "t", "type": ["null", micros]},
        {"name": "many", "type": {"type": "array", "items": micros}},
    ]
    schema = {"type": "record", "name": "Row", "fields": fields}
    target = pa.schema([*DAY_AND_TIME, ("many", pa.list_(INSTANT))])
    records = [{"d": JULIAN, "t": noon, "many": [noon]}]
    found = {}
    for name, notes in (("plain", {}), ("legacy", LEGACY)):
        path = tmp_path / f"{name}.avro"
        with path.open("wb") as sink:
            texts = {key.decode(): value.decode() for key, value in notes.items()}
            fastavro.writer(sink, schema, records, metadata=texts)
        (found[name],) = rows_of(format_of("avro", target), version(path))
    assert found["plain"] == {"d": JULIAN, "t": noon, "many": [noon]}
    parquet = _parquet(tmp_path / "x.parquet", LEGACY)
    (expected,) = rows_of(format_of("parquet", DAY_AND_TIME), version(parquet))
    assert found["legacy"]["d"] == dt.date(1000, 3, 1)
    assert found["legacy"] == {**expected, "many": [expected["t"]]}
