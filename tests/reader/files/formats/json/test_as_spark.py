"""Any JSON record gives the rows that Spark's own reader gives: alone, packed, on every path."""

# ruff: noqa: E501 - texts that belong together are read at one glance
import random
import re
from functools import partial

import pytest

from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.testing import read, whole
from pyspark_sluice.tests.reader.files.formats.json.comparing import (
    ALL,
    BORDER,
    CORRUPT,
    NESTED,
    ZONE,
    as_documented,
    exact_rows,
    json_format,
    our_rows,
    plain_rows,
    record,
    spark_files,
    spark_lines,
)
from pyspark_sluice.tests.reader.readings.kinds import arrow_schema

RECORDS = 100
MALFORMED = b'{"s":"cut off","a"'
WRAPS_AROUND = re.compile(rb'"ts" ?:[ \t]?-?\d{13,}')
"""Seconds beyond the type: another time in Spark, no time here. See docs/differences.md."""


@pytest.mark.sample("flat", "nested", why="more shapes of records")
@pytest.mark.parametrize("ddl", ALL.values(), ids=ALL)
def test_a_record_gives_the_rows_of_spark_next_to_any_other(spark_answers, tmp_path, ddl):
    schema, chance = arrow_schema(ddl), random.Random(0)
    names = [*(n for n in schema.names if n != CORRUPT), "unknown"]
    distinct = dict.fromkeys(record(chance, names) for _ in range(RECORDS))
    records = [r for r in distinct if not WRAPS_AROUND.search(r) and b"\n" not in r]
    ask = partial(spark_lines, folder=tmp_path, records=records, ddl=ddl)
    expected = spark_answers(ask, records, ddl)
    kept = [[row for row in rows if CORRUPT not in row] for rows in expected]

    def otherwise_dropped(spark):
        """Rows under DROPMALFORMED, where they are not the good ones under PERMISSIVE."""
        dropped = ask(spark, mode="DROPMALFORMED")
        return [[n, rows] for n, rows in enumerate(dropped) if rows != kept[n]]

    assert spark_answers(otherwise_dropped, records, ddl) == []
    permissive, dropping = json_format(schema), json_format(schema, mode="DROPMALFORMED")
    failing = json_format(schema, mode="FAILFAST")
    border, malformed = our_rows(permissive, BORDER), our_rows(permissive, MALFORMED)
    for data, answer in zip(records, expected, strict=True):
        rows = as_documented(our_rows(permissive, data), data, answer)
        good = [row for row in rows if CORRUPT not in row]
        assert our_rows(permissive, data) == rows, data
        assert exact_rows(permissive, data) == rows, data
        packed = BORDER + b"\n" + data + b"\n" + BORDER + b"\n"
        assert our_rows(permissive, packed) == [*border, *rows, *border], data
        beside = our_rows(permissive, data + b"\n" + MALFORMED)
        assert beside == [*rows, *malformed], data
        assert our_rows(dropping, data) == good, data
        is_bad = any(CORRUPT in row for row in rows)
        assert our_rows(failing, data) == ("malformed" if is_bad else rows), data


NEST = b'{"s":%s}'
BEYOND = [
    b"[" * 1000 + b"]" * 1000, b'{"k":' * 1000 + b"1" + b"}" * 1000, b'[{"":' * 500 + b'"]}"' + b"}]" * 500,
]  # fmt: skip
"""Values that are too much for Spark's parser, in a field that nobody asks for."""

WITHIN = [
    b"[" * 999 + b"]" * 999, b'{"k":' * 999 + b"1" + b"}" * 999, b"[" + b'["]",[]],' * 1500 + b"1]", b"[" + b'"[[",' * 2000 + b"1]",
    b"9" * 1000, b"-" + b"9" * 1000, b"1." + b"1" * 999, b"1e+" + b"0" * 998 + b"1", b'"' + b"k" * 60_000 + b'"', b'{"%s":"%s"}' % (b"k" * 50_000, b"v" * 60_000),
]  # fmt: skip
"""The same, just not too much."""

