"""Damaged files and records: an error that names the place, or what was configured; no silence."""

from __future__ import annotations

import json
import os
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.errors import (
    FileChangedError,
    FileVanishedError,
    MalformedDataError,
    SchemaMismatchError,
    SplitReadError,
)
from pyspark_sluice.reader.api import ReaderContext, SplitReturned
from pyspark_sluice.tests.reader.files.reading import cut, read, read_rows, whole

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
CORRUPT = SCHEMA.append(pa.field("_corrupt_record", pa.string()))
MAY_RETURN = ReaderContext(1, 0, 0, may_return=True)


def _lines(count: int) -> bytes:
    return b"".join(b'{"a":%d,"b":"text %d"}\n' % (i, i) for i in range(count))


def test_a_bad_record_far_inside_a_later_split_is_located(tmp_path):
    path = tmp_path / "large.json"
    good = _lines(20_000)
    path.write_bytes(good + b'{"a":"x"}\n' + good)
    with pytest.raises(MalformedDataError, match=re.escape(f"{path}, byte {len(good)};")):
        read(cut(path, [200_000]), SCHEMA)


def test_rescued_data_holds_what_has_no_column_or_does_not_fit(tmp_path):
    schema = SCHEMA.append(pa.field("rest", pa.string()))
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a":1,"b":"x"}\n{"a":"no","c":[1,2.50]}\n')
    rows = read_rows([path], schema, rescued_data_column="rest")
    assert rows[0] == {"a": 1, "b": "x", "rest": None}
    assert json.loads(rows[1]["rest"]) == {"a": "no", "c": [1, 2.5]}
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,x\nno,y,more\n")
    rows = read_rows([path], schema, file_format="csv", rescued_data_column="rest")
    assert rows[1]["b"] == "y"
    assert json.loads(rows[1]["rest"]) == {"a": "no", "_c2": "more"}


@pytest.mark.parametrize("count", [1, 40])
def test_a_vanished_file_is_an_error_or_skipped_and_named(tmp_path, count):
    paths = [tmp_path / f"{i}.json" for i in range(count)]
    for path in paths:
        path.write_bytes(_lines(1))
    splits = [whole(path) for path in paths]
    paths[-1].unlink()
    with pytest.raises(FileVanishedError, match=re.escape(str(paths[-1]))):
        read(splits, SCHEMA)
    table, reports = read(splits, SCHEMA, ignore_missing_files=True)
    assert table.num_rows == count - 1
    assert [bool(r.skipped) for r in reports] == [False] * (count - 1) + [True]


def test_a_changed_file_is_refused_in_parts_by_size_and_by_time(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(_lines(9))
    parts = cut(path, [40])
    path.write_bytes(_lines(8))
    with pytest.raises(FileChangedError, match=f"found {len(_lines(8))} bytes"):
        read(parts, SCHEMA)
    path.write_bytes(_lines(9))
    os.utime(path, ns=(0, 0))
    with pytest.raises(FileChangedError, match="modified at 0 us"):
        read(parts, SCHEMA)


def test_a_repaired_whole_file_is_read_as_it_is_unless_its_rows_were_acknowledged(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(_lines(2) + b"{")
    split = whole(path)
    path.write_bytes(_lines(3))
    assert read([split], SCHEMA)[0].num_rows == 3
    with pytest.raises(FileChangedError):
        read([split], SCHEMA, ReaderContext(1, 0, 1, must_finish=True))


@pytest.mark.parametrize("count", [1, 30])
def test_a_split_that_fails_is_returned_without_any_of_its_rows(tmp_path, count):
    paths = [tmp_path / f"{i}.json" for i in range(count)]
    for path in paths:
        path.write_bytes(_lines(5))
    paths[-1].write_bytes(_lines(50_000) + b"{")
    table, reports = read([whole(p) for p in paths], SCHEMA, MAY_RETURN)
    assert table.num_rows == 5 * (count - 1)
    assert isinstance(reports[-1], SplitReturned)
    assert str(paths[-1]) in reports[-1].reason


def test_a_large_split_is_held_back_whole_and_then_given_in_order(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(_lines(100_000))
    table, _ = read([whole(path)], SCHEMA, MAY_RETURN, batch_bytes="64k")
    assert table.column("a").to_pylist() == list(range(100_000))


FORMATS = ["json", "csv", "text"]
MODES = ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]
PIECES = (
    *b'{ } " null \n \r , \\ \xff [ ] : 1 # -'.split(b" "),
    *(b" ", b"\0", b"\xef\xbb\xbf", b'{"a":1}', b'{"a":1,"b":"x"}\n', b"1,x\n", b'"a""b"'),
)


@given(
    st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join),
    st.sampled_from(FORMATS),
    st.data(),
)
def test_any_bytes_end_in_rows_or_in_an_error_of_this_package(tmp_path_factory, data, name, draw):
    path = tmp_path_factory.mktemp("fuzz") / "data"
    path.write_bytes(data)
    options = {
        "file_format": name,
        "mode": draw.draw(st.sampled_from(MODES)),
        "multi_line": (is_multi_line := draw.draw(st.booleans())),
        "record_path": draw.draw(st.sampled_from(["", "$", "b"])) if is_multi_line else "",
        "header": draw.draw(st.booleans()),
        "escape": draw.draw(st.sampled_from(["\\", '"'])),
    }
    schema = pa.schema([("value", pa.string())]) if name == "text" else CORRUPT
    try:
        table, reports = read([whole(path)], schema, **options)
    except SplitReadError as err:
        # Either end is right; which one it is, is for the other tests.
        if str(path) not in str(err) or (
            options["mode"] != "FAILFAST" and not isinstance(err, SchemaMismatchError)
        ):
            raise
        return
    assert reports[0].rows == table.num_rows
    if name == "text" and b"\r" not in data:
        body = data.removeprefix(b"\xef\xbb\xbf")
        assert table.num_rows == body.count(b"\n") + (bool(body) and not body.endswith(b"\n"))


@given(st.integers(1, 400), st.integers(0, 255), st.sampled_from(["json", "csv"]))
def test_a_flipped_byte_never_loses_a_record_silently(tmp_path_factory, at, byte, name):
    count = 12
    lines = _lines(count) if name == "json" else b"".join(b"%d,t%d\n" % (i, i) for i in range(12))
    data = bytearray(lines)
    data[at % len(data)] = byte
    path = tmp_path_factory.mktemp("flip") / "data"
    path.write_bytes(data)
    table, _ = read([whole(path)], CORRUPT, file_format=name, mode="PERMISSIVE")
    records = [line for line in bytes(data).splitlines() if line.strip()]
    assert table.num_rows == len(records)
