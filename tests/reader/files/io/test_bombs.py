"""Files of a few bytes that expand to gigabytes: read within the bound, or refused by name."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc, orc

from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.avro.container import encoded
from pyspark_sluice.reader.files.io.memory_bounds import held_at_most
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import read, whole
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.reader.files.formats.table_files import write_table

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("a", pa.string())])
LONG = "x" * 50_000
ROWS = 12_000
SHORT = 2_000
"""Rows that come first, of which nobody would guess how long the others are."""

_READ = """
import json, os, sys
import pyarrow as pa
from pathlib import Path
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import CONTEXT, whole

options, schema = json.loads(sys.argv[3]), pa.schema([("a", pa.string())])

def peak():
    # Not getrusage: its figure begins with what the process had that started this one. A child
    # lives as long as its reader.
    task = f"/proc/self/task/{os.getpid()}/children"
    found = []
    for pid in ("self", *Path(task).read_text().split()):
        status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
        found.append(int(status["VmHWM"].split()[0]) * 1024)
    return max(found)

def drain(path):
    error, rows = "", 0
    reader = FileSplitReader(schema, ReaderOptions(**options), CONTEXT)
    try:
        for item in reader.read([whole(Path(path))]):
            rows += item.num_rows if isinstance(item, pa.RecordBatch) else 0
    except MalformedDataError as err:
        error = str(err)
    return peak(), rows, error