TEXTS = {
    "y": [
        b'{"a":1}', b' \t{"a" : 1 } \r', b"{}", b"[]", b'[{"a":1},{"a":2}]', b'{"d":1E+2}', b'{"d":-0.0}', b'{"d":-0}',
        b'{"s":-0}', b'{"s":"\\u0000"}', b'{"s":"\\ud83d\\ude00"}', b'{"\\u0073":"x"}', b'{"s":"\x7f"}',
        b'{"s":"\xf4\x8f\xbf\xbf"}', b'{"s":"\xe2\x80\xa8"}', b'{"":1,"a":2}', b'{"s":"a\\/b"}', b'{"a":1,"c":[[],{}]}',
        NEST % (b"[" * 500 + b"]" * 500), NEST % (b'{"k":' * 450 + b"1" + b"}" * 450), b'{"s":' + b"9" * 1000 + b"}",
        *(b'{"a":1,"u":%s,"d":2}' % value for value in WITHIN),
        *(b'{"a":1,"%s":{"%s":1}}' % (name, name) for name in (b"k" * 50_000, "\u00e9".encode() * 25_000, b"\\n" * 50_000)),
        b'{"d":-' + b"9" * 1000 + b'}', b'{"d":1.' + b"1" * 999 + b'}', b'{"a":1,"s":[' + b'{"k":"[]"},' * 2000 + b"1]}",
        b'{"db":' + b"9" * 38 + b"}", b'{"db":"' + b"9" * 38 + b'"}', b'{"s":[1, 2 ,{"k" :"v"}]}',
    ],
    "n": [
        b'{"a":1', b'{"a":}', b'{"a"}', b'{"a":1,}', b"{,}", b"{a:1}", b'{"a":01}', b'{"a":1.}', b'{"a":.5}', b'{"a":+1}',
        b'{"a":0x1}', b'{"a":1_000}', b'{"de":"1_000"}', b'{"a":1e}', b'{"a":--1}', b'{"a":tru}', b'{"a":True}', b'{"s":"x',
        b'{"s":"\\x"}', b'{"s":"\\u12"}', b'{"s":"a\tb"}', b'{"s":"\x00"}', b'{"s":"\xff"}',
        b'{"s":"\xed\xa0\x80"}', b'[{"a":1}', b'[{"a":1},]', b"[,]", b'[{"a":1}}', b'{"a":1]', b'{"a":[1}}', b"null", b"5",
        b'"x"', b"[1]", b"[null]", b'[[{"a":1}]]', b'[{"a":1},{"a":"x"}]', b'[{"a":1},{"b":tru}]', b'{"s":/*c*/1}', b"//",
        b'{"x":5}', b'{"x":true}', b'{"x":"aGk"}', b'{"d":INF}', b'{"d":"INF"}', b'{"db":' + b"9" * 39 + b"}",
        b'{"o":{"x":1,"s":"\xff"},"a":1}',
        b'{"a":1,"o":{"s":"kept","x":tru},"s":"lost"}', b'{"s":"kept","o":{"x":' + b"9" * 60 + b',"s":"kept"},"a":1}',
        NEST % (b"[" * 1001 + b"]" * 1001), b'{"\\ud83d":1}',
        *(b'{"a":1,"u":%s,"d":2}' % value for value in BEYOND),
        *(b'{"o":{"y":[%sp","q"],"x":3},"a":1,"s":"t"}' % word for word in (b"z", b"$", b"tr", b"\xff", b"\xc3", b"\x80")),
        *(b'{"ao":[{"x":%s,"s":"u"},{"x":1}],"s":"t","a":1}' % word for word in (b"z", b"\xff", b"\xe2\x82")),
    ],
    "i": [
        b'{"s":"\xc0\xaf"}', b'{"s":"\\ud83d"}', b'{"s":"\\ude00\\ud83d"}', b'{"a":1,"a":2}', b'{"a":1,"a":"x"}', b'{"a":1,"a":null}',
        b'{"s":{"k":1,"k":2}}', b'{"o":{"x":1,"x":2}}', b'{"d":1e400}', b'{"f":1e40}', b'{"d":1e-400}', b'{"d":NaN}',
        b'{"d":-Infinity}', b'{"d":"-INF"}', b"{'a':1}", b'{"s":\'x"y\'}', b'{"db":1e37}', b'{"de":1.005}', b'{"f":16777217}',
        b'{"f":1.00000017881393432617187499}', b'{"l":9223372036854775808}', b'\xef\xbb\xbf{"a":1}',
    ],
}  # fmt: skip
WIDE = ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be"]
CASES = [text for texts in TEXTS.values() for text in texts]


