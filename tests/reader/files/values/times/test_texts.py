"""Wall clocks to instants, and zones and patterns that are refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.values.times.temporal import Temporal, cast_text, instants_of
from pyspark_sluice.reader.files.values.times.zones import zone_of

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock times have no zone by nature
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("zone", "local", "expected"),
    [
        # The gap is an hour wide; Java goes on by it.
        ("Europe/Berlin", "2024-03-31 02:30:00", "2024-03-31 01:30:00"),
        ("Europe/Berlin", "2024-10-27 02:30:00", "2024-10-27 00:30:00"),
        # Half an hour.
        ("Australia/Lord_Howe", "2024-10-06 02:15:00", "2024-10-05 15:45:00"),
        # A whole day that never was.
        ("Pacific/Apia", "2011-12-30 12:00:00", "2011-12-30 22:00:00"),
        # Midnight itself is skipped.
        ("America/Sao_Paulo", "2017-10-15 00:00:00", "2017-10-15 03:00:00"),
        # Local mean time has seconds.
        ("Europe/Berlin", "1800-01-01 00:00:00", "1799-12-31 23:06:32"),
        # Summer time far beyond the tables of the zone's file, and beyond Python's calendar.
        ("Europe/Berlin", "2500-07-01 12:00:00", "2500-07-01 10:00:00"),
        ("America/New_York", "9999-07-01 12:00:00", "9999-07-01 16:00:00"),
    ],
)
def test_wall_clocks_become_instants_as_java_takes_them(zone, local, expected):
    temporal = Temporal(ReaderOptions(fileFormat="csv", timeZone=zone))
    instant = np.datetime64(expected, "us").astype(np.int64)
    assert temporal.value(local, INSTANT) == instant
    column = temporal.column(pa.array(["2024-01-02 03:04:05", local]), INSTANT)
    assert column.cast(pa.int64())[1].as_py() == instant
    stored = pa.array([np.datetime64(local, "us"), None], LOCAL)
    assert instants_of(stored, zone).cast(pa.int64()).to_pylist() == [instant, None]
    assert cast_text(local, INSTANT, zone).cast(pa.int64()).as_py() == instant


@given(
    zone=st.sampled_from(["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu"]),
    moments=st.lists(st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)), min_size=1),  # noqa: DTZ001
)
def test_many_wall_clocks_become_the_instants_that_each_becomes(zone, moments):
    local = [(moment - EPOCH) // timedelta(microseconds=1) for moment in moments]
    placed = [moment.replace(tzinfo=ZoneInfo(zone)).utcoffset() for moment in moments]
    expected = [
        value - offset // timedelta(microseconds=1)
        for value, offset in zip(local, placed, strict=True)
    ]
    rules = zone_of(zone)
    assert rules.instants(np.array(local)).tolist() == expected
    assert [rules.instant(value) for value in local] == expected


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "europe/berlin", "localtime", "posix/UTC", "../UTC", "+19:00", "UTC0"]
)
def test_a_zone_that_java_does_not_know_is_refused_by_name(name):
    with pytest.raises(OptionError, match=f"timeZone.*{name.replace('+', '.')}"):
        Temporal(ReaderOptions(timeZone=name))


@pytest.mark.parametrize(
    "pattern", ["u-M-d", "E yyyy", "YYYY-MM-dd", "yyyy-ww", "yyyy'", "yyyy[", "yyyy#", "yyyy yyyy"]
)
def test_a_pattern_that_spark_refuses_is_refused_by_name(pattern):
    with pytest.raises(OptionError, match="timestampFormat is not understood"):
        Temporal(ReaderOptions(timestampFormat=pattern))
