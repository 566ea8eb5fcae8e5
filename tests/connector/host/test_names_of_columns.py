"""Columns of files with names that are also used in another way."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pyspark_sluice import run
from pyspark_sluice.errors import OptionError, SchemaMismatchError

pytestmark = pytest.mark.slow


@pytest.fixture
def read(tmp_path):
    (tmp_path / "in").mkdir()

    def read(kind, text, **options):
        if kind == "parquet":
            pq.write_table(text, tmp_path / "in/1.parquet")
        else:
            (tmp_path / f"in/1.{kind}").write_text(text)
        to, checkpoint = f"delta:{tmp_path / 'table'}", str(tmp_path / "ck")
        run(str(tmp_path / "in"), format=kind, checkpoint=checkpoint, to=to, **options)
        return DeltaTable(str(tmp_path / "table")).to_pyarrow_table().to_pylist()

    return read


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
@pytest.mark.parametrize("value", ["x", 7])
def test_a_column_without_a_name_keeps_its_values(read, value, mode):
    text = f'{{"id": "1", "": "{value}"}}\n' if value == "x" else f'{{"id": "1", "": {value}}}\n'
    (row,) = read("json", text, mode=mode)
    assert row[""] in (value, str(value))


@pytest.mark.parametrize("name", ["", "_metadata"])
def test_such_a_column_of_a_columnar_file_keeps_its_values(read, name):
    table = pa.table({"id": ["1"], name: ["x"]})
    assert read("parquet", table) == [{"id": "1", name: "x"}]


@pytest.mark.parametrize(
    ("kind", "text", "options"),
    [
        ("json", '{"id": "1", "_metadata": "x"}\n', {}),
        ("csv", "id,_metadata\n1,x\n", {"header": "true"}),
        ("xml", "<r><row><id>1</id><_metadata>x</_metadata></row></r>", {"rowTag": "row"}),
    ],
)
def test_a_column_of_files_may_have_the_name_of_what_spark_makes(read, kind, text, options):
    (row,) = read(kind, text, **options)
    assert row["_metadata"] == "x"


def test_a_struct_of_that_name_is_read_as_text(read):
    text = '{"id": "1", "_metadata": {"by": "x"}}\n'
    with pytest.raises(OptionError, match="schemaHints='_metadata string'"):
        read("json", text)
    (row,) = read("json", text, schemaHints="_metadata string")
    assert row["_metadata"] == '{"by": "x"}'


def test_a_column_that_is_nested_too_deeply_is_read_as_text(read):
    text = '{"a": ' * 200 + "1" + "}" * 200 + "\n"
    with pytest.raises(SchemaMismatchError, match="nested too deeply"):
        read("json", text)
    assert len(read("json", text, schemaHints="a string")) == 1
