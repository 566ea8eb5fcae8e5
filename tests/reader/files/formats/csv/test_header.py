"""Headers of CSV: a name that comes twice is refused, and another order never read by position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.formats.csv.format import CsvFormat
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.files.reading import read_rows, version

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


def test_inference_refuses_it(tmp_path):
    file = version(_file(tmp_path, "id,n,N"))
    with pytest.raises(SchemaMismatchError, match=r"twice: .*a\.csv.*found id, n, N"):
        CsvFormat.columns_of(file, ReaderOptions(file_format="csv", header=True), 1000)


def test_columns_by_position_read_it_as_spark_does(tmp_path):
    path = _file(tmp_path, "id,n,n")
    rows = read_rows([path], SCHEMA, file_format="csv", header=True)
    assert [tuple(row.values()) for row in rows] == [(1, "x", "y"), (2, None, "z")]


ORDERED = pa.schema([("id", pa.int64()), ("qty", pa.int64()), ("price", pa.int64())])
SWAPPED = {"all": "price,id,qty", "one more": "x,id,qty,price", "one less": "price,x"}
BY_POSITION = [{"mode": mode} for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")]
BY_POSITION.append({"mode": "DROPMALFORMED", "bad_records_path": "bad"})


@pytest.mark.parametrize("header", SWAPPED.values(), ids=list(SWAPPED))
@pytest.mark.parametrize("given", BY_POSITION)
@pytest.mark.parametrize("more", [{}, {"multi_line": True}])
def test_another_order_is_refused_in_every_mode_that_reads_by_position(
    tmp_path, header, given, more
):
    path = _file(tmp_path, header, "a.csv", "30,10,20")
    good = _file(tmp_path, "ID,other,price", "good.csv", "1,2,3")
    options: dict[str, Any] = {"file_format": "csv", "header": True, **given, **more}
    [row] = read_rows([good], ORDERED, **options)
    assert row == {"id": 1, "qty": 2, "price": 3}, "other names are read by position"
    for paths in ([path], [good, path]):
        with pytest.raises(SchemaMismatchError, match="does not fit the schema") as raised:
            read_rows(paths, ORDERED, **options)
        assert str(path) in str(raised.value)


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("more", [{}, {"multi_line": True}])
@pytest.mark.parametrize("rescue", [{}, {"schema_evolution_mode": "rescue"}])
def test_with_a_rescued_data_column_the_header_names_the_columns(tmp_path, mode, more, rescue):
    paths = [
        _file(tmp_path, "id,qty,price", "1.csv", "1,2,3"),
        _file(tmp_path, "price,id,qty", "2.csv", "30,10,20"),
        _file(tmp_path, "new,price,ID", "3.csv", "x,300,100", "y,bad,200"),
    ]
    schema = ORDERED.append(pa.field("_r", pa.string()))
    options = {"file_format": "csv", "header": True, "rescued_data_column": "_r", "mode": mode}
    rows = read_rows(paths, schema, **options, **more, **rescue)
    assert [tuple(row.values()) for row in rows] == [
        (1, 2, 3, None),
        (10, 20, 30, None),
        (100, None, 300, '{"new":"x"}'),
        (200, None, None, '{"new":"y","price":"bad"}'),
    ]
