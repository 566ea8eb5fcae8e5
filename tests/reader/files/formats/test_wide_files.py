"""Files of thousands of columns: twice as many take about twice as long, in every format."""

import gc
import time

import pyarrow as pa
import pytest

from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.tests.reader.files.formats.table_files import write_table

pytestmark = [pytest.mark.slow, pytest.mark.thorough("a measurement of files with many columns")]

FEW, MANY = 1_000, 8_000


@pytest.mark.parametrize(
    ("file_format", "name"),
    [
        *((file_format, "c{}") for file_format in ("csv", "json", "xml", "parquet", "arrow")),
        ("parquet", "not in the file {}"),
    ],
)
def test_eight_times_as_many_columns_take_about_eight_times_as_long(tmp_path, file_format, name):
    def seconds(columns):
        path = tmp_path / f"{columns}.data"
        table = pa.table({f"c{number}": [number] for number in range(columns)})
        write_table(file_format, path, table)
        schema = pa.schema([(name.format(number), pa.int64()) for number in range(columns)])
        # A collection would go through what all earlier tests have left.
        gc.disable()
        try:
            begin = time.process_time()
            [row] = read_rows([path], schema, file_format=file_format, header=True)
            taken = time.process_time() - begin
        finally:
            gc.enable()
        assert [*row.values()] == [n if name == "c{}" else None for n in range(columns)]
        return taken

    # The first reading imports the format.
    few = min(seconds(FEW) for _ in range(2))
    # By the square it would be sixty-four times as long.
    assert seconds(MANY) < 24 * few
