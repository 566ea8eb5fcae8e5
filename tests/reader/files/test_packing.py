"""Small files that are parsed together give what each of them gives alone."""

from __future__ import annotations

import codecs
import gzip

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.files.reading import read, read_rows, whole

BODIES = {"csv": b"1,x\n2,y\n", "json": b'{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n', "text": b"x\ny\n"}
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
VALUE = pa.schema([("value", pa.string())])


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("name", BODIES)
def test_byte_order_marks_of_packed_files_are_left_out(tmp_path, name, mode):
    schema = VALUE if name == "text" else SCHEMA
    paths = [tmp_path / f"{number}.{name}" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_bytes(codecs.BOM_UTF8 * (number % 2) + BODIES[name])
    paths.append(tmp_path / f"mark.{name}")
    paths[-1].write_bytes(codecs.BOM_UTF8)
    options = {"file_format": name, "mode": mode}
    alone = [row for path in paths for row in read_rows([path], schema, **options)]
    assert read_rows(paths, schema, **options) == alone
    assert alone == alone[:2] * 4


def test_a_filter_on_a_partition_column_takes_no_row_of_a_packed_run_with_headers(tmp_path):
    paths = [tmp_path / f"day={day}" / "a.csv" for day in range(3)]
    for day, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(f"a,b\n{day},x\n{day},y\n")
    schema = SCHEMA.append(pa.field("day", pa.int64()))
    splits = [whole(path) for path in paths]
    table, reports = read(splits, schema, file_format="csv", header=True, filter="day < 2")
    assert table.to_pylist() == [{"a": d, "b": b, "day": d} for d in range(2) for b in "xy"]
    assert [report.rows for report in reports] == [2, 2, 0]


def test_the_first_of_many_headers_may_follow_comments(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.csv").write_bytes(b"# made by hand\n" * number + b"a,b\n1,x\n")
    paths = sorted(tmp_path.iterdir())
    rows = read_rows(paths, SCHEMA, file_format="csv", header=True, comment="#")
    assert rows == [{"a": 1, "b": "x"}] * 3


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.txt", codecs.BOM_UTF8 + b"x\ny\n", ["\ufeffx\ny\n"]),
        ("without bytes.txt", b"", []),
        ("without content.txt.gz", gzip.compress(b"", mtime=0), [""]),
    ],
)
def test_a_whole_file_is_one_text_with_its_byte_order_mark(tmp_path, name, content, texts):
    path = tmp_path / name
    path.write_bytes(content)
    rows = read_rows([path], VALUE, file_format="text", wholetext=True)
    assert [row["value"] for row in rows] == texts