before, *_ = drain(sys.argv[1])
most, *outcome = drain(sys.argv[2])
print(json.dumps([most - before, *outcome]))
"""


def _dictionary():
    numbers = pa.array([0] * SHORT + [1] * ROWS, pa.int32())
    return pa.DictionaryArray.from_arrays(numbers, pa.array(["r", LONG]))


def parquet_dictionary(path: Path) -> None:
    pq.write_table(pa.table({"a": _dictionary()}), path, store_schema=False)


def parquet_pages(path: Path, **how: Any) -> None:
    how |= {"compression": "zstd", "use_dictionary": False, "write_batch_size": 16}
    with pq.ParquetWriter(path, SCHEMA, **how) as out:
        out.write_batch(pa.record_batch({"a": ["r"] * 100 * SHORT}), 1 << 30)
        for _ in range(ROWS // 1000):
            out.write_batch(pa.record_batch({"a": [LONG] * 1000}), 1 << 30)


def parquet_deltas(path: Path) -> None:
    parquet_pages(path, column_encoding={"a": "DELTA_BYTE_ARRAY"})


def orc_dictionary(path: Path) -> None:
    with orc.ORCWriter(str(path), dictionary_key_size_threshold=1.0, compression="zstd") as out:
        out.write(pa.table({"a": ["r"] * SHORT}))
        for _ in range(ROWS // 1000):
            out.write(pa.table({"a": [LONG] * 1000}))


def arrow_file(path, column, **how):
    with ipc.new_file(str(path), pa.schema([("a", column.type)]), **how) as out:
        out.write(pa.record_batch({"a": column}))


def arrow_views(path: Path) -> None:
    one = pa.array([LONG], pa.string_view()).buffers()
    views = np.tile(np.frombuffer(one[1], np.uint8), ROWS)
    column = pa.Array.from_buffers(pa.string_view(), ROWS, [None, pa.py_buffer(views), one[2]])
    arrow_file(path, column)


def arrow_stream(path: Path) -> None:
    how = ipc.IpcWriteOptions(compression="lz4")
    with ipc.new_stream(str(path), SCHEMA, options=how) as out:
        out.write(pa.record_batch({"a": ["r"]}))
        out.write(pa.record_batch({"a": [LONG] * (ROWS // 2)}))


def avro_block(path: Path) -> None:
    fields = [{"name": "a", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    with path.open("wb") as out:
        long = ({"a": LONG} for _ in range(ROWS // 2))
        fastavro.writer(out, schema, long, codec="deflate", sync_interval=1 << 40)


def avro_claiming(field, rows, data=b""):
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": [field]}, [])
    head = out.getvalue()
    return head + encoded(rows) + encoded(len(data)) + data + head[-16:]


def without_end(path: Path) -> None:
    """A record of text that goes on to the end of the file."""
    path.write_bytes(gzip.compress(b'{"a":"' + b"x" * 24_000_000))


def xml_record_without_end(path: Path) -> None:
    path.write_bytes(b"<rows><ROW>" + b"<x>some text</x>" * 4_000_000)


def xml_attributes(path: Path) -> None:
    path.write_bytes(b"<rows><ROW>" + b"<a k=''/>" * 800_000 + b"</ROW></rows>")


@dataclass(frozen=True)
class Outcome:
    """How a process read a bomb, which had read a short file of the same format before."""

    grown: int
    """Bytes of it, or of its child."""

    rows: int
    error: str


def outcome(
    folder: Path, write: Callable[[Path], object], options: dict[str, Any], suffix: str = ""
) -> Outcome:
    """The outcome of reading what `write` writes."""
    name = options["file_format"]
    small, bomb = folder / f"small.{name}", folder / f"bomb{suffix}"
    write_table(name, small, pa.table({"a": ["r"]}))
    write(bomb)
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(small), str(bomb), json.dumps(options)],
        check=True, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    return Outcome(*json.loads(done.stdout))


BOUNDED = {"parquet": [parquet_dictionary, parquet_pages, parquet_deltas], "arrow": [arrow_views]}
REFUSED = {
    "orc": [orc_dictionary],
    "arrow": [arrow_stream],
    "avro": [avro_block],
    "xml": [xml_record_without_end, xml_attributes],
}


@pytest.mark.sample("arrow_views", why="the same bound in larger files")
@pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, made in BOUNDED.items() for write in made]
)
def test_values_that_are_stored_once_and_named_often_are_read_within_the_bound(
    tmp_path, name, write
):
    found = outcome(tmp_path, write, _options(name))
    assert not found.error
    assert found.rows >= ROWS
    assert found.grown < held_at_most(ReaderOptions(**_options(name)))


@pytest.mark.sample("arrow_stream", why="the same bound in larger files")
@pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, made in REFUSED.items() for write in made]
)
def test_what_has_to_be_decoded_at_once_and_swells_is_refused_by_name(tmp_path, name, write):
    found = outcome(tmp_path, write, _options(name))
    assert f"{tmp_path}/bomb, " in found.error
    assert "set maxRecordBytes" in found.error
    assert found.grown < held_at_most(ReaderOptions(**_options(name)))


def test_compressed_text_without_an_end_is_refused_by_name(tmp_path):
    found = outcome(tmp_path, without_end, _options("json"), ".gz")
    assert f"{tmp_path}/bomb.gz, byte 0;" in found.error
    assert "set maxRecordBytes" in found.error
    assert found.grown < held_at_most(ReaderOptions(**_options("json")))


def test_rows_of_avro_that_take_no_bytes_are_not_decoded_one_by_one(tmp_path, monkeypatch):
    path = tmp_path / "a.avro"
    count = 30_000_000
    path.write_bytes(avro_claiming({"name": "a", "type": "null"}, count))
    decoded = []
    iterate = fastavro.block_reader

    def counting(stream, **how):
        for block in iterate(stream, **how):
            decoded.append(block.num_records)
            yield block

    monkeypatch.setattr(fastavro, "block_reader", counting)
    table, _ = read([whole(path)], SCHEMA, file_format="avro")
    assert (table.num_rows, table.column("a").null_count) == (count, count)
    assert decoded == [1]


def test_arrays_of_avro_whose_elements_take_no_bytes_are_refused(tmp_path):
    path = tmp_path / "a.avro"
    nothing = {"type": "record", "name": "n", "fields": [{"name": "x", "type": "null"}]}
    for items in ("null", nothing, {"type": "fixed", "name": "f", "size": 0}):
        kind = {"type": "array", "items": items}
        claim = encoded(1 << 50) + encoded(0)
        path.write_bytes(avro_claiming({"name": "a", "type": kind}, 1, claim))
        with pytest.raises(MalformedDataError, match="an array whose elements take no bytes"):
            read([whole(path)], pa.schema([("b", pa.string())]), file_format="avro")


def _options(name):
    return {"file_format": name, "batch_bytes": "4m", "max_record_bytes": "8m"}
