"""Odd CSV of every kind, many files to one read: Spark's rows, alone, packed and on each path.

Where the two differ on purpose, docs/reading.md says so. `HYPOTHESIS_PROFILE=nightly` generates
twenty times as many files; the seed of a run stands in the names of its tests.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings

from pyspark_sluice.checkpoint_meta.splits import FileVersion
from pyspark_sluice.connector.options import parse_options
from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.reader.files.formats.csv.format import CsvFormat
from pyspark_sluice.reader.files.formats.records import Source
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.files.reading import read, read_rows, whole

pytestmark = pytest.mark.spark

CORRUPT = "_corrupt_record string"
THREE = f"a string, b string, c string, {CORRUPT}"
MULTI = {"multiLine": "true"}
DOUBLED = {"escape": '"'}
TRIMMED = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
_NIGHTLY = settings().max_examples > 1000
SEED = random.SystemRandom().getrandbits(32) if _NIGHTLY else 20_240_102

SEPARATED = b"1\t2|3\x0c4\\5\x086\"7'8\\t9\0,a\\b ,\\c\t\\d\n1\r2"
"""Every character that an escape stands for, and each escape as it is written."""

# Files that other programs wrote, or that people mended by hand: by options, then by name.
FILES: list[tuple[str, dict[str, str], list[bytes]]] = [
    (
        "odd quotes",
        {},
        [
            b'"2015,"Chevy",Volt,\n1,2,3\n',
            b'"2015","Chevy "Volt"",x\n',
            b'a"b,"c"d,e\n"a" "b",c,d\n"a" ,b , "c"\n',
            b'"a\n1,2,3\n"b",2,3\n',
            b'"",,""\n"""a""",b,c\n"\\"",b,c\n"a\\\\",b,c\n"a\\\\"b,c,d\n',
            b'"a"\\b,c,d\n"a"\\"b",c,d\n' + b'"a"' + b'\\"' * 5 + b",b,c\n",
            b'""a,b,c\n"" ,b,c\n""" ",b,c\n',
            b"'a,b',c,d\n",
            b'a,"b\r\nc",d\r\n',
        ],
    ),
    ("doubled quotes", DOUBLED, [b'"a""b","""",""\n"a"b,c,d\n"a""\n1,2,3\n"a""",b,c\n']),
    (
        "blank lines",
        {},
        [
            b"\n\n1,2,3\n \n\t\t\n\x00\x01\n\x0b\x0c\n1,2,3\n\r\n\r\n",
            b"\xc2\xa0\n\xe3\x80\x80\n1,2,3\n",
            b"1,2,3\x0c\n1,2\x0c\n",
        ],
    ),
    ("tabs", {"sep": "\t"}, [b"1\t2\t3\n\t\t\n \t2\t3\n\t\t\t\n\t\tx\n", b'"a" \t"b"\t "c"\n']),
    ("comments", {"comment": "#"}, [b"#c\ra,b,c\rc,d,e\r", b"#c\n #d\n1,2,3\n#e", b"1,#2,3\n#\n"]),
    (
        "headers behind comments",
        {"comment": "#", "header": "true"},
        [b"#c\ra,b,c\rc,d,e\r", b"\n  # c\n\na,b,c\n1,2,3\n", b'"a","b","c"\n', b"", b"#\n"],
    ),
    (
        "records over lines",
        MULTI,
        [
            b'"a\nb",1,2\n"c\r\nd",3,4\n',
            b'"a\r\nb",1,2\r\n"c\nd",3,4\r\nx,\r\n',
            b'a,b,c\r1,"2\r3",4\r',
            b'"a ""b""\nc",1,2\n3,4,5\n',
            b'"a\n\n"",b\n,c,d\n',
            b"1,2,3\r\n4,5\r\n6,7,8\r\n",
            b"1,2,3\n4,5,6\r\n7,8,9\n",
            b"a,b\r\nc,d\ne,f,g\r\nh\n",
            b"1,2,3\n \n\t\n\x01\n\n4,5,6\n,,\n",
            b'1,2,"3\n4,5,6\n',
            b"\xef\xbb\xbf1,2,3\n",
            b"1,2,3",
        ],
    ),
    (
        "headers over lines",
        MULTI | {"header": "true"},
        [b'"a\nb",c,d\n1,2,3\n', b'\n\n"a\r\nb",c,d\r\n1,2\r\n', b'"a', b"a,b,c", b""],
    ),
    (
        "comments over lines",
        MULTI | {"comment": "#"},
        [b'#"\n1,2,3\n#\n"a\n#b",2,3\n#', b"#c\r\n#d\n1\r\n2,3,4\r\n"],
    ),
    (
        "separators of lines",
        {"lineSep": "|"},
        [b"1,2,3|4,5,6|", b'"a|b",2,3|x', b"1,2|3,4,5,6| |\t|"],
    ),
    (
        "separators of records over lines",
        MULTI | {"lineSep": "|"},
        [
            b"first,second,value\n|\n|first,second,other\n|",
            b"\n|\n|\n",
            b"1,2,3|\r\n|4,5\r|6,7\n",
            b'"a|b\n",2,3|"a"|"b""c"|"d"x|\n"e",1,2',
            b"1,2,3\n",
        ],
    ),
    (
        "line ends in what does not fit",
        MULTI,
        [b"1,2,3\n4,5\r\n6,7\r8,9\n10\r", b"1\r2\n3\r\n\r4", b'1,2,3\n"4\r",5\r\n'],
    ),
    ("carriage returns before line feeds", {"lineSep": "\n"}, [b"1,2,3\r\n4,5\r\n6\r\r\n7\r"]),
    *(
        (f"separator {sep}", {"sep": sep, "quote": "", "escape": ""}, [SEPARATED])
        for sep in (r"\t", r"\r", r"\b", r"\f", r"\"", r"\'", r"\\", r"\\t", r",\\", r"\t\\", "\0")
    ),
    ("two marks", MULTI, ["\ufeff\ufeff1,2,3\n\ufeff4,5,6\n".encode()]),
    (
        "marks behind headers",
        {"header": "true"},
        ["\ufeffa,b,c\n\ufeff1,2,3\n\ufeff4,5,6\n".encode(), '\ufeff\n\ufeff"1",2,3\n'.encode()],
    ),
]


