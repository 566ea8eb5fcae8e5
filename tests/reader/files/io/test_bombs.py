"""Files of a few bytes that expand to gigabytes: read within the bound, or refused by name."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from functools import partial

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
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.reader.files.io.test_codecs import hadoop_stream, snappy_stream
from pyspark_sluice.tests.reader.files.reading import read, whole
from pyspark_sluice.tests.sweeps import sampled

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("a", pa.string())])
LONG = "x" * 50_000
ROWS = 12_000
SHORT = 2_000
"""Rows that come first, of which nobody would guess how long the others are."""

_READ = """
import json, sys
import pyarrow as pa
from pathlib import Path
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import CONTEXT, whole

options, schema = json.loads(sys.argv[3]), pa.schema([("a", pa.string())])

def peak():
    # Not getrusage: its figure begins with what the process had that started this one.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) * 1024

def drain(path):
    reader = FileSplitReader(schema, ReaderOptions(**options), CONTEXT)
    items = reader.read([whole(Path(path))])
    return sum(x.num_rows for x in items if isinstance(x, pa.RecordBatch))

drain(sys.argv[1])
before, error, rows = peak(), "", 0
try:
    rows = drain(sys.argv[2])
except MalformedDataError as err:
    error = str(err)
print(json.dumps([peak() - before, rows, error]))
"""


def _dictionary():
    numbers = pa.array([0] * SHORT + [1] * ROWS, pa.int32())
    return pa.DictionaryArray.from_arrays(numbers, pa.array(["r", LONG]))


def _parquet_dictionary(path):
    pq.write_table(pa.table({"a": _dictionary()}), path, store_schema=False)


def _parquet_dictionary_type(path):
    pq.write_table(pa.table({"a": _dictionary()}), path)


def _parquet_pages(path, **how):
    how |= {"compression": "zstd", "use_dictionary": False, "write_batch_size": 16}
    with pq.ParquetWriter(path, SCHEMA, **how) as out:
        out.write_batch(pa.record_batch({"a": ["r"] * 100 * SHORT}), 1 << 30)
        for _ in range(ROWS // 1000):
            out.write_batch(pa.record_batch({"a": [LONG] * 1000}), 1 << 30)


def _parquet_deltas(path):
    _parquet_pages(path, column_encoding={"a": "DELTA_BYTE_ARRAY"})


def _orc_dictionary(path):
    with orc.ORCWriter(str(path), dictionary_key_size_threshold=1.0, compression="zstd") as out:
        out.write(pa.table({"a": ["r"] * SHORT}))
        for _ in range(ROWS // 1000):
            out.write(pa.table({"a": [LONG] * 1000}))


def _arrow(path, column, **how):
    with ipc.new_file(str(path), pa.schema([("a", column.type)]), **how) as out:
        out.write(pa.record_batch({"a": column}))


def _arrow_dictionary(path):
    _arrow(path, _dictionary())


def _arrow_views(path):
    one = pa.array([LONG], pa.string_view()).buffers()
    views = np.tile(np.frombuffer(one[1], np.uint8), ROWS)
    column = pa.Array.from_buffers(pa.string_view(), ROWS, [None, pa.py_buffer(views), one[2]])
    _arrow(path, column)


def _arrow_compressed(path):
    column = pa.array([LONG] * (ROWS // 2))
    _arrow(path, column, options=ipc.IpcWriteOptions(compression="zstd"))


def _arrow_stream(path):
    how = ipc.IpcWriteOptions(compression="lz4")
    with ipc.new_stream(str(path), SCHEMA, options=how) as out:
        out.write(pa.record_batch({"a": ["r"]}))
        out.write(pa.record_batch({"a": [LONG] * (ROWS // 2)}))


def _avro_block(path, codec="deflate"):
    fields = [{"name": "a", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    with path.open("wb") as out:
        rows = ({"a": LONG} for _ in range(ROWS // 2))
        fastavro.writer(out, schema, rows, codec=codec, sync_interval=1 << 40)


BOUNDED = {
    "parquet": [
        _parquet_dictionary,
        _parquet_dictionary_type,
        _parquet_pages,
        _parquet_deltas,
    ],
    "arrow": [_arrow_dictionary, _arrow_views],
}
REFUSED = {
    "orc": [_orc_dictionary],
    "arrow": [_arrow_compressed, _arrow_stream],
    "avro": [_avro_block],
}


@pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, made in BOUNDED.items() for write in made]
)
def test_values_that_are_stored_once_and_named_often_are_read_within_the_bound(
    tmp_path, name, write
):
    grown, rows, error = _read_both(tmp_path, name, write)
    assert not error
    assert rows >= ROWS
    assert grown < held_at_most(ReaderOptions(**_options(name)))


@pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, made in REFUSED.items() for write in made]
)
def test_what_has_to_be_decoded_at_once_and_swells_is_refused_by_name(tmp_path, name, write):
    grown, _, error = _read_both(tmp_path, name, write)
    assert f"{tmp_path}/bomb, " in error
    assert "set maxRecordBytes" in error
    assert grown < held_at_most(ReaderOptions(**_options(name)))


def _by_arrow(data, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": partial(_by_arrow, codec="zstd"),
    "lz4": partial(_by_arrow, codec="lz4"),
    "hadoop.lz4": partial(hadoop_stream, "lz4_raw", parts=96),
    "hadoop.snappy": partial(hadoop_stream, "snappy", parts=96),
    "snappy": snappy_stream,
}


@pytest.mark.parametrize(
    "codec", sampled(COMPRESSED, lambda codec: codec not in ("xz", "lz4", "hadoop.lz4"))
)
def test_compressed_text_without_an_end_is_refused_by_name(tmp_path, codec):
    def write(path):
        path.write_bytes(COMPRESSED[codec](b'{"a":"' + b"x" * 24_000_000))

    grown, _, error = _read_both(tmp_path, "json", write, suffix=f".{codec}")
    assert f"{tmp_path}/bomb.{codec}, byte 0;" in error
    assert "set maxRecordBytes" in error
    assert grown < held_at_most(ReaderOptions(**_options("json")))


def test_rows_of_avro_that_take_no_bytes_are_not_decoded_one_by_one(tmp_path, monkeypatch):
    path = tmp_path / "a.avro"
    count = 30_000_000
    path.write_bytes(_avro_claiming({"name": "a", "type": "null"}, count))
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
        path.write_bytes(_avro_claiming({"name": "a", "type": kind}, 1, claim))
        with pytest.raises(MalformedDataError, match="an array whose elements take no bytes"):
            read([whole(path)], pa.schema([("b", pa.string())]), file_format="avro")


def _avro_claiming(field, rows, data=b""):
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": [field]}, [])
    head = out.getvalue()
    return head + encoded(rows) + encoded(len(data)) + data + head[-16:]


def _options(name):
    return {"file_format": name, "batch_bytes": "4m", "max_record_bytes": "8m"}


def _read_both(folder, name, write, suffix=""):
    """Bytes by which the bomb makes a process grow that has read a short file; rows, error."""
    small, bomb = folder / f"small.{name}", folder / f"bomb{suffix}"
    table = pa.table({"a": ["r"]})
    if name == "parquet":
        pq.write_table(table, small)
    elif name == "orc":
        orc.write_table(table, small)
    elif name == "arrow":
        _arrow(small, table["a"].combine_chunks())
    elif name == "avro":
        small.write_bytes(_avro_claiming({"name": "a", "type": "string"}, 1, b"\x02r"))
    else:
        small.write_bytes(b'{"a":"r"}\n')
    write(bomb)
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(small), str(bomb), json.dumps(_options(name))],
        check=True, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    return json.loads(done.stdout)
