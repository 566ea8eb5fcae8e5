"""Files in every block format, written by the formats' own libraries."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.files.formats.blocks.block_files import SCHEMA, sample_rows
from pyspark_sluice.tests.reader.files.formats.table_files import write_table
from pyspark_sluice.tests.reader.files.reading import version


@pytest.fixture(params=["arrow", "avro", "orc", "parquet", "stream"])
def kind(request):
    return request.param


@pytest.fixture(scope="session")
def write(tmp_path_factory):
    """Writes `count` rows in a format and hands out the file's version."""
    folder = tmp_path_factory.mktemp("blocks")
    numbers = iter(range(1_000_000))

    def write_rows(kind, count, block_rows=1000):
        path = folder / f"{next(numbers)}.{kind}"
        table = pa.Table.from_pylist(sample_rows(count), SCHEMA)
        write_table(kind, path, table, block_rows)
        return version(path)

    return write_rows
