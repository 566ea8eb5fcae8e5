"""Odd CSV of every kind, many files to one read: Spark's rows, alone, packed and on each path.

Where the two differ on purpose, docs/differences.md says so. Generated files are in `../readings/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.testing import read, read_rows, whole
from pyspark_sluice.tests.answers import RefusedBySparkError
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

THREE = "a string, b string, c string, _corrupt_record string"
MULTI = {"multiLine": "true"}
DOUBLED = {"escape": '"'}

SEPARATED = b"1\t2|3\x0c4\\5\x086\"7'8\\t9\0,a\\b ,\\c\t\\d\n1\r2"
"""Every character that an escape means, and each escape as it is written."""

# Files that other programs wrote, or that people mended by hand: by options, then by name.
FILES: dict[str, tuple[dict[str, str], *tuple[bytes, ...]]] = {
    "odd quotes": (
        {},
        b'"2015,"Chevy",Volt,\n1,2,3\n',
        b'"2015","Chevy "Volt"",x\n',
        b'a"b,"c"d,e\n"a" "b",c,d\n"a" ,b , "c"\n',
        b'"a\n1,2,3\n"b",2,3\n',
        b'"",,""\n"""a""",b,c\n"\\"",b,c\n"a\\\\",b,c\n"a\\\\"b,c,d\n',
        b'"a"\\b,c,d\n"a"\\"b",c,d\n' + b'"a"' + b'\\"' * 5 + b",b,c\n",
        b'""a,b,c\n"" ,b,c\n""" ",b,c\n',
        b"'a,b',c,d\n",
        b'a,"b\r\nc",d\r\n',
    ),
    "doubled quotes": (DOUBLED, b'"a""b","""",""\n"a"b,c,d\n"a""\n1,2,3\n"a""",b,c\n'),
    "blank lines": (
        {},
        b"\n\n1,2,3\n \n\t\t\n\x00\x01\n\x0b\x0c\n1,2,3\n\r\n\r\n",
        b"\xc2\xa0\n\xe3\x80\x80\n1,2,3\n",
        b"1,2,3\x0c\n1,2\x0c\n",
    ),
    "tabs": ({"sep": "\t"}, b"1\t2\t3\n\t\t\n \t2\t3\n\t\t\t\n\t\tx\n", b'"a" \t"b"\t "c"\n'),
    "comments": ({"comment": "#"}, b"#c\ra,b,c\rc,d,e\r", b"#c\n #d\n1,2,3\n#e", b"1,#2,3\n#\n"),
    "headers behind comments": (
        {"comment": "#", "header": "true"},
        b"#c\ra,b,c\rc,d,e\r",
        b"\n  # c\n\na,b,c\n1,2,3\n",
        b'"a","b","c"\n',
        b"",
        b"#\n",
    ),
    "records over lines": (
        MULTI,
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
    ),
    "headers over lines": (
        MULTI | {"header": "true"},
        b'"a\nx",b,c\n1,2,3\n',
        b'\n\n"a\r\nx",b,c\r\n1,2\r\n',
        b'"a',
        b"a,b,c",
        b"",
    ),
    "comments over lines": (
        MULTI | {"comment": "#"},
        b'#"\n1,2,3\n#\n"a\n#b",2,3\n#',
        b"#c\r\n#d\n1\r\n2,3,4\r\n",
    ),
    "separators of lines": (
        {"lineSep": "|"},
        b"1,2,3|4,5,6|",
        b'"a|b",2,3|x',
        b"1,2|3,4,5,6| |\t|",
    ),
    "separators of records over lines": (
        MULTI | {"lineSep": "|"},
        b"first,second,value\n|\n|first,second,other\n|",
        b"\n|\n|\n",
        b"1,2,3|\r\n|4,5\r|6,7\n",
        b'"a|b\n",2,3|"a"|"b""c"|"d"x|\n"e",1,2',
        b"1,2,3\n",
    ),
    "line ends in what does not fit": (
        MULTI,
        b"1,2,3\n4,5\r\n6,7\r8,9\n10\r",
        b"1\r2\n3\r\n\r4",
        b'1,2,3\n"4\r",5\r\n',
    ),
    "carriage returns before line feeds": ({"lineSep": "\n"}, b"1,2,3\r\n4,5\r\n6\r\r\n7\r"),
    **{
        f"separator {sep}": ({"sep": sep, "quote": "", "escape": ""}, SEPARATED)
        for sep in (r"\t", r"\r", r"\b", r"\f", r"\"", r"\'", r"\\", r"\\t", r",\\", r"\t\\", "\0")
    },
    "two marks": (MULTI, "\ufeff\ufeff1,2,3\n\ufeff4,5,6\n".encode()),
    "marks behind headers": (
        {"header": "true"},
        "\ufeffa,b,c\n\ufeff1,2,3\n\ufeff4,5,6\n".encode(),
        '\ufeff\n\ufeff"1",2,3\n'.encode(),
    ),
}


def _by_spark(spark, folder: Path, options: dict[str, str]) -> list[Any]:
    """Spark's rows of every file of a folder, in the order of their names."""
    frame = spark.read.schema(THREE).options(**options).csv(str(folder))
    rows = {path.name: [] for path in sorted(folder.iterdir())}
    for row in frame.select("*", "_metadata.file_name").toArrow().to_pylist():
        rows[row.pop("file_name")].append(row)
    return [*rows.values()]


@pytest.mark.parametrize("case", FILES)
def test_files_of_other_writers_give_the_rows_of_spark(spark_answers, tmp_path, case):
    options, *files = FILES[case]
    paths = [tmp_path / f"{number:04}.csv" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    expected = spark_answers(lambda s: _by_spark(s, tmp_path, options), files, options)
    arrow = arrow_schema(THREE)
    ours: dict[str, Any] = {"file_format": "csv", "mode": "PERMISSIVE", **options}
    for path, data, of_spark in zip(paths, files, expected, strict=True):
        assert read_rows([path], arrow, **ours) == of_spark, data
    table, reports = read([whole(path) for path in paths], arrow, **ours)
    assert table.to_pylist() == [row for of_spark in expected for row in of_spark]
    assert [report.rows for report in reports] == [*map(len, expected)]


@pytest.mark.parametrize("sep", ["", "\\", "a\\", r"\n", r"\0", r"\x"])
def test_a_separator_that_spark_refuses_is_refused(spark_answers, tmp_path, sep):
    (tmp_path / "a.csv").write_bytes(b"1,2\n")
    with pytest.raises(RefusedBySparkError, match=r"[Dd]elimiter|DELIMITER|StringIndexOutOfBounds"):
        spark_answers(lambda spark: _by_spark(spark, tmp_path, {"sep": sep}), sep)
    with pytest.raises(OptionError, match="sep: found"):
        parse_options({"path": "/in", "fileformat": "csv", "sep": sep}, streaming=False)
