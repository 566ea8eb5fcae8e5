"""Dates and timestamps of the hybrid Julian calendar come out as Spark rebases them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.testing import read_rows, version
from pyspark_sluice.reader.files.values import calendar_rebase as under_test
from pyspark_sluice.reader.files.values.calendar_rebase import HybridCalendar
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    format_of,
    rows_of,
    table_of,
)
from pyspark_sluice.tests.repository import tool

INSTANT = pa.timestamp("us", "UTC")
LEGACY = {
    b"org.apache.spark.version": b"4.3.0",
    b"org.apache.spark.legacyDateTime": b"",
    b"org.apache.spark.legacyINT96": b"",
    b"org.apache.spark.timeZone": b"America/Los_Angeles",
}
JULIAN = dt.date(1000, 3, 6)
"""What the day 1 March 1000 of the Julian calendar looks like if nobody rebases it."""
NOON = dt.datetime.combine(JULIAN, dt.time(12), dt.UTC)


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


def test_dates_of_orc_without_a_note_are_of_the_hybrid_calendar(tmp_path):
    days = pa.array(range(-719_000, -141_000, 601), pa.int32()).view(pa.date32())
    structs = pa.StructArray.from_arrays([days], ["d"])
    orc.write_table(pa.table({"d": days, "deep": structs}), tmp_path / "x.orc")
    schema = pa.schema([("d", pa.date32()), ("deep", structs.type)])
    table = table_of("orc", [tmp_path / "x.orc"], schema)
    dates = table["d"].combine_chunks()
    assert dates == table["deep"].combine_chunks().field("d") == HybridCalendar("UTC").dates(days)
    assert dates != days


def _parquet(path: Path, notes: dict[bytes, bytes], *, int96: bool = False) -> Path:
    """One row: 1 March 1000 of the Julian calendar, as a date and at noon."""
    noon = pa.array([NOON], pa.timestamp("us") if int96 else INSTANT)
    many = pa.array([[NOON, None]], pa.list_(noon.type))
    mapped = pa.array([[("k", NOON)]], pa.map_(pa.string(), noon.type))
    table = pa.table({"d": pa.array([JULIAN]), "t": noon, "many": many, "mapped": mapped})
    pq.write_table(
        table.replace_schema_metadata(notes), path, use_deprecated_int96_timestamps=int96
    )
    return path


DAY_AND_TIME = pa.schema([("d", pa.date32()), ("t", INSTANT)])
NESTED = [("many", pa.list_(INSTANT)), ("mapped", pa.map_(pa.string(), INSTANT))]


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


@pytest.mark.parametrize("name", ["parquet", "avro"])
def test_spark_s_marks_rebase_dates_and_instants_in_the_zone_of_the_file(name, tmp_path):
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "t", "type": ["null", micros]},
        {"name": "many", "type": {"type": "array", "items": ["null", micros]}},
        {"name": "mapped", "type": {"type": "map", "values": micros}},
    ]
    schema = {"type": "record", "name": "Row", "fields": fields}
    record = {"d": JULIAN, "t": NOON, "many": [NOON, None], "mapped": {"k": NOON}}
    found = []
    for notes in ({}, LEGACY):
        path = tmp_path / f"{len(notes)}.{name}"
        if name == "parquet":
            _parquet(path, notes)
        else:
            texts = {key.decode(): value.decode() for key, value in notes.items()}
            with path.open("wb") as sink:
                fastavro.writer(sink, schema, [record], metadata=texts)
        file_format = format_of(name, pa.schema([*DAY_AND_TIME, *NESTED]), timeZone="Asia/Tokyo")
        found += rows_of(file_format, version(path))
    plain, legacy = found
    assert plain == {**record, "mapped": [("k", NOON)]}
    [noon] = HybridCalendar("America/Los_Angeles").instants(pa.array([NOON], INSTANT)).to_pylist()
    assert noon != HybridCalendar("UTC").instants(pa.array([NOON], INSTANT))[0].as_py()
    first = dt.date(1000, 3, 1)
    assert legacy == {"d": first, "t": noon, "many": [noon, None], "mapped": [("k", noon)]}