def _options(title: str) -> list[tuple[str, dict[str, str], str | tuple[str, ...]]]:
    """Option sets for generated files, each with the characters that matter under it."""
    plain = 'ab"",,\\ \té'
    return [
        ("defaults", {}, plain),
        ("doubled", DOUBLED, plain),
        ("no escape", {"escape": ""}, plain),
        ("no quote", {"quote": ""}, plain),
        ("tabs", {"sep": "\t"}, 'ab""\t\t\\ é'),
        ("long", {"sep": "||"}, 'ab""||||\\ ,'),
        ("nulls", {"nullValue": "a", "emptyValue": "b"}, plain),
        ("trimmed", TRIMMED, 'ab""\\,, \x01é'),
        ("lines", MULTI, plain + "\n\n"),
        ("windows lines", MULTI | DOUBLED, plain + "\r\n"),
        ("own ends of records", MULTI | {"lineSep": "|"}, 'ab""||,,\n\n \t'),
        ("own ends, trimmed", MULTI | TRIMMED | {"lineSep": "|"}, "ab||,,\n "),
        ("mixed lines", MULTI, ('"', *"ab,, \n\r", "\r\n")),
        ("lines with headers", MULTI | {"header": "true", "comment": "#"}, 'ab"",,\n\n#'),
    ]


def _generated(options: dict[str, str], characters: Sequence[str], count: int) -> list[bytes]:
    chance = random.Random(SEED)
    ending = options.get("lineSep", "\r\n" if "\r\n" in characters else "\n")
    kinds = list(characters)
    if isinstance(characters, str) and ending == "\r\n":
        kinds = [ending if character in "\r\n" else character for character in characters]
    files = []
    for _ in range(count):
        # The parser takes files of four bytes for something else than longer ones.
        lines = ["".join(chance.choices(kinds, k=chance.randint(1, 14))) for _ in range(3)]
        first = f"x,y,z{ending}" if "header" in options or "multiLine" in options else ""
        files.append((first + ending.join(lines) + chance.choice(["", ending])).encode())
    return files


def _arrow(schema: str) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields = StructType.fromDDL(schema)
    assert isinstance(fields, StructType)
    return to_arrow_schema(fields, timezone="UTC")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: str(value) if isinstance(value, float) and (math.isnan(value) or not value) else value
        for key, value in row.items()
    }


def _written(folder: Path, files: Iterable[bytes]) -> list[Path]:
    paths = []
    for number, data in enumerate(files):
        paths.append(folder / f"{number:04}.csv")
        paths[-1].write_bytes(data)
    return paths


def _by_spark(spark, folder: Path, schema: str, options: dict[str, str]) -> dict[str, list[Any]]:
    """Spark's rows of every file of a folder, by its name."""
    frame = spark.read.schema(schema).options(**options).csv(str(folder))
    rows = defaultdict(list)
    for row in frame.select("*", "_metadata.file_name").toArrow().to_pylist():
        rows[row.pop("file_name")].append(_plain(row))
    return rows