def test_texts_that_parsers_differ_in_are_read_as_by_spark_in_lines(spark_answers, tmp_path):
    schema = arrow_schema(NESTED)
    ask = partial(spark_lines, folder=tmp_path, records=CASES, ddl=NESTED)
    expected = spark_answers(ask, CASES, NESTED, "PERMISSIVE")
    reader = json_format(schema)
    for data, answer in zip(CASES, expected, strict=True):
        rows = our_rows(reader, data)
        assert rows == as_documented(rows, data, answer), data[:80]
    # What is expected above is what the letters say: nothing that is valid is malformed.
    valid = json_format(schema, mode="FAILFAST")
    assert [data for data in TEXTS["y"] if our_rows(valid, data) == "malformed"] == []
    assert [data for data in TEXTS["n"] if our_rows(valid, data) != "malformed"] == []


@pytest.mark.thorough("the same texts are read in lines below")
def test_texts_that_parsers_differ_in_are_read_as_by_spark_in_documents(spark_answers, tmp_path):
    schema = arrow_schema(NESTED)
    pretty = [
        b'[\n  {"a":1,\r\n "s":"x"},\n{"o":{"x":[1]},"s":"y"} ,\n {}]\n',
        b"",
        b"\n [ ] \n",
        b'{"a":\n1}\n',
    ]
    wide = ['[{"a":1},{"s":"\U0001f600"}]'.encode(encoding) for encoding in WIDE]
    # The array is a level of nesting too.
    deep = [b'[{"a":1},{"s":"x","u":%s}]' % (b"[" * n + b"]" * n) for n in (998, 999, 1000)]
    marked = [MARK + text for text in (b"{", b'[{"a":1},{"a":"x"}]', b"[", b" ")]
    documents = [*CASES, *pretty, *wide, *deep, *marked]
    paths = _written(tmp_path, documents)
    ask = partial(spark_files, folder=tmp_path, ddl=NESTED, multiLine="true")
    expected = spark_answers(ask, documents, NESTED, "PERMISSIVE")
    for path, data, answer in zip(paths, documents, expected, strict=True):
        table, _ = read([whole(path)], schema, time_zone=ZONE, mode="PERMISSIVE", multi_line=True)
        rows = plain_rows(table)
        assert rows == as_documented(rows, data, answer), data[:80]


def _written(folder, documents):
    paths = [folder / f"{number:06d}.json" for number in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_bytes(document)
    return paths


MARK = b"\xef\xbb\xbf"
MARKED = {
    "later.json": [b'{"a":1}', MARK, b'{"a":2}'],
    "last.json": [b'{"a":1}', MARK],
    "blank.json": [b'{"a":1}', MARK + b" ", b'{"a":2}', MARK + MARK, b" " + MARK],
    "crlf.json": [b'{"a":1}\r', MARK + b"\r", MARK + b'{"a":2}\r'],
    "first.json": [MARK, b'{"a":1}'],
    "twice.json": [MARK + MARK, b'{"a":1}'],
}


@pytest.mark.parametrize("ddl", [ALL["flat"], NESTED], ids=["flat", "nested"])
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_lines_of_nothing_but_a_byte_order_mark_are_what_they_are_in_spark(
    spark_answers, tmp_path, ddl, mode
):
    schema, names = arrow_schema(ddl), sorted(MARKED)
    paths = _written(tmp_path, [b"\n".join(MARKED[name]) + b"\n" for name in names])
    ask = partial(spark_files, folder=tmp_path, ddl=ddl, mode=mode)
    expected = spark_answers(ask, paths, ddl, mode)
    alone = [_rows(schema, [path], mode) for path in paths]
    assert dict(zip(names, alone, strict=True)) == dict(zip(names, expected, strict=True))
    assert _rows(schema, paths, mode) == [row for rows in expected for row in rows]
    for path, rows in zip(paths, expected, strict=True):
        if any(CORRUPT in row for row in rows):
            with pytest.raises(MalformedDataError, match=re.escape(str(path))):
                _rows(schema, [path], "FAILFAST")


def _rows(schema, paths, mode):
    table, _ = read([whole(path) for path in paths], schema, time_zone=ZONE, mode=mode)
    return plain_rows(table)
