"""Headers of CSV that name a column twice: refused where columns go by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.formats.csv.format import CsvFormat
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.options.schema_options import EvolutionMode
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.tests.reader.files.reading import CONTEXT, read_rows, version, whole

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.string()), ("_rescued", pa.string())])
BY_NAME: dict[str, Any] = {"file_format": "csv", "header": True, "enforce_schema": False}
TWICE = {
    "twice": "id,n,n",
    "in another case": "id,N,n",
    "blanks around it": "id, n,n ",
    "unknown, twice": "id,x,x",
    "the name that an empty one gets": "id,_c2,",
}


def _file(folder: Path, header: str, name: str = "a.csv", *records: str) -> Path:
    path = folder / name
    path.write_text("\n".join((header, *(records or ("1,x,y", "2,,z")))) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("header", TWICE.values(), ids=list(TWICE))
@pytest.mark.parametrize("more", [{}, {"multi_line": True}, {"rescued_data_column": "_rescued"}])
@pytest.mark.parametrize("odd", ["", '9,a"b,c'], ids=["fast path", "exact path"])
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_columns_by_name_refuse_a_header_that_names_one_twice(tmp_path, header, more, odd, mode):
    path = _file(tmp_path, header, "a.csv", "1,x,y", odd)
    columns = 3 if "rescued_data_column" in more else 2
    for paths in ([path], [_file(tmp_path, "id,n,m", "good.csv"), path]):
        with pytest.raises(SchemaMismatchError, match="names a column twice") as raised:
            read_rows(paths, pa.schema(list(SCHEMA)[:columns]), mode=mode, **BY_NAME, **more)
        assert str(path) in str(raised.value)


@pytest.mark.parametrize("evolution", EvolutionMode)
def test_every_evolution_mode_refuses_it(tmp_path, evolution):
    path = _file(tmp_path, "id,n,N")
    options = ReaderOptions(**BY_NAME, schema_evolution_mode=evolution)
    reader = FileSplitReader(SCHEMA, options, CONTEXT, schema_is_inferred=True)
    with pytest.raises(SchemaMismatchError, match="names a column twice"):
        list(reader.read([whole(path)]))


def test_inference_refuses_it(tmp_path):
    file = version(_file(tmp_path, "id,n,N"))
    with pytest.raises(SchemaMismatchError, match=r"twice: .*a\.csv.*found id, n, N"):
        CsvFormat.columns_of(file, ReaderOptions(file_format="csv", header=True), 1000)


def test_columns_by_position_read_it_as_spark_does(tmp_path):
    path = _file(tmp_path, "id,n,n")
    rows = read_rows([path], SCHEMA, file_format="csv", header=True)
    assert [tuple(row.values()) for row in rows] == [(1, "x", "y"), (2, None, "z")]
