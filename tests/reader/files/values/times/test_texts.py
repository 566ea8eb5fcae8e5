"""Text to dates and times: one value for a text, with any neighbours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.values.times.temporal import Temporal, cast_text, instants_of
from pyspark_sluice.reader.files.values.times.zones import DAY, zone_of

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock times have no zone by nature
INSTANT, LOCAL, DATE = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()
PATTERNS = {
    "": "",
    "yyyy-MM-dd HH:mm:ss": "yyyy-MM-dd",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX": "yyyyMMdd",
    "dd.MM.yyyy HH:mm": "dd.MM.yyyy",
    "yyyy-MM-dd HH:mm:ss.SSSSSS": "d/M/yy",
}
_TWO = st.integers(0, 99).map("{:02d}".format)
_PART = st.one_of(_TWO, _TWO, st.sampled_from(["1", "001", "", "2024", "0000", "9999"]))
_BETWEEN = st.sampled_from(["-", "-", "-", " ", "T", ":", ":", ".", "/", "t", "  "])
_ZONES = st.sampled_from(
    [
        "",
        "Z",
        "z",
        " Z",
        " UTC",
        " +02:00",
        "+01",
        "-01:30",
        "+0100",
        "+01:00:30",
        "+18:00",
        "+18:01",
        "+01:60",
        "+1",
        "UTC",
        "CET",
        "GMT",
        "Europe/Berlin",
        "x",
    ]
)
_WELL = st.builds(
    "{:04d}-{:02d}-{:02d}{}{:02d}:{:02d}:{:02d}{}{}".format,
    st.sampled_from([0, 1, 1582, 1969, 2023, 2024, 2024, 9999]),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from(" T"),
    st.integers(0, 24),
    st.integers(0, 60),
    st.integers(0, 60),
    st.one_of(st.just(""), st.from_regex(r"\A\.[0-9]{0,10}\Z")),
    _ZONES,
)
_LOOSE = st.lists(st.one_of(_PART, _BETWEEN), max_size=13).map("".join)
TEXTS = st.one_of(
    _WELL,
    _WELL.map(lambda text: text[:10]),
    _WELL.map(lambda text: text[:16]),
    st.builds("{}{}".format, _LOOSE, _ZONES),
    st.builds("{}.{}.2024 {}:{}".format, _TWO, _TWO, _TWO, _TWO),
    st.text(max_size=12),
    _WELL.map(lambda text: f" {text}\t"),
    st.sampled_from(["+12345-01-02", "-2024-01-02 03:04:05", "294248-01-01", "20240102", "0"]),
)


def _temporal(pattern: str, file_format: str, zone: str) -> Temporal:
    return Temporal(
        ReaderOptions(
            fileFormat=file_format,
            timeZone=zone,
            timestampFormat=pattern,
            timestampNTZFormat=pattern,
            dateFormat=PATTERNS[pattern],
        )
    )


def _value(temporal: Temporal, text: str, kind: pa.DataType) -> int | None:
    try:
        return temporal.value(text, kind)
    except ValueError:
        return None


def _column(temporal: Temporal, texts: list[str | None], kind: pa.DataType) -> list[int | None]:
    array = temporal.column(pa.array(texts, pa.string()), kind)
    assert array.type == kind
    array.validate(full=True)
    return array.view(pa.int32() if kind == DATE else pa.int64()).to_pylist()


def _refuses(temporal: Temporal, texts: list[str | None], kind: pa.DataType) -> bool:
    try:
        _column(temporal, texts, kind)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("kind", [INSTANT, LOCAL, DATE], ids=["instant", "local", "date"])
@given(
    texts=st.lists(st.one_of(TEXTS, st.none()), min_size=1, max_size=12),
    pattern=st.sampled_from(list(PATTERNS)),
    file_format=st.sampled_from(["csv", "json"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "-03:30"]),
)
@example(["2024-01-02 03", "2024-01-02 03:00:00"], "", "csv", "UTC")
@example(["2024-01-02 03:04:05.1", "2024-01-02 03:04:05.1+01", None], "", "csv", "UTC")
@example(["2024-01-02 03:04:05Z", "2024-01-02 03:04:05"], "", "json", "Europe/Berlin")
def test_a_text_gives_the_same_alone_and_next_to_others(kind, texts, pattern, file_format, zone):
    temporal = _temporal(pattern, file_format, zone)
    alone = [None if text is None else _value(temporal, text, kind) for text in texts]
    good = [index for index, text in enumerate(texts) if text is None or alone[index] is not None]
    for text, value in zip(texts, alone, strict=True):
        if text is not None and value is None:
            assert _refuses(temporal, texts, kind)
            assert _refuses(temporal, [text], kind)
        else:
            assert _column(temporal, [text], kind) == [value]
    kept = [texts[index] for index in good]
    assert _column(temporal, kept, kind) == [alone[index] for index in good]
    # A slice has other places in the same bytes.
    array = pa.array(["x", *kept, "y"], pa.string()).slice(1, len(kept))
    assert temporal.column(array, kind).equals(temporal.column(pa.array(kept, pa.string()), kind))


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
    temporal = _temporal("", "csv", zone)
    instant = np.datetime64(expected, "us").astype(np.int64)
    assert temporal.value(local, INSTANT) == instant
    assert _column(temporal, ["2024-01-02 03:04:05", local], INSTANT)[1] == instant
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


def test_four_hundred_years_later_the_rules_are_the_same():
    rules = zone_of("Europe/Berlin")
    july = int(datetime(2400, 7, 1, tzinfo=UTC).timestamp()) * 1_000_000
    far = july + 146_097 * DAY * 25
    assert far - rules.instant(far) == 2 * 3600 * 1_000_000


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
