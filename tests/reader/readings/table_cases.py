"""A case for each row of the table of differences: what Spark reads, and what is read here.

A row is named by how its first cell begins. Rows that are not about the bytes of a file have a
test of their own in `test_tables.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.model import Group, Outcome

REFUSED = "refused"
TODAY = "today"
"""A time of the day on which it is read."""


@dataclass(frozen=True)
class Case:
    """One file that the two read differently."""

    row: str
    file_format: str
    schema: Mapping[str, pa.DataType]
    data: bytes
    spark: list[tuple[Any, ...]] | str
    """Values of each row, the corrupt record last under PERMISSIVE; or `refused`."""

    ours: list[tuple[Any, ...]] | str
    options: Mapping[str, str] = field(default_factory=dict)
    mode: str = "PERMISSIVE"

    @property
    def group(self) -> Group:
        """What the machine reads."""
        return Group(
            self.file_format, pa.schema([*self.schema.items()]), self.options, (self.data,)
        )


def plain(outcome: Outcome) -> list[tuple[Any, ...]] | str:
    """An outcome as cases have it."""
    if isinstance(outcome, str):
        return REFUSED
    rows = [tuple(row.values()) for row in outcome]
    today = datetime.now(UTC).replace(hour=12, minute=34, second=0, microsecond=0).timestamp()
    return TODAY if rows == [(today * 1e6, None)] else rows


TEXT = {"a": pa.string(), "b": pa.string()}
INT, ZONED = pa.int32(), pa.timestamp("us", "UTC")


def _text(row: str, data: bytes, spark: Any, ours: Any, **options: str) -> Case:
    """Two columns of text in CSV."""
    return Case(row, "csv", TEXT, data, spark, ours, options)


def _moment(row: str, data: bytes, spark: Any, ours: Any, **options: str) -> Case:
    """A column of instants in CSV."""
    return Case(row, "csv", {"a": ZONED}, data, spark, ours, options)


def _number(row: str, data: bytes, spark: Any, ours: Any, **options: str) -> Case:
    """A column of integers in JSON."""
    return Case(row, "json", {"a": INT}, data, spark, ours, options)


CASES = (
    _number(
        "text after a JSON object or array",
        b'{"a":1}{"a":2}\n',
        [(1, None)],
        [(None, '{"a":1}{"a":2}')],
    ),
    _number(
        "text after a JSON object or array",
        b'{"a":\n1} x',
        [(1, None)],
        [(None, '{"a":\n1} x')],
        multiLine="true",
    ),
    Case(
        "JSON integers from 128 to 255",
        "json",
        {"a": pa.int8()},
        b'{"a":200}\n',
        [(-56, None)],
        [(None, '{"a":200}')],
    ),
    Case(
        "JSON numbers of seconds beyond",
        "json",
        {"a": ZONED},
        b'{"a":99999999999999999}\n',
        [(200376420519689664, None)],
        [(None, '{"a":99999999999999999}')],
    ),
    _number(
        "JSON: a name twice in one object",
        b'{"a":"x","a":1}\n',
        [(1, '{"a":"x","a":1}')],
        [(1, None)],
    ),
    Case(
        "JSON: half of a surrogate pair",
        "json",
        {"s": pa.string()},
        b'{"s":["\\ud83d"]}\n',
        [('["\\ud83d"]', None)],
        [('["?"]', None)],
    ),
    _text(
        "bytes that are not characters of an `encoding`",
        b"\xff,1\n",
        [("\ufffd", "1", None)],
        REFUSED,
        encoding="US-ASCII",
    ),
    _number(
        "`encoding` other than",
        '{"a":1}'.encode("utf-32-be"),
        REFUSED,
        [(1, None)],
        encoding="UTF-32BE",
        multiLine="true",
    ),
    _number(
        "JSON lines with an `encoding`", b'{"a":1}\n', REFUSED, [(1, None)], encoding="ISO-8859-1"
    ),
    Case(
        "JSON: other columns of a malformed",
        "json",
        {"a": INT, "b": pa.binary()},
        '{"a":1,"b":"Zg=="}\n{"a":2,"b":"Zé=="}\n{"a":3,"b":"Z!=="}\n'.encode(),
        [(1, "f", None), (None, None, '{"a":2,"b":"Zé=="}'), (3, None, '{"a":3,"b":"Z!=="}')],
        [(1, "f", None), (2, None, '{"a":2,"b":"Zé=="}'), (3, None, '{"a":3,"b":"Z!=="}')],
    ),
    _text(
        "lines in UTF-16 and UTF-32",
        "a,1\nb,2\n".encode("utf-16-le"),
        [("a", "1", None), ("戀Ⰰ㈀\ufffd", None, "戀Ⰰ㈀\ufffd"), ("\ufffd", None, "\ufffd")],
        [("a", "1", None), ("b", "2", None)],
        encoding="UTF-16LE",
    ),
    Case(
        "JSON: a record that is not JSON",
        "json",
        {"a": INT, "s": pa.string()},
        b'{"a":2}\n{"\xffa":1,"s":"kept"}\n',
        [(2, None, None), (1, "kept", None)],
        [(2, None, None), (None, None, '{"\ufffda":1,"s":"kept"}')],
    ),
    _moment(
        "the zones `SystemV/...`",
        b"2024-01-02 03:04:05 SystemV/EST5\n",
        [(1704182645000000, None)],
        [(None, "2024-01-02 03:04:05 SystemV/EST5")],
        timestampFormat="yyyy-MM-dd HH:mm:ss VV",
    ),
    Case(
        "`locale` other than",
        "csv",
        {"a": pa.decimal128(5, 2)},
        b'"1,5"\n',
        [("decimal 1.50", None)],
        REFUSED,
        {"locale": "de"},
    ),
    _text(
        "CSV with a `lineSep`", b"\n\r,a", [("\r", "a", None)], [("\n\r", "a", None)], lineSep="||"
    ),
    _text(
        "CSV with a `lineSep`",
        b"1,a\nb||2,c||3,d",
        [("1", "a", None), ("b", None, ",c"), ("3", "d", None)],
        [("1", "a\nb", None), ("2", "c", None), ("3", "d", None)],
        lineSep="||",
    ),
    _text(
        "CSV with `multiLine` and a `lineSep`",
        b'1,"a"||b,2',
        [("1", '"a"||b', '1,"a"||b,2')],
        [("1", "a", None), ("b", "2", None)],
        lineSep="||",
        multiLine="true",
    ),
    _text(
        "CSV with `ignoreTrailingWhiteSpace`",
        b" ,x\n",
        REFUSED,
        [(None, "x", None)],
        ignoreTrailingWhiteSpace="true",
    ),
    _text(
        "CSV: a `sep` of several characters",
        b'"a"b, "c\n',
        [('""a"b" "c', None, '"a"b, "c')],
        [('"a"b', "c", None)],
        sep=", ",
    ),
    _text(
        "CSV with `multiLine` and files of up to four bytes",
        b"a\r",
        [("a\r", None, "a")],
        [("a", None, "a")],
        multiLine="true",
    ),
    _text(
        "CSV with `multiLine` and files of up to four bytes",
        b"\xef\xbb\xbf",
        [("\x00", None, "\ufeff")],
        [],
        multiLine="true",
    ),
    _text(
        "CSV: a second byte order mark",
        b"\xef\xbb\xbf\n\xef\xbb\xbfa,b\n",
        [("a", "b", None)],
        [("\ufeffa", "b", None)],
    ),
    Case(
        "header that has a column of the schema at another position",
        "csv",
        TEXT,
        b"b,a\n1,2\n",
        [("1", "2")],
        REFUSED,
        {"header": "true"},
        "FAILFAST",
    ),
    _text(
        "header with `enforceSchema=false`",
        b"b,a\n1,2\n",
        REFUSED,
        [("2", "1", None)],
        header="true",
        enforceSchema="false",
    ),
    _text(
        "CSV: a second byte order mark",
        b"\xef\xbb\xbf\xef\xbb\xbfa,b\n",
        [("a", "b", None)],
        [("\ufeffa", "b", None)],
    ),
    _moment("a time without a date", b"12:34\n", TODAY, [(None, "12:34")]),
    Case(
        "pattern letters other than",
        "csv",
        {"a": pa.date32()},
        b"AD 2024-01-02\n",
        [(19724, None)],
        REFUSED,
        {"dateFormat": "G yyyy-MM-dd"},
    ),
    _moment(
        "`S` directly after another number",
        b"20240102030405123\n",
        [(None, "20240102030405123")],
        [(1704164645123000, None)],
        timestampFormat="yyyyMMddHHmmssSSS",
    ),
    _moment(
        "zone names in text",
        b"2024-07-02 03:04:05 CEST\n",
        [(1719882245000000, None)],
        [(None, "2024-07-02 03:04:05 CEST")],
        timestampFormat="yyyy-MM-dd HH:mm:ss z",
    ),
)
