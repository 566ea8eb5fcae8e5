"""The least and the greatest time in files of several writers, by their footers alone."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from pyspark_sluice.errors import (
    FileChangedError,
    FileVanishedError,
    MalformedDataError,
    SchemaMismatchError,
)
from pyspark_sluice.reader.files.formats import time_columns
from pyspark_sluice.reader.files.formats.orc.tail import read_tail
from pyspark_sluice.reader.files.formats.registry import format_class
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import read_rows, version

FIRST = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
LAST = datetime(2026, 1, 2, 9, tzinfo=UTC)
NESTED = pa.struct([("at", pa.int64()), ("more", pa.list_(pa.int64()))])
TIMES = [LAST, None, FIRST, FIRST + timedelta(seconds=1)]


def micros(moment):
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def span(path, column="at", unit=""):
    kind = path.suffix[1:]
    options = ReaderOptions(file_format=kind)
    return format_class(kind).time_span(version(path), options, column, unit)


def written(path, table, **options):
    if path.suffix == ".orc":
        orc.write_table(table, path, **options)
    else:
        pq.write_table(table, path, row_group_size=2, **options)
    return path


def table(values, kind):
    # Columns with columns within them come before, so that places in the schema differ.
    count = len(values)
    return pa.table(
        {
            "nested": pa.array([{"at": 1, "more": [2]}] * count, NESTED),
            "many": pa.array([[1, 2]] * count, pa.list_(pa.int64())),
            "at": pa.array(values, kind),
            "text": pa.array(["x"] * count, pa.string()),
        }
    )


WALL = [None if time is None else time.replace(tzinfo=None) for time in TIMES]


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_the_bounds_of_timestamps_hold_every_row_and_are_no_further_than_a_millisecond(
    tmp_path, suffix, unit, zone
):
    values = TIMES if zone else WALL
    if unit == "ms":
        values = [t and t.replace(microsecond=t.microsecond // 1000 * 1000) for t in values]
    made = table(values, pa.timestamp(unit, zone))
    found = span(written(tmp_path / f"a.{suffix}", made))
    first = micros(FIRST) // 1000 * 1000 if unit == "ms" else micros(FIRST)
    # ORC's statistics have milliseconds.
    slack = 999 if suffix == "orc" else 0
    assert first - slack <= found.first <= first
    assert micros(LAST) <= found.last <= micros(LAST) + slack


# Zones with names as long as that which Arrow writes, for which they are exchanged.
@pytest.mark.parametrize("zones", ["PRC+ROK", "CET", "-+PRC"])
def test_the_bounds_of_orc_s_wall_clocks_hold_every_row_in_the_zones_of_all_stripes(
    tmp_path, zones
):
    # In CET the second of the two hours that the wall clock shows.
    first = datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001
    wall = [first + timedelta(milliseconds=index) for index in range(3000)]
    made = pa.table({"at": pa.array(wall, pa.timestamp("us"))})
    path = tmp_path / "a.orc"
    orc.write_table(made, path, stripe_size=1024, batch_size=1000)
    named = [name.encode() for name in zones.split("+")]
    content, stripes = path.read_bytes().split(b"\x1a\x03GMT"), orc.ORCFile(path).nstripes
    assert len(content) == stripes + 1 == 4
    path.write_bytes(content[0])
    with path.open("ab") as out:
        for index, rest in enumerate(content[1:]):
            name = named[index % len(named)]
            # As a field that is not known, the zone is gone.
            out.write((b"\x7a\x03GMT" if name == b"-" else b"\x1a\x03%s" % (name or b"GMT")) + rest)
    options = {"file_format": "orc", "time_zone": "Asia/Kolkata"}
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    instants = [micros(row["at"]) for row in read_rows([path], schema, **options)]
    found = format_class("orc").time_span(version(path), ReaderOptions(**options), "at", "")
    assert len(instants) == len(wall)
    # The bounds are of all stripes together, which have the wall clocks of three seconds.
    slack = 3_000_000 + (3_600_000_000 if "CET" in zones else 0)
    assert min(instants) - slack <= found.first <= min(instants)
    assert max(instants) <= found.last <= max(instants) + slack


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_dates_and_integers_with_a_unit(tmp_path, suffix):
    days = written(tmp_path / f"d.{suffix}", table([date(2026, 1, 3), date(1969, 12, 31)], None))
    assert span(days) == (-86_400_000_000, micros(datetime(2026, 1, 3, tzinfo=UTC)))
    for kind in (pa.int32(), pa.int64()):
        numbers = written(tmp_path / f"i.{suffix}", table([1_500, None, -7], kind))
        assert span(numbers, unit="s") == (-7_000_000, 1_500_000_000)
        assert span(numbers, unit="ms") == (-7_000, 1_500_000)
        assert span(numbers, unit="us") == (-7, 1_500)
        # Outwards, so that no row is outside.
        assert span(numbers, unit="ns") == (-1, 2)
        with pytest.raises(SchemaMismatchError, match="an integer without eventTimeUnit"):
            span(numbers)


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
@pytest.mark.parametrize("values", [[], [None, None]])
def test_a_file_without_rows_or_with_nulls_only_has_no_time(tmp_path, suffix, values):
    assert span(written(tmp_path / f"a.{suffix}", table(values, pa.timestamp("us")))) is None


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
@pytest.mark.parametrize(
    ("column", "found"),
    [
        ("gone", "the columns nested, many, at, text"),
        ("nested", "within it"),
        ("many", "within it"),
        ("text", "BYTE_ARRAY|another type"),
    ],
)
def test_a_column_that_says_no_time_is_named_with_what_it_is(tmp_path, suffix, column, found):
    path = written(tmp_path / f"a.{suffix}", table(TIMES, pa.timestamp("us", "UTC")))
    with pytest.raises(SchemaMismatchError, match=found) as failed:
        span(path, column, "s")
    assert failed.value.where == str(path)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"write_statistics": False}, "no statistics of at in row group 0"),
        ({"write_statistics": ["text"]}, "no statistics of at in row group 0"),
        ({"use_deprecated_int96_timestamps": True}, "stored as INT96"),
    ],
)
def test_parquet_without_bounds_is_an_error(tmp_path, options, found):
    path = written(tmp_path / "a.parquet", table(TIMES, pa.timestamp("us", "UTC")), **options)
    with pytest.raises(SchemaMismatchError, match=found):
        span(path)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.time64("us"), pa.decimal128(9, 2)])
def test_a_number_of_another_meaning_is_no_time(tmp_path, kind):
    values = [1, 2] if pa.types.is_decimal(kind) else pa.array([1, 2], pa.int64()).cast(kind)
    made = pa.table({"at": pa.array(values, kind)})
    path = written(tmp_path / "a.parquet", made, store_decimal_as_integer=True)
    with pytest.raises(SchemaMismatchError, match="another meaning"):
        span(path, unit="us")


def test_a_name_in_another_case_is_found_and_an_ambiguous_one_is_not(tmp_path):
    stamps = pa.array(TIMES, pa.timestamp("us", "UTC"))
    assert span(written(tmp_path / "a.parquet", pa.table({"At": stamps}))).first == micros(FIRST)
    two = written(tmp_path / "b.parquet", pa.table({"At": stamps, "AT": stamps}))
    with pytest.raises(SchemaMismatchError, match="the columns At, AT"):
        span(two)


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_a_damaged_footer_and_a_file_that_is_gone_are_errors_of_reading(tmp_path, suffix):
    path = written(tmp_path / f"a.{suffix}", table(TIMES, pa.timestamp("us", "UTC")))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    with pytest.raises(MalformedDataError):
        span(path)
    old = version(path)
    path.write_bytes(whole)
    kind = format_class(suffix)
    with pytest.raises(FileChangedError):
        kind.time_span(old, ReaderOptions(file_format=suffix), "at", "")
    path.unlink()
    with pytest.raises(FileVanishedError):
        kind.time_span(old, ReaderOptions(file_format=suffix), "at", "")


@pytest.mark.parametrize("types", [0, 1])
def test_an_orc_footer_that_lacks_the_types_of_its_columns_is_damaged(tmp_path, monkeypatch, types):
    path = written(tmp_path / "a.orc", table(TIMES, pa.timestamp("us", "UTC")))

    def cut(source):
        tail = read_tail(source)
        assert tail is not None
        return replace(tail, types=tail.types[:types])

    monkeypatch.setattr("pyspark_sluice.reader.files.formats.orc.tail.read_tail", cut)
    with pytest.raises(MalformedDataError, match="names columns without types"):
        span(path)


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
@given(data=st.data())
def test_no_damage_of_a_footer_is_anything_but_a_named_error(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("damaged") / f"a.{suffix}"
    written(path, table(TIMES, pa.timestamp("us", "UTC")))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(max(0, len(content) - 600), len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with suppress(MalformedDataError, SchemaMismatchError):
        span(path)


@pytest.mark.parametrize("columns", [1, 3000])
def test_of_a_large_file_only_the_footer_is_read(tmp_path, monkeypatch, columns):
    rows = 40_000 // columns
    begin = micros(FIRST)
    names = {f"column {number}": pa.array(range(rows)) for number in range(columns)}
    times = pa.array(range(begin, begin + rows), pa.timestamp("us", "UTC"))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**names, "at": times}), path, compression="none")
    with SourceFile(version(path), {}).opened() as source:
        local = type(source)
    reads, read_at = [], local.read_at

    def watched(self, position, count):
        reads.append((position, count))
        return read_at(self, position, count)

    monkeypatch.setattr(local, "read_at", watched)
    assert span(path) == (begin, begin + rows - 1)
    size = path.stat().st_size
    footer = int.from_bytes(path.read_bytes()[-8:-4], "little") + 8
    assert len(reads) == (1 if footer <= time_columns.TAIL else 2)
    assert min(start for start, _ in reads) >= size - max(footer, time_columns.TAIL)
    assert (footer > time_columns.TAIL) == (columns > 1)
