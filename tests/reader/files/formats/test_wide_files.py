"""Files of thousands of columns: twice as many take about twice as long, in every format."""

from __future__ import annotations

import gc
import json
import time
from functools import partial

import pyarrow as pa
import pytest

from pyspark_sluice.tests.reader.files.formats.table_files import write_table
from pyspark_sluice.tests.reader.files.reading import read_rows

pytestmark = [pytest.mark.slow, pytest.mark.thorough("a measurement of files with many columns")]

FEW, MANY = 1_000, 8_000


def _csv(path, row):
    path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")


def _json(path, row):
    path.write_text(json.dumps(row) + "\n")


def _block(kind, path, row):
    write_table(kind, path, pa.table({name: [value] for name, value in row.items()}))


def _xml(path, row):
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in row.items())
    path.write_text(f"<rows><ROW>{fields}</ROW></rows>")


WRITERS = {"csv": _csv, "json": _json, "xml": _xml}
WRITERS |= {kind: partial(_block, kind) for kind in ("parquet", "arrow")}
OPTIONS = {"csv": {"header": "true"}, "xml": {"rowTag": "ROW"}}


@pytest.mark.parametrize(
    ("file_format", "name"),
    [*((file_format, "c{}") for file_format in WRITERS), ("parquet", "not in the file {}")],
)
def test_eight_times_as_many_columns_take_about_eight_times_as_long(tmp_path, file_format, name):
    def seconds(columns):
        row = {f"c{number}": number for number in range(columns)}
        path = tmp_path / f"{columns}.data"
        WRITERS[file_format](path, row)
        schema = pa.schema([(name.format(number), pa.int64()) for number in range(columns)])
        options = OPTIONS.get(file_format, {})
        # A collection would go through what all earlier tests have left.
        gc.disable()
        try:
            begin = time.process_time()
            found = read_rows([path], schema, file_format=file_format, **options)
            taken = time.process_time() - begin
        finally:
            gc.enable()
        assert len(found) == 1
        expected = row.values() if name == "c{}" else [None] * columns
        assert list(found[0].values()) == list(expected)
        return taken

    # The first reading imports the format.
    few = min(seconds(FEW) for _ in range(2))
    # By the square it would be sixty-four times as long.
    assert seconds(MANY) < 24 * few
