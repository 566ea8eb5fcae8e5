"""The memory row: peak resident size of a reader, for each format, over a large file and a tenth.

And how much a reader grows by the longest record, row or block that it reads by default, next to
the bound of `reader/files/io/memory_bounds.py`.

Each reading is a process of its own, without Spark: what a Python worker holds next to pyspark.
`make bench BENCH=memory`; `SLUICE_BENCH_MB` sets the size of the large files (2,000 by default).
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc, orc

from pyspark_sluice.reader.files.io.memory_bounds import held_at_most
from pyspark_sluice.reader.files.options import ReaderOptions

from .bench import Bench, Result

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

LONGEST_MB = 60
"""Size of the longest record, of which `maxRecordBytes` permits 67 by default."""

SIZE_MB = int(os.environ.get("SLUICE_BENCH_MB", "2000"))
_CHUNK = 100_000

_PREPARED = """
import json, sys, tempfile
import pyarrow as pa
from pathlib import Path
from pyspark_sluice.reader.files.formats.orc.child_process import ChildDecoder
from pyspark_sluice.reader.files.testing import CONTEXT, whole
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader

path, options = Path(sys.argv[1]), json.loads(sys.argv[2])
if options["file_format"] == "text":
    schema = pa.schema([("value", pa.string())])
elif options["file_format"] == "binaryFile":
    schema = pa.schema([("length", pa.int64()), ("content", pa.binary())])
else:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])
    for name in sys.argv[3:]:
        schema = schema.append(pa.field(name, pa.string()))
# In this process, whose memory is measured, instead of a child of it.
ChildDecoder.supported = False
def peak():
    # Not getrusage: its figure begins with what the process had that started this one.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) * 1024

rows, began = 0, peak()
items = FileSplitReader(schema, ReaderOptions(**options), CONTEXT).read([whole(path)])
batches = (item for item in items if isinstance(item, pa.RecordBatch))
"""
_READ = f"""{_PREPARED}
rows = sum(batch.num_rows for batch in batches)
print(json.dumps([rows, peak(), peak() - began]))
"""
_WRITE = f"""{_PREPARED}
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.documents.written_file import FileName
from pyspark_sluice.reader.direct_write.file_writer import DataFileWriter
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.reader.direct_write.place import Place

name = FileName(CheckpointIdentity(CheckpointRef(1, 1), "0" * 16, "0" * 16), 0, "0" * 12)
with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
    writer = DataFileWriter(Place(folder, {{}}), name, schema, WriteOptions())
    for batch in batches:
        writer.write(batch)
    rows = sum(file.rows for file in writer.finish())
print(json.dumps([rows, peak(), peak() - began]))
"""


def memory(bench: Bench) -> Iterator[Result]:
    """Peak resident size of a reader by format, over a file of 2 GB and one of a tenth."""
    for name in _KINDS:
        yield _flat(bench, name, _READ, name)
    yield from direct_write_memory(bench)
    for name, (write, options) in _LONGEST.items():
        path = _file(bench, f"longest_{name}", write, LONGEST_MB)
        _, grown = _peak(path, options, *(_PARTS if options["file_format"] == "json" else ()))
        bound = held_at_most(ReaderOptions(**options), LONGEST_MB * 1_000_000)
        note = f"{grown / 1e6 / LONGEST_MB:.1f} times the record, without Python and its imports"
        work = f"growth by one record of {LONGEST_MB} MB, {name}"
        yield Result(work, grown / 2**20, bound / 2**20, "MiB", "the bound", note)


def direct_write_memory(bench: Bench) -> Iterator[Result]:
    """The same for a reader whose rows go into data files."""
    for name in _WRITTEN:
        yield _flat(bench, name, _WRITE, f"{name}, written")


def _flat(bench: Bench, name: str, program: str, work: str) -> Result:
    write, options = _KINDS[name]
    small, _ = _peak(_file(bench, name, write, SIZE_MB // 10), options, program=program)
    path = _file(bench, name, write, SIZE_MB)
    large, _ = _peak(path, options, program=program)
    note = f"{path.stat().st_size / 1e6:,.0f} MB; {large / small:.2f} times the smaller's"
    of_tenth = f"a file of {SIZE_MB // 10} MB"
    return Result(f"memory, {work}", large / 2**20, small / 2**20, "MiB", of_tenth, note)


def _peak(
    path: Path, options: dict[str, Any], *more: str, program: str = _READ
) -> tuple[float, float]:
    """The peak, and by how much it is more than before the file was read."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), json.dumps(options), *more],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    rows, peak, grown = json.loads(done.stdout)
    if not rows:
        message = f"no row in {path}"
        raise ValueError(message)
    return peak, grown


def _file(bench: Bench, name: str, write: Callable[[Path, int], None], megabytes: int) -> Path:
    folder = bench.data.made(
        f"memory_{name.replace(' ', '_')}_{megabytes}",
        lambda made: write(made / "file", megabytes * 1_000_000),
    )
    return folder / "file"


def _tables() -> Iterator[pa.Table]:
    start = 0
    while True:
        ids = range(start, start + _CHUNK)
        names = [f"name of row {n} and {n * 7919 % 100_003}" for n in ids]
        yield pa.table({"id": ids, "name": names, "value": [n / 7 for n in ids]})
        start += _CHUNK


def _text(line: Callable[[dict[str, Any]], str], opened: Any = open) -> Callable[[Path, int], None]:
    def write(path: Path, size: int) -> None:
        with opened(path, "wb") as out:
            _fill(out, size, line)

    return write


def _fill(out: SupportsWrite[bytes], size: int, line: Callable[[dict[str, Any]], str]) -> None:
    """So many bytes of content before compression."""
    written = 0
    for table in _tables():
        data = "".join(map(line, table.to_pylist())).encode()
        out.write(data)
        written += len(data)
        if written >= size:
            return


