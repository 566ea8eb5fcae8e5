"""Block files that are damaged, lie in another file system, or crash their decoder."""

from __future__ import annotations

import os
import signal
from itertools import count
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.arrow import format as arrow_format
from pyspark_sluice.reader.files.formats.orc import format as orc_format
from pyspark_sluice.reader.files.testing import version
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    SCHEMA,
    format_of,
    rows_of,
    sample_rows,
)
from pyspark_sluice.tests.reader.files.formats.table_files import write_table

pytestmark = pytest.mark.slow

COUNT = 300
EVERY_KIND = pytest.mark.parametrize("kind", ["arrow", "avro", "orc", "parquet", "stream"])


@pytest.fixture
def write(tmp_path):
    """Writes rows in blocks of a format and hands out the file's version."""
    numbers = count()

    def write_rows(kind, rows, block_rows):
        path = tmp_path / f"{next(numbers)}.{kind}"
        write_table(kind, path, pa.Table.from_pylist(sample_rows(rows), SCHEMA), block_rows)
        return version(path)

    return write_rows


@EVERY_KIND
def test_a_schema_without_columns_still_counts_the_rows(kind, write):
    file = write(kind, 1234, 100)
    parts = format_of(kind, pa.schema([])).decode(FileSplit(file, 0, file.size))
    assert sum(part.batch.num_rows for part in parts) == 1234


def remote(file: FileVersion) -> FileVersion:
    """The file as an object elsewhere."""
    url = f"memory://blocks/{Path(file.path).name}"
    fsspec.filesystem("memory").pipe_file(url, Path(file.path).read_bytes())
    return FileVersion(url, file.size, -1)


@EVERY_KIND
def test_rows_come_out_of_any_file_system_that_fsspec_opens(kind, write):
    file = remote(write(kind, 3_000, 500))
    reader = format_of(kind)
    cuts = [block.start for block in reader.blocks(file)][1:]
    assert rows_of(reader, file, *cuts) == sample_rows(3_000)


@pytest.mark.parametrize("elsewhere", [lambda file: file, remote], ids=["local", "remote"])
def test_a_decoder_that_crashes_is_an_error_with_the_file_s_name_and_the_next_file_is_read(
    write, monkeypatch, elsewhere
):
    bad, good = elsewhere(write("orc", 300, 100)), elsewhere(write("orc", 301, 100))
    stripes = orc_format._stripes

    def crash_half_way(fitter: Any, options: Any, split: FileSplit, source: Any) -> Any:
        batches = stripes(fitter, options, split, source)
        yield next(batches)
        if split.file.path.endswith(Path(bad.path).name):
            os.kill(os.getpid(), signal.SIGSEGV)
        yield from batches

    monkeypatch.setattr(orc_format, "_stripes", crash_half_way)
    reader = format_of("orc")
    with pytest.raises(MalformedDataError, match=r"crashed \(SIGSEGV\)") as caught:
        rows_of(reader, bad)
    assert bad.path in caught.value.where
    assert rows_of(reader, good) == sample_rows(301)


def test_a_stream_without_its_end_mark_is_read_if_it_ends_between_messages(write):
    path = Path(write("stream", COUNT, 100).path)
    data = path.read_bytes()
    assert data[-8:] == b"\xff\xff\xff\xff" + bytes(4)
    path.write_bytes(data[:-8])
    assert len(rows_of(format_of("stream"), version(path))) == COUNT
    for end in (*range(len(data) - 16, len(data) - 8), *range(len(data) - 7, len(data))):
        path.write_bytes(data[:end])
        with pytest.raises(MalformedDataError):
            rows_of(format_of("stream"), version(path))


def test_a_broken_sync_marker_is_named_with_its_position(write):
    file = write("avro", COUNT, 30)
    second = format_of("avro").blocks(file)[1]
    path = Path(file.path)
    data = bytearray(path.read_bytes())
    data[second.start - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(MalformedDataError, match="sync marker at its end, at byte"):
        list(format_of("avro").decode(FileSplit(version(path), 0, file.size)))


@EVERY_KIND
def test_an_abandoned_read_leaves_nothing_for_the_next_one(kind, write):
    file = write(kind, COUNT, 100)
    reader = format_of(kind)
    abandoned = reader.decode(FileSplit(file, 0, file.size))
    next(abandoned)
    abandoned.close()
    assert rows_of(reader, file) == sample_rows(COUNT)


def test_an_arrow_footer_that_leaves_a_batch_out_is_refused(write):
    file = write("arrow", COUNT, 100)
    with pa.OSFile(file.path) as source:
        messages = arrow_format.record_batches(source)
    assert [rows for _, rows in messages] == [100, 100, 100]
    data = bytearray(Path(file.path).read_bytes())
    # The vector of record batches is preceded by its count, 3; make it 2.
    first = messages[0][0].to_bytes(8, "little")
    at = data.rindex(first) - 4
    assert data[at] == 3
    data[at] = 2
    Path(file.path).write_bytes(data)
    damaged = version(Path(file.path))
    with pytest.raises(MalformedDataError, match="bytes between messages"):
        list(format_of("arrow").decode(FileSplit(damaged, 0, damaged.size)))
