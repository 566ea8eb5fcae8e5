"""A part ends at the record at which its budget is spent, and the next part goes on there."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import count, repeat

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.reader.api import (
    LeftOut,
    ReaderContext,
    RemainingBudget,
    SplitFinished,
    SplitUnfinished,
)
from pyspark_sluice.reader.files.formats.avro.format import _Blocks
from pyspark_sluice.reader.files.formats.csv.format import CsvFormat
from pyspark_sluice.reader.files.formats.json.format import JsonFormat
from pyspark_sluice.reader.files.formats.text.format import TextFormat
from pyspark_sluice.reader.files.formats.xml.format import XmlRows
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import read, whole
from pyspark_sluice.tests.reader.files.io.compressed_members import MEMBERS
from pyspark_sluice.tests.reader.files.parts import read_parts

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
CODECS = {
    "json": bytes,
    "json.deflate": MEMBERS["deflate"][1],
    "json.xz": MEMBERS["xz"][1],
    "json.snappy": MEMBERS["snappy"][1],
    "json.zst": MEMBERS["zstd"][1],
    "json.lz4": MEMBERS["lz4"][1],
}


def _lines(rows):
    chance = random.Random(1)
    texts = (f"{chance.getrandbits(200):x}" for _ in range(rows))
    return "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)).encode()


def _in_parts(path, schema=SCHEMA, *, most, **options):
    return list(read_parts([whole(path)], schema, repeat(PartBudget(rows=most), 99), **options))


def _ids(parts):
    return [row for table, _ in parts for row in table["id"].to_pylist()]


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [*((kind, "utf-8") for kind in CODECS), ("json.xz", "iso8859-1"), ("json", "utf-16")],
)
def test_every_codec_and_encoding_goes_on_with_the_next_row(tmp_path, kind, encoding):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(CODECS[kind](_lines(900).decode().encode(encoding)))
    parts = _in_parts(path, most=200, file_format="json", encoding=encoding)
    assert [table.num_rows for table, _ in parts] == [200, 200, 200, 200, 100]
    assert _ids(parts) == list(range(900))
    for _, (*_, report) in parts[:-1]:
        assert isinstance(report, SplitUnfinished)
        assert 0 <= report.remainder.length <= path.stat().st_size


@pytest.mark.parametrize("ending", [b"\r", b"\r\n", b"\n\n", b"\n  \n"])
def test_lines_may_end_in_any_way_or_hold_nothing(tmp_path, ending):
    path = tmp_path / "a.json"
    path.write_bytes(ending.join(b'{"id":%d}' % i for i in range(60)))
    parts = _in_parts(path, most=7, file_format="json")
    assert [table.num_rows for table, _ in parts] == [7] * 8 + [4]
    assert _ids(parts) == list(range(60))


@pytest.mark.parametrize("condition", ["id > 4000", "text = 'x5'"])
def test_a_filter_moves_no_end_into_another_row_group(tmp_path, condition):
    path = tmp_path / "a.parquet"
    table = pa.table({"id": range(5000), "text": [f"x{i % 10}" for i in range(5000)]}, SCHEMA)
    pq.write_table(table, path, row_group_size=700)
    expected = range(4001, 5000) if condition == "id > 4000" else range(5, 5000, 10)
    options = {"file_format": "parquet", "filter": condition, "batch_bytes": 65_536}
    parts = _in_parts(path, most=333, **options)
    assert _ids(parts) == list(expected)
    assert all(table.num_rows == 333 for table, _ in parts[:-1])


@pytest.mark.parametrize("suffix", ["json", "json.zst"])
def test_rows_are_numbered_on_in_the_next_part(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(CODECS[suffix](_lines(100)))
    schema = SCHEMA.append(pa.field("_metadata", pa.struct([("row_index", pa.int64())])))
    parts = _in_parts(path, schema, most=30, file_format="json")
    rows = [row for table, _ in parts for row in table.to_pylist()]
    assert [row["_metadata"]["row_index"] for row in rows] == list(range(100))


@pytest.mark.parametrize("multiline", [False, True])
@pytest.mark.parametrize("most", [7, 60])
def test_each_dropped_record_is_reported_by_one_part(tmp_path, multiline, most):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{i},x\n" if i % 3 else "bad,x\n" for i in range(90)))
    dropped, bad, ids = 0, [], []
    budgets = (PartBudget(rows=most) for _ in count())
    options = {"file_format": "csv", "mode": "DROPMALFORMED", "multi_line": multiline}
    options["bad_records_path"] = str(tmp_path / "bad")
    for table, reports in read_parts([whole(path)], SCHEMA, budgets, **options):
        ids += table["id"].to_pylist()
        for report in reports:
            if isinstance(report, LeftOut):
                bad += report.batch["position"].to_pylist()
            elif isinstance(report, SplitFinished | SplitUnfinished):
                dropped += report.dropped_records
    assert ids == [i for i in range(90) if i % 3]
    assert dropped == len(bad) == len(set(bad)) == 30


def test_small_files_are_packed_up_to_the_budget(tmp_path):
    for number in range(100):
        lines = (f"{number * 3 + i},x\n" for i in range(3))
        (tmp_path / f"{number:04}.csv").write_text("".join(lines))
    splits = [whole(path) for path in sorted(tmp_path.iterdir())]
    parts = list(read_parts(splits, SCHEMA, repeat(PartBudget(rows=70), 99), file_format="csv"))
    assert [table.num_rows for table, _ in parts] == [70, 70, 70, 70, 20]
    assert _ids(parts) == list(range(300))


@pytest.mark.parametrize("suffix", ["json", "json.zst"])
def test_a_part_ends_within_a_file_when_its_bytes_are_spent(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(CODECS[suffix](_lines(15_000)))
    budgets = repeat(PartBudget(bytes=path.stat().st_size // 4), 99)
    options = {"file_format": "json", "batch_bytes": 65_536}
    parts = list(read_parts([whole(path)], SCHEMA, budgets, **options))
    assert _ids(parts) == list(range(15_000))
    assert len(parts) >= 3


def test_a_part_ends_after_its_first_record_when_its_time_is_over(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(_lines(30_000))
    options = ReaderOptions(file_format="json", batch_bytes=65_536)
    now = iter(range(0, 10_000, 2))
    budget = RemainingBudget(PartBudget(seconds=5.0), lambda: float(next(now)))
    context = ReaderContext(1, 0, 0, budget=budget)
    *batches, report = FileSplitReader(SCHEMA, options, context).read([whole(path)])
    assert isinstance(report, SplitUnfinished)
    assert 0 < sum(batch.num_rows for batch in batches) < 20_000


def test_an_array_on_one_line_is_one_record(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"id":0},{"id":1},{"id":2}]\n[{"id":3},{"id":4}]\n')
    parts = _in_parts(path, most=2, file_format="json")
    assert [table["id"].to_pylist() for table, _ in parts] == [[0, 1, 2], [3, 4]]


def _write(path, kind, ids):
    if kind == "avro":
        fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
        with path.open("wb") as out:
            schema = {"type": "record", "name": "r", "fields": fields}
            rows = ({"id": i, "text": f"x{i % 10}"} for i in ids)
            fastavro.writer(out, schema, rows, sync_interval=100)
        return
    line = {
        "json": '{"id":%d,"text":"x%d"}\n',
        "csv": "%d,x%d\n",
        "text": "%d x%d\n",
        "xml": "<row><id>%d</id><text>x%d</text></row>\n",
    }[kind]
    path.write_text("".join(line % (i, i % 10) for i in ids))


def _lines_in(data, _source):
    return data.count(b"\n")


_PARSERS: dict[str, tuple[type, str, Callable[..., int]]] = {
    "json": (JsonFormat, "parse", _lines_in),
    "csv": (CsvFormat, "parse", _lines_in),
    "text": (TextFormat, "parse", _lines_in),
    "xml": (XmlRows, "of_record", lambda *_: 1),
    "avro": (_Blocks, "_batch", len),
}
"""Method that decodes each format, and the number of records in its arguments."""


@pytest.mark.parametrize(
    ("kind", "options", "most"),
    [
        *((kind, {}, 1.3) for kind in _PARSERS),
        *((kind, {"filter": "text = 'x5'"}, 1.4) for kind in _PARSERS if kind != "text"),
    ],
)
def test_little_is_decoded_that_the_part_has_no_room_for(
    tmp_path, monkeypatch, kind, options, most
):
    path, decoded = tmp_path / f"a.{kind}", [0]
    _write(path, kind, range(6_000))
    owner, name, count = _PARSERS[kind]
    decode = getattr(owner, name)

    def counting(self, *arguments):
        decoded[0] += count(*arguments)
        return decode(self, *arguments)

    monkeypatch.setattr(owner, name, counting)
    schema = SCHEMA if kind != "text" else pa.schema([("value", pa.string())])
    options = {"file_format": kind, "row_tag": "row", **options}
    budgets, left, rows = repeat(PartBudget(rows=95), 999), [whole(path)], 0
    for budget in budgets:
        context = ReaderContext(1, 0, 0, budget=RemainingBudget(budget))
        table, reports = read(left, schema, context, **options)
        rows += table.num_rows
        left = [r.remainder for r in reports if isinstance(r, SplitUnfinished)]
        if not left:
            break
    assert rows == (600 if "filter" in options else 6_000)
    assert decoded[0] / 6_000 < most
