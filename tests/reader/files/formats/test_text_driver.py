"""A record that does not fit has the same outcome in CSV, JSON and XML, at any place of a file."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.tests.reader.files.reading import read, read_rows, whole

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
CORRUPT = SCHEMA.append(pa.field("_corrupt_record", pa.string()))
FORMATS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "json": ('{{"a":{},"b":"t"}}', "\n", {}),
    "json by another separator": (
        '{{"a":{},"b":"t"}}',
        "|",
        {"file_format": "json", "line_sep": "|"},
    ),
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