def _document(path: Path, size: int) -> None:
    with path.open("wb") as out:
        out.write(b"[\n")
        _fill(out, size, lambda row: json.dumps(row) + ",\n")
        out.write(b'{"id": 0}]')


def _columns(make: Callable[[Path, pa.Schema], Any]) -> Callable[[Path, int], None]:
    def write(path: Path, size: int) -> None:
        tables = _tables()
        first = next(tables)
        with make(path, first.schema) as out:
            out.write(first)
            while path.stat().st_size < size:
                out.write(next(tables))

    return write


def _one_group(path: Path, size: int) -> None:
    tables, found = _tables(), list[pa.Table]()
    while sum(table.nbytes for table in found) < size:
        found.append(next(tables))
    pq.write_table(pa.concat_tables(found), path, row_group_size=1 << 30)


def _avro(path: Path, size: int) -> None:
    import fastavro

    def rows() -> Iterator[dict[str, Any]]:
        for table in _tables():
            yield from table.to_pylist()
            if path.stat().st_size >= size:
                return

    types = {"id": "long", "name": "string", "value": "double"}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows())


def _zeros(path: Path, size: int) -> None:
    with path.open("wb") as out:
        out.truncate(size)


def _json(row: dict[str, Any]) -> str:
    return f'{{"id":{row["id"]},"name":"{row["name"]}","value":{row["value"]}}}\n'


def _csv(row: dict[str, Any]) -> str:
    return f'{row["id"]},"{row["name"]}",{row["value"]}\n'


def _xml(row: dict[str, Any]) -> str:
    fields = (f"<{name}>{value}</{name}>" for name, value in row.items())
    return f"<r>{''.join(fields)}</r>\n"


def _broken_csv(row: dict[str, Any]) -> str:
    return f'{row["id"]},"{row["name"]}\nof two lines",{row["value"]}\n'


def _gzip(path: Path, mode: str) -> Any:
    return gzip.open(path, mode, compresslevel=1)


_KINDS: dict[str, tuple[Callable[[Path, int], None], dict[str, Any]]] = {
    "json": (_text(_json), {"file_format": "json"}),
    "json document": (_document, {"file_format": "json", "multi_line": True}),
    "csv": (_text(_csv), {"file_format": "csv"}),
    "csv multiline": (_text(_broken_csv), {"file_format": "csv", "multi_line": True}),
    "xml": (_text(_xml), {"file_format": "xml", "row_tag": "r"}),
    "text": (_text(_csv), {"file_format": "text"}),
    "json gzip": (_text(_json, _gzip), {"file_format": "json", "compression": "gzip"}),
    "json bzip2": (_text(_json, bz2.open), {"file_format": "json", "compression": "bzip2"}),
    "parquet": (_columns(pq.ParquetWriter), {"file_format": "parquet"}),
    "parquet one row group": (_one_group, {"file_format": "parquet"}),
    "orc": (_columns(lambda path, _: orc.ORCWriter(str(path))), {"file_format": "orc"}),
    "arrow": (_columns(ipc.new_file), {"file_format": "arrow"}),
    "arrow stream": (_columns(ipc.new_stream), {"file_format": "arrow"}),
    "avro": (_avro, {"file_format": "avro"}),
    "binaryFile": (_zeros, {"file_format": "binaryFile"}),
}


_WRITTEN = ("json", "csv", "text", "parquet")


def _one(before: bytes, after: bytes) -> Callable[[Path, int], None]:
    def write(path: Path, size: int) -> None:
        with path.open("wb") as out:
            out.write(before + b"x" * size + after)

    return write


_PARTS = ("name1", "name2", "name3")


def _one_object(opened: Any = open) -> Callable[[Path, int], None]:
    """Of several fields, as records mostly are."""

    def write(path: Path, size: int) -> None:
        names = ("name", *_PARTS)
        fields = (b'"%s":"%s"' % (name.encode(), b"x" * (size // len(names))) for name in names)
        with opened(path, "wb") as out:
            out.write(b"{" + b",".join(fields) + b"}\n")

    return write


def _one_row(write: Callable[[pa.Table, str], Any]) -> Callable[[Path, int], None]:
    return lambda path, size: write(pa.table({"id": [1], "name": ["x" * size]}), str(path))


def _one_of_ipc(table: pa.Table, path: str) -> None:
    with ipc.new_file(path, table.schema) as out:
        out.write(table)


def _one_of_avro(table: pa.Table, path: str) -> None:
    import fastavro

    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
    with Path(path).open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, table.to_pylist())


_LONGEST: dict[str, tuple[Callable[[Path, int], None], dict[str, Any]]] = {
    "json": (_one_object(), {"file_format": "json"}),
    "json document": (_one_object(), {"file_format": "json", "multi_line": True}),
    "json gzip": (_one_object(_gzip), {"file_format": "json", "compression": "gzip"}),
    "csv": (_one(b"1,", b",2\n"), {"file_format": "csv"}),
    "csv multiline": (_one(b'1,"a\n', b'",2\n'), {"file_format": "csv", "multi_line": True}),
    "xml": (_one(b"<r><name>", b"</name></r>"), {"file_format": "xml", "row_tag": "r"}),
    "text": (_one(b"", b"\n"), {"file_format": "text"}),
    "text wholetext": (_one(b"", b"\n"), {"file_format": "text", "wholetext": True}),
    "parquet": (_one_row(pq.write_table), {"file_format": "parquet"}),
    "orc": (_one_row(orc.write_table), {"file_format": "orc"}),
    "arrow": (_one_row(_one_of_ipc), {"file_format": "arrow"}),
    "avro": (_one_row(_one_of_avro), {"file_format": "avro"}),
}
