"""Damaged files: an error that names the file, or the right number of rows; never less rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    format_of,
    rows_of,
    sample_rows,
)
from pyspark_sluice.tests.reader.files.reading import version

pytestmark = pytest.mark.slow

COUNT = 300


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


def test_an_abandoned_read_leaves_nothing_for_the_next_one(kind, write):
    file = write(kind, COUNT, 100)
    reader = format_of(kind)
    abandoned = reader.decode(FileSplit(file, 0, file.size))
    next(abandoned)
    abandoned.close()
    assert rows_of(reader, file) == sample_rows(COUNT)


def test_an_arrow_footer_that_leaves_a_batch_out_is_refused(write):
    from pyspark_sluice.reader.files.formats.arrow import format as arrow_format

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
