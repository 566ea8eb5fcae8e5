"""Files of thousands of columns: twice as many take about twice as long, in every format."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from pyspark_sluice.tests.reader.files.reading import read_rows

pytestmark = pytest.mark.slow

FEW, MANY = 1_000, 8_000


def _csv(path, row):
    path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")


def _json(path, row):
    path.write_text(json.dumps(row) + "\n")


def _parquet(path, row):
    pq.write_table(pa.table({name: [value] for name, value in row.items()}), path)


def _arrow(path, row):
    feather.write_feather(pa.table({name: [value] for name, value in row.items()}), path)


def _xml(path, row):
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in row.items())
    path.write_text(f"<rows><ROW>{fields}</ROW></rows>")


WRITERS = {"csv": _csv, "json": _json, "parquet": _parquet, "arrow": _arrow, "xml": _xml}
OPTIONS = {"csv": {"header": "true"}, "xml": {"rowTag": "ROW"}}


@pytest.mark.parametrize("name", ["c{}", "x{}"], ids=["all in the file", "none in the file"])
@pytest.mark.parametrize("file_format", WRITERS)
def test_eight_times_as_many_columns_do_not_take_twenty_times_as_long(tmp_path, file_format, name):
    def seconds(columns):
        row = {f"c{number}": number for number in range(columns)}
        path = tmp_path / f"{columns}.data"
        WRITERS[file_format](path, row)
        schema = pa.schema([(name.format(number), pa.int64()) for number in range(columns)])
        begin = time.process_time()
        found = read_rows([path], schema, file_format=file_format, **OPTIONS.get(file_format, {}))
        assert len(found) == 1
        taken = time.process_time() - begin
        # Columns of CSV are found by their place, as in Spark.
        is_there = name == "c{}" or file_format == "csv"
        expected = row.values() if is_there else [None] * columns
        assert list(found[0].values()) == list(expected)
        return taken

    # The first reading imports the format.
    few = min(seconds(FEW) for _ in range(3))
    assert seconds(MANY) < 20 * few
