"""Text to dates and times as Spark's own readers and casts take it, and wall clocks to instants."""
# ruff: noqa: E501 - a pattern and its texts are read at one glance

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.values.times.exact import local_of
from pyspark_sluice.reader.files.values.times.temporal import Temporal, cast_text, instants_of
from pyspark_sluice.reader.files.values.times.zones import zone_of
from pyspark_sluice.tests.reader.readings.of_spark import set_for_a_while

INSTANT, LOCAL, DATE = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()
NAMES = {"t": INSTANT, "d": DATE, "n": LOCAL}
ODD = """2024|2024-1|2024-01|2024-1-2|2024-01-02 03|2024-01-02 3:4|2024-01-02T3:4:5|2024-|2024-01-|
2024-01-02 03:04:05.|2024-01-02 03:04:05.1234567890123|2024-01-02 03:04Z|2024-01-02 03Z|2024-01-02Z|
2024-01-02+01:00|2024-01-02GMT|GMT2024-01-02|2024-01-02GMT 03:04|2024-01-02 GMT|+2024-01-02|-0001-01-01|
0000-01-01|0001-01-01 00:00:00|1582-10-10|10000-01-01|123456-01-01 01:02:03|294247-01-10 04:00:54|
294248-01-10|1234567-01-01|9999999-01-01|999-01-01|24-01-02|02024-01-02|2023-02-29|2024-02-30|2024-00-01|
2024-01-02 24:00:00|2024-01-02 23:60:00|2024-01-02 23:59:60|2024-01-02t03:04:05|2024-01-02  03:04:05|
2024-01-02 03:04:05,123|2024/01/02|20240102|2024-01-02T|2024-01-02 x|2024 x|2024-01 x||-|+|x|0|1700000000|
2024-01-02 03:04:05\x00|2024-001-02|2024-01-002|\uff12024-01-02|\xa02024-01-02| 2024-01-02 |\t2024-01-02 03:04:05\t|
epoch|now|1e3|99999999999|-5|+5|2024-01-02 03:04:05.5.5|1970-01-01T00:00:00.000-0000""".replace(
    "\n", ""
).split("|")
ZONES = """Z|z|+1|+01|+0100|+01:00|+01:0|+1:00|+1:2|+100|+01:02:03|+010203|+01:0203|+18:00|+18:01|-18:00|+01:60| +01:00|
+01:00 | UTC|UTC+1|UTC+01:30|GMT0|UTC0|UT| UT+2|GMT+1|GMTZ| GMT0:00| Europe/Berlin|europe/berlin| CET| PST| EST| IST|
 BST| EST5EDT| Etc/GMT+5| Etc/UTC| Mars/X| localtime| posix/Europe/Berlin| Factory| ROC|+|-|+1:| +01 00|AM|.Z| PST\xa0|\xa0PST|Z\u2003| Europe/Berlin\x85|\x1cUTC""".replace(
    "\n", ""
).split("|")


def _texts(minutes: int, count: int) -> list[str]:
    chance = random.Random(7)
    texts = [*ODD, *(f"2024-01-02 03:04:05{zone}" for zone in ZONES)]
    texts += [f"2024-07-02T03:04:05.12{zone}" for zone in ZONES]
    # Around the changes of summer time, and of the calendar's far ends.
    for day in ("2024-03-30", "2024-10-26", "2024-03-09", "2024-11-02", "1893-03-31", "2500-10-30"):
        first = datetime.fromisoformat(day)
        texts += [str(first + timedelta(minutes=step)) for step in range(0, 2250, minutes)]
    for _ in range(count):
        moment = datetime.fromisoformat("1800-01-01") + timedelta(
            microseconds=chance.randrange(400 * 365 * 86400 * 10**6)
        )
        text = moment.isoformat(sep=chance.choice(" T")) + chance.choice(
            ["", "", "Z", "+05:30", "-0330"]
        )
        if chance.random() < 0.5:
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice("0:-. TZ+9") + text[at + chance.randrange(2) :]
        texts.append(text)
    # A time without a date is that time today; here it is refused.
    return [
        text for text in texts if not text.lstrip("T")[1:3].lstrip("0123456789").startswith(":")
    ]


