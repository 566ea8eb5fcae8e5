"""What the exact path of CSV owes to memory, time and poison, and separators of lines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.reader.files.formats.records import driver, record_format
from pyspark_sluice.reader.files.testing import cut, read, read_rows, whole

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string())])
MULTI: dict[str, Any] = {"file_format": "csv", "multi_line": True, "mode": "PERMISSIVE"}


def _seconds(path: Path, times: int) -> float:
    # An escape in every other record keeps the fast path out.
    path.write_bytes(b'"a\\"b\nc",x\n"d\ne",y\n' * (times * 2_000))
    began = time.process_time()
    table, _ = read([whole(path)], SCHEMA, **MULTI)
    assert table.num_rows == times * 4_000
    return time.process_time() - began


def test_records_over_lines_take_time_in_proportion_to_their_bytes(tmp_path):
    small, large = _seconds(tmp_path / "a.csv", 1), _seconds(tmp_path / "a.csv", 4)
    assert large < 8 * small


def test_one_record_of_many_blocks_is_read_in_proportion_too(tmp_path):
    path = tmp_path / "a.csv"
    text = "line\n" * 4_000_001
    path.write_text(f'"{text}",x\n1,2\n')
    began = time.process_time()
    rows = read_rows([path], SCHEMA, **MULTI)
    assert rows == [{"a": text, "b": "x"}, {"a": "1", "b": "2"}]
    assert time.process_time() - began < 20


@pytest.mark.parametrize(("separator", "first"), [("|", ""), ("\r\n", ""), ("|~", ""), ("||", "|")])
def test_line_feeds_within_records_make_no_row_in_any_piece(
    tmp_path, monkeypatch, separator, first
):
    monkeypatch.setattr(driver.TextParser, "piece_bytes", 100)
    path = tmp_path / "a.csv"
    # Of many lengths, so that some pieces end within three bars.
    records = [f"{first}{number},{'x' * (number % 7)}\ny" for number in range(3_000)]
    path.write_text(separator.join(records), newline="")
    # A file whose separator overlaps itself is read as a whole.
    splits = [whole(path)] if first else cut(path, [7_000, 15_000])
    table, _ = read(splits, SCHEMA, file_format="csv", line_sep=separator)
    assert [f"{row['a']},{row['b']}" for row in table.to_pylist()] == records


def test_the_header_may_follow_any_number_of_comments(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"# a comment\n" * 20_000 + b"a,b\n1,2\n")
    options: dict[str, Any] = {"file_format": "csv", "header": True, "comment": "#"}
    splits = cut(path, [1000, 100_000, 240_002, 240_003])
    assert read(splits, SCHEMA, **options)[0].to_pylist() == [{"a": "1", "b": "2"}]


def test_a_poison_record_is_one_bad_record(tmp_path):
    path = tmp_path / "a.csv"
    schema = pa.schema([("a", pa.int64()), ("b", pa.decimal128(38, 0))])
    corrupt = schema.append(pa.field("_corrupt_record", pa.string()))
    poison = ["9" * 5000 + ",1", "1,1e999999999", "1," + "9" * 5000, '"a"' + '"\\' * 9000 + ",1"]
    path.write_text("\n".join(["1,2", *poison, "3,4"]))
    for multi_line in (False, True):
        options = {"file_format": "csv", "multi_line": multi_line}
        rows = read_rows([path], corrupt, mode="PERMISSIVE", **options)
        assert [row["_corrupt_record"] for row in rows] == [None, *poison, None]
    rows = read_rows([path], schema, file_format="csv", mode="DROPMALFORMED")
    assert [row["a"] for row in rows] == [1, 3]


MARK = "\ufeff".encode()


@pytest.mark.parametrize("odd", [b"", b'x"y\n'], ids=["clean", "beside an odd record"])
@pytest.mark.parametrize("multi_line", [False, True])
def test_a_byte_order_mark_behind_the_beginning_is_text_in_every_block(
    tmp_path, monkeypatch, odd, multi_line
):
    records = [b"%s%dv\n" % (MARK, n) for n in range(5000)]
    path = tmp_path / "a.csv"
    # At the end two lines of nothing but marks.
    path.write_bytes(MARK + b"a\n" + odd + b"".join(records) + MARK + b"\n" + MARK * 2 + b"\n")
    monkeypatch.setattr(record_format, "BLOCK_BYTES", 1000)
    borders = [] if multi_line else [1000 * n for n in range(1, 30)]
    options = {"file_format": "csv", "header": True, "multi_line": multi_line}
    table, _ = read(cut(path, borders), pa.schema([("a", pa.string())]), **options)
    texts = [*(f"\ufeff{n}v" for n in range(5000)), "\ufeff", "\ufeff\ufeff"]
    assert table["a"].to_pylist()[bool(odd) :] == texts
