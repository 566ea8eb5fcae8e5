"""What comes before the records of CSV: the lines that `skipRows` leaves out, and the header.

A name that comes twice is refused, and another order is never read by position.
"""

from __future__ import annotations

import bz2
import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.errors import MalformedDataError, SchemaMismatchError
from pyspark_sluice.reader.files.formats.csv.format import CsvFormat
from pyspark_sluice.reader.files.formats.records import record_format
from pyspark_sluice.reader.files.io.compressed import bzip2
from pyspark_sluice.reader.files.io.cut_places import KNOWN_CONTENT_BYTES
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import cut, read, read_rows, version, whole
from pyspark_sluice.tests.reader.files.parts import read_parts

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
ODD = ['Report of "today', "", "# a remark", "a,b,c,d", "   ", "\u2603 snow", '"open', "1,2"]
"""Lines of a preamble in which nothing has the meaning that it has in records."""

HEADER = {"header": True, "enforce_schema": False}
WAYS: dict[str, dict[str, Any]] = {
    "position": {},
    "header": {"header": True},
    "header by name": HEADER,
    "comments": {"comment": "#", "header": True},
    "multiLine": {"multi_line": True, **HEADER},
    "multiLine without header": {"multi_line": True},
    "exact": {"mode": "PERMISSIVE", **HEADER},
    "separator": {"line_sep": "\r\n", **HEADER},
    "another separator": {"line_sep": "|~", **HEADER},
    "UTF-16": {"encoding": "utf-16", **HEADER},
    "UTF-16, multiLine": {"encoding": "utf-16", "multi_line": True},
}


def _text(lines: list[str], options: dict[str, Any]) -> bytes:
    separator = options.get("line_sep", "\n")
    return "".join(line + separator for line in lines).encode(options.get("encoding", "utf-8"))


def _records(options: dict[str, Any], count: int = 40) -> list[str]:
    header = ["name,id"] if options.get("enforce_schema") is False else ["id,name"]
    by_name = header == ["name,id"]
    rows = [f"n{i},{i}" if by_name else f"{i},n{i}" for i in range(count)]
    if options.get("mode") == "PERMISSIVE":
        rows[7] = "n7,seven"
    return (header if options.get("header") else []) + rows


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [1, len(ODD)])
def test_every_parser_reads_what_follows_the_lines(tmp_path, way, count):
    options = WAYS[way]
    plain, path = tmp_path / "plain.csv", tmp_path / "preamble.csv"
    plain.write_bytes(_text(_records(options), options))
    path.write_bytes(_text([*ODD[:count], *_records(options)], options))
    expected = read_rows([plain], SCHEMA, file_format="csv", **options)
    assert len(expected) == 40
    cannot_be_cut = "multi_line" in options or "encoding" in options
    splits = [whole(path)] if cannot_be_cut else cut(path, [3, 30, 31, 90, 200])
    table, _ = read(splits, SCHEMA, file_format="csv", skip_rows=count, **options)
    assert table.to_pylist() == expected


@pytest.mark.parametrize("options", [{}, {"header": True}, HEADER], ids=str)
def test_small_files_that_are_parsed_together_lose_the_lines_of_each(tmp_path, options):
    paths = [tmp_path / f"{i}.csv" for i in range(4)]
    for number, path in enumerate(paths):
        mark = b"\xef\xbb\xbf" if number == 1 else b""
        lines = [*ODD[number : number + 2], *_records(options, 5)]
        # One has no more lines than are left out, and one ends within them.
        lines = lines[: {2: 2, 3: 1}.get(number, len(lines))]
        path.write_bytes(mark + _text(lines, {}).rstrip(b"\n" if number == 3 else b""))
    table, reports = read(
        [whole(p) for p in paths], SCHEMA, file_format="csv", skip_rows=2, **options
    )
    assert [report.rows for report in reports] == [5, 5, 0, 0]
    assert table.column("id").to_pylist() == [0, 1, 2, 3, 4] * 2