def _check(
    spark, folder: Path, files: Sequence[bytes], schema: str, options: dict[str, str]
) -> None:
    paths = _written(folder, files)
    expected = _by_spark(spark, folder, schema, options)
    arrow = _arrow(schema)
    ours: dict[str, Any] = {"file_format": "csv", "mode": "PERMISSIVE", **options}
    wrong = []
    for path, data in zip(paths, files, strict=True):
        rows = [_plain(row) for row in read_rows([path], arrow, **ours)]
        if rows != expected[path.name]:
            wrong.append((data, expected[path.name], rows))
    assert not wrong[:3], f"{len(wrong)} of {len(files)} files differ; data, Spark's rows, ours"
    table, reports = read([whole(path) for path in paths], arrow, **ours)
    together = [_plain(row) for row in table.to_pylist()]
    assert together == [row for path in paths for row in expected[path.name]]
    assert [report.rows for report in reports] == [len(expected[path.name]) for path in paths]


@pytest.mark.parametrize(
    ("options", "files"), [case[1:] for case in FILES], ids=[c[0] for c in FILES]
)
def test_files_of_other_writers_give_the_rows_of_spark(spark, tmp_path, options, files):
    _check(spark, tmp_path, files, THREE, options)


def test_a_record_with_more_fields_than_spark_takes_is_a_record_like_any_other(spark, tmp_path):
    path = tmp_path / "a.csv"
    wide = ",".join(str(number) for number in range(20_481))
    path.write_text(f"1,2,3\n{wide}\n4,5,6\n")
    with pytest.raises(Exception, match="out of bounds for length 20480"):
        spark.read.schema(THREE).csv(str(path)).collect()
    rows = read_rows([path], _arrow(THREE), file_format="csv", mode="PERMISSIVE")
    assert [row["_corrupt_record"] for row in rows] == [None, wide, None]
    assert [row["c"] for row in rows] == ["3", "2", "6"]
    many = pa.schema([(f"c{number}", pa.int64()) for number in range(20_481)])
    path.write_text(f"{wide}\n")
    assert list(read_rows([path], many, file_format="csv")[0].values()) == list(range(20_481))


def test_text_of_any_length_is_a_value_as_in_spark(spark, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x" * 20_000_001 + ",y,z\n")
    options = {"maxCharsPerColumn": "-1"}
    (row,) = spark.read.schema(THREE).options(**options).csv(str(path)).collect()
    (ours,) = read_rows([path], _arrow(THREE), file_format="csv", mode="PERMISSIVE")
    assert list(ours.values()) == list(row)


@pytest.mark.parametrize(
    "sep", ["", "\\", "a\\", r"\\\\"[:3], r"\n", r"\0", r"\u0000", r"\x", r"\|", r"\ "]
)
def test_a_separator_that_spark_refuses_is_refused(spark, tmp_path, sep):
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2\n")
    with pytest.raises(Exception, match=r"[Dd]elimiter|DELIMITER|StringIndexOutOfBounds"):
        spark.read.schema("a string, b string").option("sep", sep).csv(str(path)).collect()
    with pytest.raises(OptionError, match="sep: found"):
        parse_options({"path": "/in", "fileformat": "csv", "sep": sep}, streaming=False)


@pytest.mark.parametrize(
    ("options", "characters"),
    [case[1:] for case in _options("")],
    ids=[f"{case[0]} {SEED}" for case in _options("")],
)
def test_generated_files_give_the_rows_of_spark(spark, tmp_path, options, characters):
    files = _generated(options, characters, 2000 if _NIGHTLY else 100)
    _check(spark, tmp_path, files, THREE, options)


TYPES = {
    "i1": ("tinyint", "-128 127 0 7"),
    "i2": ("smallint", "-32768 32767 12"),
    "i4": ("int", "2147483647 -2147483648 5"),
    "i8": ("bigint", "9223372036854775807 -9223372036854775808 1 +1 007"),
    "f4": ("float", "1.1 3.4e38 -0 0.1 16777217 1e-45 7.0000003"),
    "f8": ("double", "1.1 -1e308 .5 5. 4.9e-324 -0.0"),
    "d": ("decimal(10,2)", "1.25 -99999999.99 0 12.5 1e2"),
    "w": ("decimal(38,0)", f"{'9' * 38} -{'9' * 38} 1"),
    "b": ("boolean", "true false TRUE False"),
    "x": ("binary", "abc x"),
    "t": ("date", "2024-01-02 1999-12-31"),
    "u": ("timestamp", "2024-01-02T03:04:05Z 2024-01-02T03:04:05.123456+02:00"),
    "n": ("timestamp_ntz", "2024-01-02T03:04:05 2024-01-02T03:04:05.25"),
    "s": ("string", "text -0 1_000 0x1F ä"),
}
ODD = [
    *(" 1", "1 ", "\t1", "0x1F", "0X1", "1_000", "-0", "+0", "-", "+", "1e2", "1E+2", "1.", ".5"),
    *("1.255", "-1.005", "1d", "1f", "1L", "0x1p3", "NaN", "-NaN", "Infinity", "+Infinity", "Inf"),
    *(
        "-Inf",
        "inf",
        "nan",
        "1e400",
        "1e-400",
        "9" * 39,
        "1" * 5000,
        "0" * 5000 + "1",
        "1e38",
        "tRUE",
    ),
    *(
        " true",
        "1",
        "yes",
        "x",
        '""',
        '"1,5"',
        '"1,000.5"',
        '" 1"',
        '"a ""b"""',
        "a b",
        "\u0661\u0662",
    ),
    *(
        "300",
        "40000",
        "3000000000",
        "1e40",
        "",
        '"1"',
        "\xa01",
        "1\xa0",
        "12345678901.5",
        "1e999999999",
    ),
]
SCHEMA = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items()) + f", {CORRUPT}"
FILE = FileVersion("/nowhere.csv", 1, 0)
BAD = b",".join([b"?"] * len(TYPES)) + b"\n"
_TIMES = "tun"