def _or_none(read, *arguments):
    try:
        return read(*arguments)
    except ValueError:
        return None


def _wall(shown: str | None) -> int | None:
    return None if shown is None else local_of(shown)[0]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns"])
def test_texts_are_read_as_by_sparks_readers_and_casts(spark_answers, tmp_path, zone):
    texts = _texts(30, 250)
    rows = [{"i": i, "s": text, **dict.fromkeys(NAMES, text)} for i, text in enumerate(texts)]
    (tmp_path / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = (f'{i},"{text}","{text}","{text}"\n' for i, text in enumerate(texts))
    (tmp_path / "a.csv").write_text("".join(lines), newline="")
    expected = spark_answers(partial(_by_spark, tmp_path, zone), texts, zone)
    readers = {name: Temporal(ReaderOptions(fileFormat=name, timeZone=zone)) for name in FORMS}
    ours = {name: _values_alone(reader, texts) for name, reader in readers.items()}
    ours["cast"] = [
        tuple(_or_none(_cast, text, kind, zone) for kind in NAMES.values()) for text in texts
    ]
    for i, text in enumerate(texts):
        assert _by_reader({name: values[i] for name, values in ours.items()}) == expected[i], text
    for name, reader in readers.items():
        _check_next_to_others(reader, texts, ours[name])


def _values_alone(temporal, texts):
    return [
        tuple(_or_none(temporal.value, text, kind) for kind in NAMES.values()) for text in texts
    ]


def _check_next_to_others(temporal, texts, values):
    """A text gives the same in a column with any others, and the column refuses what is no time."""
    for number, kind in enumerate(NAMES.values()):
        width = pa.int32() if kind == DATE else pa.int64()
        times = []
        for text, of_text in zip(texts, values, strict=True):
            if of_text[number] is None:
                assert _or_none(temporal.column, pa.array([text]), kind) is None, text
            else:
                times.append((text, of_text[number]))
        for size in (8, len(times) or 1):
            for start in range(0, len(times), size):
                part = times[start : start + size]
                # In a slice, texts begin elsewhere in the same bytes.
                array = pa.array(["x", None, *(text for text, _ in part)]).slice(1)
                column = temporal.column(array, kind)
                column.validate(full=True)
                assert column.type == kind
                assert column.view(width).to_pylist() == [None, *(value for _, value in part)], part


FORMS = ("json", "csv")


def _by_spark(folder, zone, spark):
    schema = "i int, t timestamp, d date, n timestamp_ntz"
    casts = [f"try_cast(s AS {part[2:]}) AS {part[0]}" for part in schema.split(", ")[1:]]
    path = str(folder / "a.json")
    shown = ("i", "unix_micros(t)", "unix_date(d)", "CAST(n AS string)")
    values = {}
    with set_for_a_while(spark, {"spark.sql.session.timeZone": zone}):
        frames = {
            "json": spark.read.schema(schema).json(path),
            "csv": spark.read.schema(schema).csv(str(folder / "a.csv")),
            "cast": spark.read.schema("i int, s string").json(path).selectExpr("i", *casts),
        }
        for name, frame in frames.items():
            for i, t, d, n in frame.selectExpr(*shown).collect():
                values.setdefault(i, {})[name] = (t, d, _wall(n))
    return [_by_reader(values[i]) for i in sorted(values)]


def _by_reader(values):
    """The values once if all three readings give the same, in which they differ for few texts."""
    texts = {name: " ".join(map(str, values[name])) for name in ("cast", *FORMS)}
    if len(set(texts.values())) == 1:
        return texts["cast"]
    return "; ".join(f"{name}: {text}" for name, text in texts.items())


def _cast(text, kind, zone):
    return cast_text(text, kind, zone).cast(pa.int32() if kind == DATE else pa.int64()).as_py()


PATTERNS = {
    "yyyy-MM-dd HH:mm:ss.SSSSSS": "2024-01-02 03:04:05.1|2024-01-02 03:04:05.123456|2024-01-02 03:04:05.1234567|"
    "2024-01-02 03:04:05.|2024-01-02 03:04:05|2024-1-2 03:04:05.1| 2024-01-02 03:04:05.1",
    "yyyy-MM-dd HH:mm:ss[.SSS]": "2024-01-02 03:04:05|2024-01-02 03:04:05.1|2024-01-02 03:04:05.1234",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX": "2024-01-02T03:04:05.1Z|2024-01-02T03:04:05.123+01:00|2024-01-02T03:04:05.123+0100|"
    "2024-01-02T03:04:05.123+01|2024-01-02t03:04:05.123z|2024-01-02T03:04:05Z|2024-01-02T03:04:05.123-18:00",
    "yyyy-M-d H:m:s": "2024-01-02 03:04:05|2024-1-2 3:4:5|2024-001-2 3:4:5|12024-1-2 3:4:5|+12024-1-2 3:4:5|-2024-1-2 3:4:5",
    "dd/MM/yy": "02/01/24|02/01/99|2/1/24|02/01/2024|31/02/24",
    "yyyyMMddHHmmss": "20240102030405|2024010203040|202401020304055",
    "yyyy/MM/dd h:mm a": "2024/01/02 3:04 PM|2024/01/02 3:04 pm|2024/01/02 13:04 PM|2024/01/02 0:04 PM|2024/01/02 12:04 AM",
    "yyyy/MM/dd hh:mm": "2024/01/02 03:04|2024/01/02 12:04",
    "MMM d, yyyy": "Jan 2, 2024|JAN 2, 2024|January 2, 2024|Sept 2, 2024|Sep 2, 2024",
    "d MMMM yyyy": "2 January 2024|2 jan 2024|2 May 2024",
    "yyyy-DDD": "2024-002|2024-366|2023-366|2024-2",
    "yyyy-MM-dd HH:mm z": "2024-01-02 03:04 UTC|2024-01-02 03:04 CET|2024-01-02 03:04 Europe/Berlin|2024-01-02 03:04 GMT+1",
    "yyyy-MM-dd HH:mm VV": "2024-01-02 03:04 UTC|2024-01-02 03:04 Europe/Berlin|2024-01-02 03:04 +01:00|2024-01-02 03:04 Z",
    "yyyy-MM-dd HH:mm Z": "2024-01-02 03:04 +0100|2024-01-02 03:04 +01:00|2024-01-02 03:04 Z",
    "yyyy-MM-dd HH:mm O": "2024-01-02 03:04 GMT+1|2024-01-02 03:04 GMT+01:00|2024-01-02 03:04 UTC+1",
    "yyyy-MM-dd HH:mm X": "2024-01-02 03:04 +01|2024-01-02 03:04 +0130|2024-01-02 03:04 Z|2024-01-02 03:04 +01:30",
    "yyyy-MM-dd HH:mm x": "2024-01-02 03:04 +01|2024-01-02 03:04 Z|2024-01-02 03:04 +0130",
    "yyyy-MM-dd kk:mm": "2024-01-02 24:04|2024-01-02 00:04|2024-01-02 01:04",
    "yyyy-MM-dd HH:mm:ss": "2024-03-31 02:30:00|2024-10-27 02:30:00|2024-02-30 00:00:00|2024-01-02 24:00:00|"
    "0000-01-01 00:00:00|10000-01-01 00:00:00|2024-01-02T03:04:05|2024-01-02 03:04:05Z",
    "HH:mm": "12:34",
    "yyyy": "2024|24",
    "SSS": "123|1|1234",
    "yyyy-MM-dd''HH": "2024-01-02'03",
    "yyyy-MM-dd HH:mm:ss.SSSSSSSSS": "2024-01-02 03:04:05.123456789|2024-01-02 03:04:05.1",
    "y-M-d": "2024-1-2|999-1-2|12345-1-2",
    "yyyyy-M-d": "02024-1-2|2024-1-2",
    "yyyy-MM-dd K:mm a": "2024-01-02 0:04 PM|2024-01-02 12:04 PM",
    "yyyy-MM-dd a": "2024-01-02 PM",
}  # fmt: skip
NAMED = """PST CST EST MST HST AET CAT EAT JST pst AGT BET CNT CTT IET MIT NET PLT PNT PRT VST GMT UTC UT Z z utc gmt GMT0 GMT+0 GMT-0
GMT+2 GMT+02 GMT+02:00 GMT+0200 UTC+2 UTC+02:00 UT-01:00 gmt+2 gmt+02:00 +02 +02:00 +0200 +2 -02:30:15 +18:00 +18:01 +00:60 CET EET
EST5EDT Etc/GMT Etc/GMT0 Etc/GMT+5 Etc/GMT-14 Etc/UTC europe/berlin Europe/Berlin America/Argentina/Buenos_Aires Factory posix/CET"""
for letters in ("VV", "z", "zzz", "zzzz", "O", "OOOO", "ZZZZZ"):
    texts = "|".join(f"2024-07-01 12:00~{name}" for name in NAMED.split())
    PATTERNS[f"yyyy-MM-dd HH:mm~{letters}"] = texts


def test_patterns_are_read_as_by_sparks_readers(spark_answers):
    zone = "Europe/Berlin"
    cases = [(pattern, text) for pattern, texts in PATTERNS.items() for text in texts.split("|")]

    def by_spark(spark):
        columns, shown = [], []
        for n, pattern in enumerate(PATTERNS):
            quoted = pattern.replace("'", "\\'")
            options = f"map('sep', ';', 'timestampFormat', '{quoted}', 'dateFormat', '{quoted}', 'timestampNTZFormat', '{quoted}')"
            columns.append(
                f"from_csv(concat(s, ';', s, ';', s), 't timestamp, d date, n timestamp_ntz', {options}) AS p{n}"
            )
            shown.append(
                f"struct(unix_micros(p{n}.t), unix_date(p{n}.d), CAST(p{n}.n AS string)) AS p{n}"
            )
        with set_for_a_while(spark, {"spark.sql.session.timeZone": zone}):
            frame = spark.createDataFrame(
                list(enumerate(text for _, text in cases)), "i int, s string"
            )
            rows = frame.selectExpr("i", *columns).selectExpr("i", *shown).collect()
        values = {row.i: row for row in rows}
        names = {pattern: f"p{n}" for n, pattern in enumerate(PATTERNS)}
        found = [values[i][names[pattern]] for i, (pattern, _) in enumerate(cases)]
        return [f"{t} {d} {_wall(n)}" for t, d, n in found]

    expected = spark_answers(by_spark, cases)
    of_spark = iter(expected)
    for pattern, texts in PATTERNS.items():
        given = dict.fromkeys(("timestampFormat", "dateFormat", "timestampNTZFormat"), pattern)
        temporal = Temporal(ReaderOptions(fileFormat="csv", timeZone=zone, **given))
        ours = _values_alone(temporal, texts.split("|"))
        for text, values in zip(texts.split("|"), ours, strict=True):
            assert " ".join(map(str, values)) == next(of_spark), (pattern, text)
        _check_next_to_others(temporal, texts.split("|"), ours)


@pytest.mark.thorough("a newer Java has more zones, so they are not recorded")
def test_every_zone_that_java_knows_is_known(spark):
    known = set(spark._jvm.java.time.ZoneId.getAvailableZoneIds())
    # Java keeps these for programs of thirty years ago; no zone database has them any more.
    missing = [
        name
        for name in known
        if not name.startswith("SystemV/") and _or_none(zone_of, name) is None
    ]
    assert not missing


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
