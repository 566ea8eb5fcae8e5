"""Files of a few bytes that expand to gigabytes, and how much a reader of one grows.

For the tests, which read them in small, and for `make bench BENCH=bombs`.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc, orc

from pyspark_sluice.reader.files.formats.avro.container import encoded
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.reader.files.io.compressed_members import hadoop_stream, snappy_stream

SCHEMA = pa.schema([("a", pa.string())])
LONG = "x" * 50_000
ROWS = 12_000
SHORT = 2_000
"""Rows that come first, of which nobody would guess how long the others are."""

_READ = """
import json, os, sys, time
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
    began, error, rows = time.monotonic(), "", 0
    reader = FileSplitReader(schema, ReaderOptions(**options), CONTEXT)
    try:
        for item in reader.read([whole(Path(path))]):
            rows += item.num_rows if isinstance(item, pa.RecordBatch) else 0
    except MalformedDataError as err:
        error = str(err)
    return peak(), time.monotonic() - began, rows, error

before, *_ = drain(sys.argv[1])
most, *outcome = drain(sys.argv[2])
print(json.dumps([most, most - before, *outcome]))
"""


def _dictionary(rows):
    numbers = pa.array([0] * SHORT + [1] * rows, pa.int32())
    return pa.DictionaryArray.from_arrays(numbers, pa.array(["r", LONG]))


def parquet_dictionary(path: Path, rows: int = ROWS) -> None:
    pq.write_table(pa.table({"a": _dictionary(rows)}), path, store_schema=False)


def parquet_dictionary_type(path: Path, rows: int = ROWS) -> None:
    pq.write_table(pa.table({"a": _dictionary(rows)}), path)


def parquet_pages(path: Path, rows: int = ROWS, **how: Any) -> None:
    how |= {"compression": "zstd", "use_dictionary": False, "write_batch_size": 16}
    with pq.ParquetWriter(path, SCHEMA, **how) as out:
        out.write_batch(pa.record_batch({"a": ["r"] * 100 * SHORT}), 1 << 30)
        for _ in range(rows // 1000):
            out.write_batch(pa.record_batch({"a": [LONG] * 1000}), 1 << 30)


def parquet_deltas(path: Path, rows: int = ROWS) -> None:
    parquet_pages(path, rows, column_encoding={"a": "DELTA_BYTE_ARRAY"})


def orc_dictionary(path: Path, rows: int = ROWS) -> None:
    with orc.ORCWriter(str(path), dictionary_key_size_threshold=1.0, compression="zstd") as out:
        out.write(pa.table({"a": ["r"] * SHORT}))
        for _ in range(rows // 1000):
            out.write(pa.table({"a": [LONG] * 1000}))


def arrow_file(path, column, **how):
    with ipc.new_file(str(path), pa.schema([("a", column.type)]), **how) as out:
        out.write(pa.record_batch({"a": column}))


def arrow_dictionary(path: Path, rows: int = ROWS) -> None:
    arrow_file(path, _dictionary(rows))


def arrow_views(path: Path, rows: int = ROWS) -> None:
    one = pa.array([LONG], pa.string_view()).buffers()
    views = np.tile(np.frombuffer(one[1], np.uint8), rows)
    column = pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(views), one[2]])
    arrow_file(path, column)


def arrow_compressed(path: Path, rows: int = ROWS) -> None:
    column = pa.array([LONG] * (rows // 2))
    arrow_file(path, column, options=ipc.IpcWriteOptions(compression="zstd"))


def arrow_plain(path: Path, rows: int = ROWS) -> None:
    arrow_file(path, pa.array([LONG] * (rows // 2)))


def arrow_stream(path: Path, rows: int = ROWS) -> None:
    how = ipc.IpcWriteOptions(compression="lz4")
    with ipc.new_stream(str(path), SCHEMA, options=how) as out:
        out.write(pa.record_batch({"a": ["r"]}))
        out.write(pa.record_batch({"a": [LONG] * (rows // 2)}))


def avro_block(path: Path, rows: int = ROWS, codec: str = "deflate") -> None:
    fields = [{"name": "a", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    with path.open("wb") as out:
        long = ({"a": LONG} for _ in range(rows // 2))
        fastavro.writer(out, schema, long, codec=codec, sync_interval=1 << 40)


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


SMALL = {"json": b'{"a":"r"}\n', "csv": b"r\n", "xml": b"<r><a>r</a></r>\n"}


def avro_claiming(field, rows, data=b""):
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": [field]}, [])
    head = out.getvalue()
    return head + encoded(rows) + encoded(len(data)) + data + head[-16:]


def avro_nulls(path: Path, rows: int = 30_000_000) -> None:
    path.write_bytes(avro_claiming({"name": "a", "type": "null"}, rows))


def without_end(
    path: Path, size: int = 24_000_000, before: bytes = b'{"a":"', codec: str = ""
) -> None:
    """A record of text that goes on to the end of the file."""
    data = before + b"x" * size
    path.write_bytes(COMPRESSED[codec](data) if codec else data)


@dataclass(frozen=True)
class Outcome:
    """How a process read a bomb, which had read a short file of the same format before."""

    peak: int
    """Bytes of it, or of its child."""

    grown: int
    seconds: float
    rows: int
    error: str


def outcome(
    folder: Path, write: Callable[[Path], object], options: dict[str, Any], suffix: str = ""
) -> Outcome:
    """The outcome of reading what `write` writes."""
    name = options["file_format"]
    small, bomb = folder / f"small.{name}", folder / f"bomb{suffix}"
    table = pa.table({"a": ["r"]})
    if name == "parquet":
        pq.write_table(table, small)
    elif name == "orc":
        orc.write_table(table, small)
    elif name == "arrow":
        arrow_file(small, table["a"].combine_chunks())
    elif name == "avro":
        small.write_bytes(avro_claiming({"name": "a", "type": "string"}, 1, b"\x02r"))
    else:
        small.write_bytes(SMALL[name])
    write(bomb)
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(small), str(bomb), json.dumps(options)],
        check=True, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    return Outcome(*json.loads(done.stdout))