def _records(count: int) -> list[bytes]:
    chance = random.Random(SEED)
    records = []
    for number in range(count):
        fields = []
        # What dates and times mean is for the tests of times: these are good or plainly none.
        for name, (_, good) in TYPES.items():
            odd = ["x", ""] if name in _TIMES else ODD
            is_odd = chance.random() < (0.04 if number % 3 else 0.3)
            fields.append(chance.choice(odd if is_odd else good.split()))
        records.append(",".join(fields).encode() + b"\n")
    return records


def _format(mode: str, *, exact: bool = False) -> CsvFormat:
    made = CsvFormat(_arrow(SCHEMA), ReaderOptions(file_format="csv", mode=mode, escape='"'))
    made._fast.is_possible &= not exact
    return made


def _rows(made: CsvFormat, *parts: bytes) -> list[dict[str, Any]]:
    """Rows of each part's first record; several parts are packed files."""
    if len(parts) == 1:
        parsed = made.parse(parts[0], Source((FILE,), (0,)))
    else:
        parsed = made.decode_packed([FILE] * len(parts), parts)
    return [_plain(row) for row in parsed.batch.to_pylist()]


def test_a_record_gives_the_values_of_spark_alone_packed_and_beside_a_bad_one(spark, tmp_path):
    records = _records(4000 if _NIGHTLY else 400)
    _written(tmp_path, [b"".join(records)])
    expected = _by_spark(spark, tmp_path, SCHEMA, DOUBLED)["0000.csv"]
    assert len(expected) == len(records)
    permissive, exact = _format("PERMISSIVE"), _format("PERMISSIVE", exact=True)
    dropping, failing = _format("DROPMALFORMED"), _format("FAILFAST")
    wrong = []
    for record, row in zip(records, expected, strict=True):
        is_good = row["_corrupt_record"] is None
        readings = {
            "alone": _rows(permissive, record),
            "exact": _rows(exact, record),
            "beside a bad record": _rows(permissive, record + BAD)[:1],
            "packed beside a bad record": _rows(permissive, record, BAD)[:1],
        }
        wrong += [(how, record, row, got) for how, got in readings.items() if got != [row]]
        if _rows(dropping, record) != [row] * is_good:
            wrong.append(("dropping", record, row, []))
        try:
            failed = _rows(failing, record) != [row]
        except MalformedDataError:
            failed = True
        if failed is is_good:
            wrong.append(("failing", record, row, []))
    assert not wrong[:3], f"{len(wrong)} readings differ; how, the record, Spark's row, ours"
    # All of them at once, and the good ones, which take the fast path together.
    assert _rows(permissive, b"".join(records)) == expected
    assert _rows(permissive, *records) == expected
    good = [i for i, row in enumerate(expected) if row["_corrupt_record"] is None]
    assert len(records) / 4 < len(good) < len(records)
    for made in (permissive, dropping, failing, exact):
        assert _rows(made, b"".join(records[i] for i in good)) == [expected[i] for i in good]
