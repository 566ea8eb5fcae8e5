"""However a file is cut and however large blocks are, the rows are those of the whole file."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.reader.api import SplitFinished
from pyspark_sluice.reader.files.formats import record_format
from pyspark_sluice.tests.reader.files.reading import cut, read, whole

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
VALUE = pa.schema([("value", pa.string())])

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)
rows = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.none() | texts,
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=40,
)
borders = st.lists(st.integers(1, 3000), max_size=12)
steps = st.sampled_from([7, 31, 100, 1 << 20])
endings = st.sampled_from(["\n", "\r\n"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuts")


def _check(
    path: Path, schema: pa.Schema, points: list[int], step: int, expected: Any, **options: Any
) -> None:
    before = record_format.BLOCK_BYTES
    record_format.BLOCK_BYTES = step
    try:
        splits = cut(path, points)
        table, reports = read(splits, schema, **options)
    finally:
        record_format.BLOCK_BYTES = before
    assert table.to_pylist() == expected
    assert [r.split_id for r in reports] == [s.split_id for s in splits]
    assert sum(r.rows for r in reports if isinstance(r, SplitFinished)) == len(expected)


@given(rows, borders, steps, endings, st.booleans())
def test_json_lines_are_read_once_at_every_cut(folder, table, points, step, ending, is_ended):
    lines = [json.dumps({"id": i, "name": n, "x": x}, ensure_ascii=False) for i, n, x in table]
    data = ending.join(lines) + (ending if is_ended and lines else "")
    path = folder / "rows.json"
    path.write_text(data, newline="", encoding="utf-8")
    expected = [{"id": i, "name": n, "x": x} for i, n, x in table]
    _check(path, SCHEMA, points, step, expected)


@given(rows, borders, steps, endings, st.booleans())
def test_csv_is_read_once_at_every_cut(folder, table, points, step, ending, header):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=ending)
    if header:
        writer.writerow(SCHEMA.names)
    writer.writerows(table)
    path = folder / "rows.csv"
    path.write_text(out.getvalue(), newline="", encoding="utf-8")
    expected = [{"id": i, "name": n or None, "x": x} for i, n, x in table]
    options = {"file_format": "csv", "header": header, "escape": '"'}
    _check(path, SCHEMA, points, step, expected, **options)


line_texts = st.text(st.sampled_from('ab,"\\ ä\n\r'), max_size=20)


@given(st.lists(st.tuples(line_texts, line_texts), max_size=20), steps)
def test_csv_with_line_breaks_in_quotes(folder, table, step):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    path = folder / "lines.csv"
    path.write_text(out.getvalue(), newline="", encoding="utf-8")
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])

    # As in Spark the first line break of the file, quoted or not, is the one it goes by.
    found = re.search("\r\n|\r|\n", out.getvalue())
    line_break = found[0] if found else "\n"

    def read_back(text: str) -> str | None:
        return text.replace(line_break, "\n") or None

    expected = [{"a": read_back(a), "b": read_back(b)} for a, b in table]
    options = {"file_format": "csv", "multi_line": True, "escape": '"'}
    _check(path, schema, [], step, expected, **options)


@given(st.lists(texts, max_size=40), borders, steps, st.sampled_from(["\n", "\r\n", "|", "|~|"]))
def test_text_is_read_once_at_every_cut(folder, lines, points, step, separator):
    lines = [line.replace("|", "").replace("~", "") for line in lines]
    path = folder / "lines.txt"
    path.write_text("".join(line + separator for line in lines), newline="", encoding="utf-8")
    options = {"file_format": "text"} | ({"line_sep": separator} if "|" in separator else {})
    # A separator that overlaps itself must not be cut; the driver never does.
    points = [] if separator == "|~|" else points
    _check(path, VALUE, points, step, [{"value": line} for line in lines], **options)


@given(st.lists(rows, max_size=8), st.booleans())
def test_packed_files_give_the_rows_and_the_names_of_each_file(folder, tables, is_ended):
    splits, expected = [], []
    schema = SCHEMA.append(pa.field("_metadata", pa.struct([("file_name", pa.string())])))
    for number, table in enumerate(tables):
        path = folder / f"packed-{number}.json"
        lines = [json.dumps({"id": i, "name": n, "x": x}) for i, n, x in table]
        path.write_text("\n".join(lines) + ("\n" if is_ended else ""), encoding="utf-8")
        splits.append(whole(path))
        place = {"file_name": path.name}
        expected += [{"id": i, "name": n, "x": x, "_metadata": place} for i, n, x in table]
    table, reports = read(splits, schema)
    assert table.to_pylist() == expected
    assert [(r.split_id, r.rows) for r in reports] == [
        (split.split_id, len(table)) for split, table in zip(splits, tables, strict=True)
    ]
