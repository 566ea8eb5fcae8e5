"""Damaged files and records: an error that names the place, or what was configured; no silence."""

from __future__ import annotations

import json
import os
import pickle
import re
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.errors import FileChangedError, FileVanishedError, MalformedDataError
from pyspark_sluice.reader.api import ReaderContext, SplitReturned
from pyspark_sluice.reader.files.testing import cut, read, read_rows, whole

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


def test_a_vanished_file_is_skipped_as_replaced_if_its_directory_was_written_again(tmp_path):
    paths = [tmp_path / "day=1" / f"{i}.json" for i in range(3)]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_bytes(_lines(1))
    splits = [whole(path) for path in paths]
    options: dict[str, Any] = {"ignore_missing_files": "replaced"}
    # One file is lost: another one is older.
    paths[1].unlink()
    new = tmp_path / "day=1" / "new.json"
    new.write_bytes(_lines(1))
    later = splits[0].file.modified * 1000 + 5 * 10**9
    os.utime(new, ns=(later, later))
    with pytest.raises(FileVanishedError):
        read(splits[1:2], SCHEMA, **options)
    # A job has written the directory again, under other names.
    for path in (paths[0], paths[2]):
        path.unlink()
    table, reports = read(splits, SCHEMA, **options)
    assert table.num_rows == 0
    assert all(re.match(f"replaced: .* with {new}; ", r.skipped) for r in reports)
    # All of it is gone.
    new.unlink()
    with pytest.raises(FileVanishedError):
        read(splits, SCHEMA, **options)


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


FORMATS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "json": ('{{"a":{},"b":"t"}}', "\n", {}),
    "json with a separator": ('{{"a":{},"b":"t"}}', "|", {"file_format": "json", "line_sep": "|"}),
    "csv": ("{},t", "\n", {}),
    "csv over lines": ('{},"t"', "\n", {"file_format": "csv", "multi_line": True}),
    "xml": ("<r><a>{}</a><b>t</b></r>", "\n", {"row_tag": "r"}),
}


@pytest.fixture(params=FORMATS)
def text(request, tmp_path):
    """Write records with these values of `a`; returns the file, their texts and the options."""
    template, separator, options = FORMATS[request.param]

    def write(*values, name="file"):
        path = tmp_path / name
        bad = '"x"' if "json" in request.param else "x"
        texts = [template.format(bad if value == "x" else value) for value in values]
        path.write_text(separator.join(texts) + separator)
        return path, texts

    return write, {"file_format": request.param} | options


def test_failfast_names_file_and_byte(text):
    write, options = text
    path, texts = write(1, 2, "x", 3)
    place = sum(len(record) + 1 for record in texts[:2])
    with pytest.raises(MalformedDataError, match=re.escape(f"{path}, byte {place};")) as caught:
        read_rows([path], SCHEMA, **options)
    assert "FAILFAST" not in str(caught.value)
    assert "PERMISSIVE" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_dropped_records_are_counted_for_their_file(text):
    write, options = text
    splits = [whole(write(1, *["x"] * (n == 2), 2, name=str(n))[0]) for n in range(4)]
    table, reports = read(splits, SCHEMA, mode="DROPMALFORMED", **options)
    assert table["a"].to_pylist() == [1, 2] * 4
    assert [(r.rows, r.dropped_records) for r in reports] == [(2, 0), (2, 0), (2, 1), (2, 0)]


def test_permissive_keeps_the_text_and_what_fits_in_place(text):
    write, options = text
    path, texts = write(1, "x", 2)
    rows = read_rows([path], CORRUPT, mode="permissive", **options)
    assert [row["_corrupt_record"] for row in rows] == [None, texts[1], None]
    assert [(row["a"], row["b"]) for row in rows] == [(1, "t"), (None, "t"), (2, "t")]


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_rescued_value_makes_no_record_bad(text, mode):
    write, options = text
    path, _ = write(1, "x")
    schema = SCHEMA.append(pa.field("rest", pa.string()))
    rows = read_rows([path], schema, mode=mode, rescued_data_column="rest", **options)
    assert rows[0] == {"a": 1, "b": "t", "rest": None}
    assert (rows[1]["a"], json.loads(rows[1]["rest"])) == (None, {"a": "x"})


@pytest.mark.parametrize(
    "places", [[0], [3_999], [1_999, 2_000], range(0, 4_000, 7), range(1, 4_000)]
)
def test_only_the_bad_records_of_a_block_are_dropped(text, places):
    write, options = text
    bad = set(places)
    path, _ = write(*("x" if n in bad else n for n in range(4_000)))
    table, [report] = read([whole(path)], SCHEMA, mode="DROPMALFORMED", **options)
    assert table["a"].to_pylist() == [n for n in range(4_000) if n not in bad]
    assert report.dropped_records == len(bad)
