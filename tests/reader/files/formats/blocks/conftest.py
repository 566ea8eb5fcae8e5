"""One table in every block format, written by the formats' own libraries."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc, orc

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.readings import zones
from pyspark_sluice.tests.reader.readings.block_files import avro_file

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("real", pa.float64()),
        ("many", pa.list_(pa.int64())),
        ("named", pa.map_(pa.string(), pa.int64())),
        ("nested", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "text": f"text {i % 37}" if i % 5 else None,
            "real": i * 0.5,
            "many": [i, None] if i % 3 else None,
            "named": [(f"k{i % 3}", i)],
            "nested": {"a": i, "b": "x"} if i % 4 else None,
        }
        for i in range(count)
    ]


def _write_parquet(path: Path, data: list[dict[str, Any]], block_rows: int) -> None:
    table = pa.Table.from_pylist(data, SCHEMA)
    pq.write_table(table, path, row_group_size=max(1, block_rows))


def _write_orc(path: Path, data: list[dict[str, Any]], block_rows: int) -> None:
    # Of tables, not of slices of one: Arrow's writer takes the nulls of a sliced struct from the
    # wrong place.
    with orc.ORCWriter(path, stripe_size=1, batch_size=max(1, block_rows)) as writer:
        for start in range(0, max(1, len(data)), block_rows):
            writer.write(pa.Table.from_pylist(data[start : start + block_rows], SCHEMA))


def _write_arrow(
    path: Path, data: list[dict[str, Any]], block_rows: int, new: Any = ipc.new_file
) -> None:
    with pa.OSFile(str(path), "wb") as sink, new(sink, SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(data, SCHEMA), max_chunksize=block_rows)


def _write_avro(path: Path, data: list[dict[str, Any]], block_rows: int) -> None:
    # About 40 bytes a row: fastavro closes a block by bytes.
    table = pa.Table.from_pylist(data, SCHEMA)
    path.write_bytes(avro_file(table, codec="deflate", sync_interval=40 * block_rows))


WRITERS: dict[str, Any] = {
    "parquet": _write_parquet,
    "orc": _write_orc,
    "arrow": _write_arrow,
    "stream": partial(_write_arrow, new=ipc.new_stream),
    "avro": _write_avro,
}


def version(path: Path) -> FileVersion:
    status = path.stat()
    return FileVersion(str(path), status.st_size, status.st_mtime_ns // 1000)


@pytest.fixture(params=sorted(WRITERS))
def kind(request):
    return request.param


@pytest.fixture(scope="session")
def write(tmp_path_factory):
    """Writes `count` rows in a format and hands out the file's version."""
    folder = tmp_path_factory.mktemp("blocks")
    numbers = iter(range(1_000_000))

    def write_rows(kind, count, block_rows=1000):
        path = folder / f"{next(numbers)}.{kind}"
        WRITERS[kind](path, rows(count), block_rows)
        return version(path)

    return write_rows


@pytest.fixture(scope="session")
def fmt():
    """Builds the reader of a format; Spark's option names as keywords."""

    def build(kind, schema=SCHEMA, **options):
        name = {"stream": "arrow"}.get(kind, kind)
        return make_format(ReaderOptions(fileFormat=name, **options), schema)

    return build


@pytest.fixture(scope="session")
def read():
    """The rows of a file, or of the splits between the given cuts, in order."""

    def read_rows(fmt, file, *cuts):
        found = []
        for start, end in pairwise([0, *cuts, file.size]):
            for decoded in fmt.decode(FileSplit(file, start, end)):
                decoded.batch.validate(full=True)
                found += decoded.batch.to_pylist()
        return found

    return read_rows


@pytest.fixture(scope="session")
def sample():
    """The rows that `write` writes."""
    return rows


@pytest.fixture(scope="session")
def version_of():
    """The version of a local file as it is now."""
    return version


@pytest.fixture(scope="session")
def read_table(version_of):
    """All rows of some files, as a table of the given schema."""

    def read_files(fmt, paths, schema):
        files = [version_of(path) for path in paths]
        parts = [part for f in files for part in fmt.decode(FileSplit(f, 0, f.size))]
        return pa.Table.from_batches([part.batch for part in parts], schema)

    return read_files


@pytest.fixture
def in_zones(spark):
    """For a while, another zone of the session and of the JVM itself."""

    return partial(zones.in_zones, spark)
