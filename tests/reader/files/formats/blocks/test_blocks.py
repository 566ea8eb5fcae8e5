"""Blocks of a file, and files of other columns one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.reader.files.formats.api import Splittability

from .conftest import version

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["parquet", "orc", "arrow", "avro"])
def test_a_file_of_many_blocks_is_really_cut(kind: str, write: Any, fmt: Any) -> None:
    reader, file = fmt(kind), write(kind, 400, 23)
    assert reader.splittability(file) in (Splittability.BLOCKS, Splittability.RECORDS)
    assert len(reader.blocks(file)) >= 6


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_rows_of_a_stream_are_counted_with_dictionaries_between_them(
    tmp_path: Path, fmt: Any, codec: str | None
) -> None:
    path = tmp_path / "a.arrows"
    words = [pa.array([f"{i}{n}" for n in range(i + 1)]).dictionary_encode() for i in range(5)]
    batches = [pa.record_batch([each], ["word"]) for each in words]
    options = ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=False)
    with ipc.new_stream(path, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    file = version(path)
    (block,) = fmt("arrow", batches[0].schema).blocks(file)
    assert (block.start, block.end, block.rows) == (0, file.size, 15)


def test_a_reader_goes_from_file_to_file_of_other_schemas(kind: str, write: Any, fmt: Any) -> None:
    reader = fmt(kind, pa.schema([("text", pa.string()), ("id", pa.int64())]))
    for file in (write(kind, 3), write(kind, 5), write(kind, 0)):
        batches = [part.batch for part in reader.decode(FileSplit(file, 0, file.size))]
        assert all(batch.schema.names == ["text", "id"] for batch in batches)


def test_a_schema_without_columns_still_counts_the_rows(kind: str, write: Any, fmt: Any) -> None:
    file = write(kind, 1234, 100)
    parts = fmt(kind, pa.schema([])).decode(FileSplit(file, 0, file.size))
    assert sum(part.batch.num_rows for part in parts) == 1234


def test_columns_that_no_file_has_are_nulls(kind: str, write: Any, fmt: Any, read: Any) -> None:
    file = write(kind, 3)
    schema = pa.schema([("gone", pa.list_(pa.date32())), ("ID", pa.int64())])
    assert read(fmt(kind, schema), file) == [{"gone": None, "ID": i} for i in range(3)]
