"""Damaged files: an error that names the file, or the right number of rows; never less rows."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.errors import MalformedDataError, SplitReadError
from pyspark_sluice.reader.files.formats.api import FileFormat
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    format_of,
    rows_of,
    sample_rows,
)
from pyspark_sluice.tests.reader.files.reading import version

pytestmark = pytest.mark.slow

COUNT = 300


def rows_or_error(reader: FileFormat, file: FileVersion) -> int | str:
    """How many rows there are, or the file an error names."""
    try:
        reader.blocks(file)
        return sum(p.batch.num_rows for p in reader.decode(FileSplit(file, 0, file.size)))
    except SplitReadError as err:
        return err.where.split(" (")[0].split(", rows")[0]


@pytest.mark.thorough("test_all_formats.py changes forty bytes of each format")
@pytest.mark.parametrize("seed", range(60))
def test_flipped_bits_give_an_error_or_every_row(kind, seed, write):
    chance = random.Random(seed)
    path = Path(write(kind, COUNT, 100).path)
    data = bytearray(path.read_bytes())
    low = max(0, len(data) - 1500) if seed % 2 else 0
    for _ in range(chance.choice([1, 2, 5])):
        data[chance.randrange(low, len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    file = version(path)
    assert rows_or_error(format_of(kind), file) in (COUNT, str(path))


@pytest.mark.thorough("a process for each damage; test_all_formats.py changes forty bytes")
def test_no_damage_to_a_parquet_footer_aborts_the_process(write):
    """Arrow's ColumnChunkMetaData throws through Python and ends the process on some of these."""
    path = Path(write("parquet", COUNT, 100).path)
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    for at in range(len(data) - 8 - length, len(data) - 8, 5):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        file = version(path)
        assert rows_or_error(format_of("parquet"), file) in (COUNT, str(path))
        # Bounds that were damaged look like true ones, so here the number may differ.
        outcome = rows_or_error(format_of("parquet", filter="id > 5"), file)
        assert isinstance(outcome, int) or outcome == str(path)


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


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of Thrift's, still zigzag, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def as_varint(value: int, length: int) -> bytes:
    """The same in so many bytes."""
    parts = [value >> (7 * i) & 127 for i in range(length)]
    return bytes([part | 128 for part in parts[:-1]] + parts[-1:])


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "lz4"])
def test_sizes_of_a_parquet_page_that_lie_are_an_error_or_make_no_difference(codec, tmp_path):
    path, rows = tmp_path / "lies.parquet", [f"row {i}" * (i % 50) for i in range(5000)]
    pq.write_table(pa.table({"a": rows}), path, compression=codec, use_dictionary=False)
    data = path.read_bytes()
    at = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    # Three numbers: the kind of page, its size, and its size as it is stored.
    _, size_at = varint(data, at + 1)
    size, stored_at = varint(data, size_at + 1)
    stored, end = varint(data, stored_at + 1)
    for begin, until, value in ((size_at + 1, stored_at, size), (stored_at + 1, end, stored)):
        most = (1 << 7 * (until - begin)) - 2
        for lie in (2, value - 2, value + 2, value // 4 * 2, most):
            path.write_bytes(data[:begin] + as_varint(lie, until - begin) + data[until:])
            reader, found = format_of("parquet", pa.schema([("a", pa.string())])), []
            try:
                for decoded in reader.decode(FileSplit(version(path), 0, len(data))):
                    found += decoded.batch.column("a").to_pylist()
            except MalformedDataError as error:
                assert str(path) in error.where  # noqa: PT017 - or the rows are right
            else:
                assert found == rows
