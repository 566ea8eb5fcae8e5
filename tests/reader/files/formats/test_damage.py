"""Damaged files and records: an error that names the place, or what was configured; no silence."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from pyspark_sluice.errors import (
    FileChangedError,
    FileVanishedError,
    MalformedDataError,
)
from pyspark_sluice.reader.api import ReaderContext, SplitReturned
from pyspark_sluice.tests.reader.files.reading import cut, read, whole

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
MAY_RETURN = ReaderContext(1, 0, 0, may_return=True)


def _lines(count: int) -> bytes:
    return b"".join(b'{"a":%d,"b":"text %d"}\n' % (i, i) for i in range(count))


def test_a_bad_record_far_inside_a_later_split_is_located(tmp_path):
    path = tmp_path / "large.json"
    good = _lines(20_000)
    path.write_bytes(good + b'{"a":"x"}\n' + good)
    with pytest.raises(MalformedDataError, match=re.escape(f"{path}, byte {len(good)};")):
        read(cut(path, [200_000]), SCHEMA)


def test_a_vanished_file_is_an_error_or_skipped_and_named(tmp_path):
    paths = [tmp_path / f"{i}.json" for i in range(40)]
    for path in paths:
        path.write_bytes(_lines(1))
    splits = [whole(path) for path in paths]
    paths[-1].unlink()
    with pytest.raises(FileVanishedError, match=re.escape(str(paths[-1]))):
        read(splits, SCHEMA)
    table, reports = read(splits, SCHEMA, ignore_missing_files=True)
    assert table.num_rows == 39
    assert [bool(r.skipped) for r in reports] == [False] * 39 + [True]


def test_a_repaired_whole_file_is_read_as_it_is_unless_its_rows_were_acknowledged(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(_lines(2) + b"{")
    split = whole(path)
    path.write_bytes(_lines(3))
    assert read([split], SCHEMA)[0].num_rows == 3
    with pytest.raises(FileChangedError):
        read([split], SCHEMA, ReaderContext(1, 0, 1, must_finish=True))


def test_a_large_split_is_given_whole_and_in_order_or_returned_without_any_of_its_rows(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(_lines(50_000))
    table, _ = read([whole(path)], SCHEMA, MAY_RETURN, batch_bytes="64k")
    assert table["a"].to_pylist() == list(range(50_000))
    path.write_bytes(_lines(50_000) + b"{")
    table, [report] = read([whole(path)], SCHEMA, MAY_RETURN, batch_bytes="64k")
    assert table.num_rows == 0
    assert isinstance(report, SplitReturned)
    assert str(path) in report.reason
