"""Odd CSV of every kind, many files to one read: Spark's rows, alone, packed and on each path.

Where the two differ on purpose, docs/differences.md says so. Generated files are in `../readings/`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import OptionError, SchemaMismatchError
from pyspark_sluice.tests.answers import RefusedBySparkError
from pyspark_sluice.tests.reader.files.reading import read, read_rows, whole
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

CORRUPT = "_corrupt_record string"
THREE = f"a string, b string, c string, {CORRUPT}"
MULTI = {"multiLine": "true"}
DOUBLED = {"escape": '"'}

SEPARATED = b"1\t2|3\x0c4\\5\x086\"7'8\\t9\0,a\\b ,\\c\t\\d\n1\r2"
"""Every character that an escape means, and each escape as it is written."""

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
        [b'"a\nx",b,c\n1,2,3\n', b'\n\n"a\r\nx",b,c\r\n1,2\r\n', b'"a', b"a,b,c", b""],
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


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: str(value) if isinstance(value, float) and (math.isnan(value) or not value) else value
        for key, value in row.items()
    }


def _by_spark(spark, folder: Path, schema: str, options: dict[str, str]) -> list[Any]:
    """Spark's rows of every file of a folder, in the order of their names."""
    frame = spark.read.schema(schema).options(**options).csv(str(folder))
    rows = {path.name: [] for path in sorted(folder.iterdir())}
    for row in frame.select("*", "_metadata.file_name").toArrow().to_pylist():
        rows[row.pop("file_name")].append(_plain(row))
    return [*rows.values()]


@pytest.mark.parametrize(
    ("options", "files"), [case[1:] for case in FILES], ids=[c[0] for c in FILES]
)
def test_files_of_other_writers_give_the_rows_of_spark(spark_answers, tmp_path, options, files):
    paths = [tmp_path / f"{number:04}.csv" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    expected = spark_answers(lambda s: _by_spark(s, tmp_path, THREE, options), files, options)
    arrow = arrow_schema(THREE)
    ours: dict[str, Any] = {"file_format": "csv", "mode": "PERMISSIVE", **options}
    for path, data, of_spark in zip(paths, files, expected, strict=True):
        assert [_plain(row) for row in read_rows([path], arrow, **ours)] == of_spark, data
    table, reports = read([whole(path) for path in paths], arrow, **ours)
    together = [_plain(row) for row in table.to_pylist()]
    assert together == [row for of_spark in expected for row in of_spark]
    assert [report.rows for report in reports] == [*map(len, expected)]


@pytest.mark.parametrize("more", [{}, MULTI])
def test_spark_refuses_or_renames_what_a_header_names_twice(spark_answers, tmp_path, more):
    path = tmp_path / "a.csv"
    path.write_text("id,n,N\n1,x,y\n")
    options = {"header": "true", **more}
    by_position = "id int, n string, m string"

    def by_name(spark):
        reader = spark.read.options(**options, enforceSchema="false")
        reader.schema(by_position).csv(str(path)).collect()

    with pytest.raises(RefusedBySparkError, match="does not conform to the schema"):
        spark_answers(by_name, path, options)

    def names_and_row(spark):
        (row,) = spark.read.options(**options).schema(by_position).csv(str(path)).collect()
        return spark.read.options(**options).csv(str(path)).columns, row.asDict()

    names, row = spark_answers(names_and_row, path, options)
    assert names == ["id", "n1", "N2"]
    ours = {"file_format": "csv", "mode": "PERMISSIVE", **options}
    assert read_rows([path], arrow_schema(by_position), **ours) == [row]
    for given in ({"enforce_schema": False}, {"rescued_data_column": "m", "enforce_schema": False}):
        with pytest.raises(SchemaMismatchError, match="names a column twice"):
            read_rows([path], arrow_schema(by_position), **ours, **given)


@pytest.mark.thorough("twenty thousand fields")
def test_a_record_with_more_fields_than_spark_takes_is_a_record_like_any_other(tmp_path):
    path = tmp_path / "a.csv"
    wide = ",".join(str(number) for number in range(20_481))
    path.write_text(f"1,2,3\n{wide}\n4,5,6\n")
    rows = read_rows([path], arrow_schema(THREE), file_format="csv", mode="PERMISSIVE")
    assert [row["_corrupt_record"] for row in rows] == [None, wide, None]
    assert [row["c"] for row in rows] == ["3", "2", "6"]
    many = pa.schema([(f"c{number}", pa.int64()) for number in range(20_481)])
    path.write_text(f"{wide}\n")
    assert list(read_rows([path], many, file_format="csv")[0].values()) == list(range(20_481))


def test_text_of_any_length_is_a_value_as_in_spark(spark_answers, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x" * 20_000_001 + ",y,z\n")
    options = {"maxCharsPerColumn": "-1"}
    expected = spark_answers(lambda s: _by_spark(s, tmp_path, THREE, options), path, options)
    ours = read_rows([path], arrow_schema(THREE), file_format="csv", mode="PERMISSIVE")
    assert [ours] == expected


@pytest.mark.parametrize(
    "sep", ["", "\\", "a\\", r"\\\\"[:3], r"\n", r"\0", r"\u0000", r"\x", r"\|", r"\ "]
)
def test_a_separator_that_spark_refuses_is_refused(spark_answers, tmp_path, sep):
    (tmp_path / "a.csv").write_bytes(b"1,2\n")
    with pytest.raises(RefusedBySparkError, match=r"[Dd]elimiter|DELIMITER|StringIndexOutOfBounds"):
        spark_answers(lambda spark: _by_spark(spark, tmp_path, THREE, {"sep": sep}), sep)
    with pytest.raises(OptionError, match="sep: found"):
        parse_options({"path": "/in", "fileformat": "csv", "sep": sep}, streaming=False)