@pytest.mark.parametrize("breaks", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("multi_line", [False, True])
def test_any_line_break_ends_a_line_that_is_left_out(tmp_path, breaks, multi_line):
    path = tmp_path / "a.csv"
    path.write_bytes(f'x{breaks}{breaks}"y{breaks}1,a{breaks}2,b{breaks}'.encode())
    rows = read_rows([path], SCHEMA, file_format="csv", skip_rows=3, multi_line=multi_line)
    assert rows == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20), max_size=8),
    st.lists(st.integers(1, 400), max_size=6),
    st.sampled_from([7, 31, 1 << 20]),
    st.booleans(),
)
def test_lines_of_any_text_are_left_out_at_any_cut_of_the_file(
    tmp_path_factory, lines, points, step, header
):
    folder = tmp_path_factory.mktemp("skip")
    path = folder / "a.csv"
    options: dict[str, Any] = HEADER if header else {}
    path.write_bytes(_text([*lines, *_records(options, 12)], options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_format, "BLOCK_BYTES", step)
        splits = cut(path, points)
        table, _ = read(splits, SCHEMA, file_format="csv", skip_rows=len(lines), **options)
    assert table.column("id").to_pylist() == list(range(12))


@pytest.mark.parametrize("options", [{}, HEADER], ids=str)
def test_they_are_left_out_once_in_a_compressed_file_that_is_cut(tmp_path, monkeypatch, options):
    monkeypatch.setattr(bzip2, "NEAR_START_BYTES", 1000)
    path, draw = tmp_path / "a.csv.bz2", Random(1).randbytes
    records = [
        re.sub("n[0-9]+", lambda _: draw(150).hex(), line) for line in _records(options, 3000)
    ]
    lines = ODD * 20
    path.write_bytes(bz2.compress(_text([*lines, *records], {}), 1))
    usual = {"file_format": "csv", "skip_rows": len(lines), **options}
    table, _ = read(cut(path, [900, 100_000, 300_000]), SCHEMA, **usual)
    assert table.column("id").to_pylist() == list(range(3000))
    path.write_bytes(bz2.compress(b"x" * KNOWN_CONTENT_BYTES + b"\n" + _text(records, {}), 1))
    usual["skip_rows"] = 1
    assert len(read_rows([path], SCHEMA, **usual)) == 3000
    with pytest.raises(MalformedDataError, match=r"a\.csv\.bz2, byte 92160\d .*skipRows"):
        read(cut(path, [path.stat().st_size // 2]), SCHEMA, **usual)


def test_inference_and_the_names_of_columns_begin_behind_them(tmp_path):
    path = tmp_path / "a.csv"
    # The lines are more than what is looked at for the schema.
    path.write_text("".join(["x" * 100 + ',"\n'] * 50 + ["# remark\n", "id,name\n", "1,a\n"]))
    for multi_line in (False, True):
        options = ReaderOptions(
            file_format="csv", header=True, skip_rows=50, comment="#", multi_line=multi_line,
            infer_column_types=True,
        )  # fmt: skip
        found = CsvFormat.columns_of(version(path), options, 1024)
        assert pa.schema(list(found)).names == ["id", "name"]
        assert found.field("name").type == pa.string()


def test_what_is_not_left_out_is_still_judged(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("one\ntwo\nid\n1,a\n")
    with pytest.raises(SchemaMismatchError, match=r"a\.csv"):
        read_rows([path], SCHEMA, file_format="csv", skip_rows=2, **HEADER)
    path.write_text("one\n1,a\nx,b\n")
    with pytest.raises(MalformedDataError, match=r"a\.csv, byte 8"):
        read_rows([path], SCHEMA, file_format="csv", skip_rows=1)


RESCUED = pa.schema([("id", pa.int64()), ("n", pa.string()), ("_rescued", pa.string())])
TWICE = {
    "twice": "id,n,n",
    "in another case": "id,N,n",
    "blanks around it": "id, n,n ",
    "unknown, twice": "id,x,x",
    "the name that an empty one gets": "id,_c2,",
}


def _file(folder: Path, header: str, name: str = "a.csv", *records: str) -> Path:
    path = folder / name
    path.write_text("\n".join((header, *(records or ("1,x,y", "2,,z")))) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("header", TWICE.values(), ids=list(TWICE))
@pytest.mark.parametrize("more", [{}, {"multi_line": True}, {"rescued_data_column": "_rescued"}])
@pytest.mark.parametrize("odd", ["", '9,a"b,c'], ids=["fast path", "exact path"])
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_columns_by_name_refuse_a_header_that_names_one_twice(tmp_path, header, more, odd, mode):
    path = _file(tmp_path, header, "a.csv", "1,x,y", odd)
    options: dict[str, Any] = {"file_format": "csv", "mode": mode, **HEADER, **more}
    schema = pa.schema([*RESCUED][: 3 if "rescued_data_column" in more else 2])
    for paths in ([path], [_file(tmp_path, "id,n,m", "good.csv"), path]):
        with pytest.raises(SchemaMismatchError, match="names a column twice") as raised:
            read_rows(paths, schema, **options)
        assert str(path) in str(raised.value)


def test_columns_by_position_read_it_as_spark_does_and_inference_refuses_it(tmp_path):
    path = _file(tmp_path, "id,n,N")
    rows = read_rows([path], RESCUED, file_format="csv", header=True)
    assert [tuple(row.values()) for row in rows] == [(1, "x", "y"), (2, None, "z")]
    with pytest.raises(SchemaMismatchError, match=r"twice: .*a\.csv.*found 'id', 'n', 'N'"):
        CsvFormat.columns_of(version(path), ReaderOptions(file_format="csv", header=True), 1000)


ORDERED = pa.schema([("id", pa.int64()), ("qty", pa.int64()), ("price", pa.int64())])
SWAPPED = {"all": "price,id,qty", "one more": "x,id,qty,price", "one less": "price,x"}
BY_POSITION = [{"mode": mode} for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")]
BY_POSITION.append({"mode": "DROPMALFORMED", "bad_records_path": "bad"})


@pytest.mark.parametrize("header", SWAPPED.values(), ids=list(SWAPPED))
@pytest.mark.parametrize("given", BY_POSITION)
@pytest.mark.parametrize("more", [{}, {"multi_line": True}])
def test_another_order_is_refused_in_every_mode_that_reads_by_position(
    tmp_path, header, given, more
):
    path = _file(tmp_path, header, "a.csv", "30,10,20")
    good = _file(tmp_path, "ID,other,price", "good.csv", "1,2,3")
    options: dict[str, Any] = {"file_format": "csv", "header": True, **given, **more}
    [row] = read_rows([good], ORDERED, **options)
    assert row == {"id": 1, "qty": 2, "price": 3}, "other names are read by position"
    for paths in ([path], [good, path]):
        with pytest.raises(SchemaMismatchError, match="does not fit the schema") as raised:
            read_rows(paths, ORDERED, **options)
        assert str(path) in str(raised.value)


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("more", [{}, {"multi_line": True}])
@pytest.mark.parametrize("rescue", [{}, {"schema_evolution_mode": "rescue"}])
def test_with_a_rescued_data_column_the_header_names_the_columns(tmp_path, mode, more, rescue):
    paths = [
        _file(tmp_path, "id,qty,price", "1.csv", "1,2,3"),
        _file(tmp_path, "price,id,qty", "2.csv", "30,10,20"),
        _file(tmp_path, "new,price,ID", "3.csv", "x,300,100", "y,bad,200"),
    ]
    schema = ORDERED.append(pa.field("_r", pa.string()))
    options = {"file_format": "csv", "header": True, "rescued_data_column": "_r", "mode": mode}
    rows = read_rows(paths, schema, **options, **more, **rescue)
    assert [tuple(row.values()) for row in rows] == [
        (1, 2, 3, None),
        (10, 20, 30, None),
        (100, None, 300, '{"new":"x"}'),
        (200, None, None, '{"new":"y","price":"bad"}'),
    ]


@pytest.mark.parametrize(("cuts", "opened"), [([], 1), ([50_000], 3)])
def test_a_split_opens_its_file_again_for_the_header_only_if_it_begins_later(
    tmp_path, monkeypatch, cuts, opened
):
    path, opening, count = tmp_path / "a.csv", SourceFile.opened, 0
    path.write_text("a remark\nid,name\n" + "".join(f"{i},n{i}\n" for i in range(9_000)))

    def counted(self):
        nonlocal count
        count += 1
        return opening(self)

    monkeypatch.setattr(SourceFile, "opened", counted)
    splits = cut(path, cuts) if cuts else [whole(path)]
    table, _ = read(splits, SCHEMA, file_format="csv", header=True, skip_rows=1)
    assert table.column("id").to_pylist() == list(range(9_000))
    assert count == opened


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig"])
@pytest.mark.parametrize("suffix", ["", ".bz2"])
def test_what_precedes_records_is_counted_in_bytes_of_the_file(tmp_path, encoding, suffix):
    path, rows = tmp_path / f"a.csv{suffix}", [f"{i},\n" for i in range(9)]
    text = "".join(["# \u00e4\u00f6\u00fc\n", "id,name," + "\u00df" * 20 + "\n", *rows])
    data = text.encode(encoding)
    border = data.index(b"\n0")
    streams = [bz2.compress(data[:border]), bz2.compress(data[border:])]
    path.write_bytes(b"".join(streams) if suffix else data)
    options: dict[str, Any] = {**HEADER, "file_format": "csv", "encoding": encoding}
    options |= {"comment": "#", "mode": "PERMISSIVE"}
    for splits in ([whole(path)], *(cut(path, [at]) for at in range(1, path.stat().st_size))):
        table, _ = read(splits, SCHEMA, **options)
        assert table.column("id").to_pylist() == list(range(9)), splits
    parts = read_parts([whole(path)], SCHEMA, [PartBudget(rows=1)] * 9, **options)
    assert [table.column("id").to_pylist() for table, _ in parts] == [[i] for i in range(9)]


def test_the_beginning_of_a_block_in_which_the_header_is_looked_for_ends_with_a_record(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(CsvFormat, "piece_bytes", 1)
    path = tmp_path / "a.csv"
    path.write_bytes(b"the\nid,name|~0,n|~1,n|~")
    schema = pa.schema([("the\nid", pa.int64()), ("name", pa.string())])
    rows = read_rows([path], schema, file_format="csv", header=True, line_sep="|~")
    assert [row["the\nid"] for row in rows] == [0, 1]
