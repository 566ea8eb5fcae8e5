"""A column is addressed by the parts of its path: a dot in a name is no step into a struct."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_sluice.errors import OptionError, SchemaMismatchError
from pyspark_sluice.reader.files.row_filter import Predicate
from pyspark_sluice.tests.reader.files.formats.table_files import write_table
from pyspark_sluice.tests.reader.files.reading import read_rows

pytestmark = pytest.mark.slow

ROWS = 899
INNER = pa.struct([("c", pa.int64()), ("c.d", pa.int64()), ("e", pa.struct([("d", pa.int64())]))])
COLUMNS = {
    "a.b": pa.array(range(ROWS)),
    "a": pa.array([{"b": -i, "c": str(i)} for i in range(ROWS)]),
    "s": pa.array([{"c": i, "c.d": 2 * i, "e": {"d": 3 * i}} for i in range(ROWS)], INNER),
    "s.c": pa.array([None if i % 3 else i for i in range(ROWS)], pa.int64()),
    "s.e.d": pa.array([str(i) for i in range(ROWS)]),
    ".": pa.array(range(ROWS)),
    "tick`s and spaces": pa.array([f"x{i}" for i in range(ROWS)]),
    "Größe": pa.array([float(i) for i in range(ROWS)]),
    "UPPER": pa.array(range(1, ROWS + 1)),
    "l.element": pa.array(range(ROWS)),
    "l": pa.array([[{"element": i, "x.y": -i}] for i in range(ROWS)]),
}
KINDS = ["parquet", "orc", "arrow"]
WANTED = [
    [("a.b", pa.int64())],
    [("a", pa.struct([("b", pa.int64())]))],
    [("a", pa.struct([("c", pa.string())])), ("a.b", pa.int64())],
    [("s", pa.struct([("c.d", pa.int64())]))],
    [("s", pa.struct([("e", pa.struct([("d", pa.int64())]))]))],
    [("s.e.d", pa.string()), ("s", pa.struct([("c", pa.int64())]))],
    [("s.c", pa.int64()), (".", pa.int64()), ("upper", pa.int64())],
    [("tick`s and spaces", pa.string()), ("größe", pa.float64())],
    [("l", pa.list_(pa.struct([("x.y", pa.int64())]))), ("l.element", pa.int64())],
    [("a.c", pa.string()), ("b", pa.int64())],
]


def _without_the_rest(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: _without_the_rest(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_without_the_rest(inner, kind.value_type) for inner in value]
    return value


CONDITIONS = {
    "`a.b` > 0": range(1, ROWS),
    "`a.b` < 0": range(0),
    "`s.c` IS NULL": [i for i in range(ROWS) if i % 3],
    "`s.c` IS NOT NULL AND `l.element` > 890": [891, 894, 897],
    "`.` >= 898": [898],
    "`tick``s and spaces` = 'x7'": [7],
    "größe > 896.5": [897, 898],
    "upper <= 1": [0],
}


@pytest.mark.parametrize("order", [1, -1], ids=["dotted first", "struct first"])
@pytest.mark.parametrize("name", KINDS)
def test_dots_in_names_do_not_lead_into_structs_nor_into_their_statistics(name, order, tmp_path):
    table = pa.table({column: COLUMNS[column] for column in list(COLUMNS)[::order]})
    path = tmp_path / "x"
    write_table(name, path, table, 100)
    folded = {column.lower(): COLUMNS[column].to_pylist() for column in COLUMNS}
    for wanted in WANTED:
        found = read_rows([path], pa.schema(wanted), file_format=name)
        for column, kind in wanted:
            values = folded.get(column.lower())
            expected = [values and _without_the_rest(values[i], kind) for i in range(ROWS)]
            assert [row[column] for row in found] == expected, (wanted, column)
    for condition, kept in CONDITIONS.items():
        found = read_rows([path], table.schema, file_format=name, filter=condition)
        assert [row["a.b"] for row in found] == list(kept), condition


@pytest.mark.parametrize("name", ["parquet", "orc"])
def test_of_names_that_differ_in_case_the_exact_one_is_read(name, tmp_path):
    write_table(name, tmp_path / "x", pa.table({"id": [1], "ID": [2]}))
    for column, value in (("id", 1), ("ID", 2)):
        schema = pa.schema([(column, pa.int64())])
        assert read_rows([tmp_path / "x"], schema, file_format=name) == [{column: value}]
    with pytest.raises(SchemaMismatchError, match="id, ID"):
        read_rows([tmp_path / "x"], pa.schema([("Id", pa.int64())]), file_format=name)


def test_a_name_with_a_dot_outside_of_backticks_is_no_column_of_a_filter():
    schema = pa.schema([("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64())])
    with pytest.raises(OptionError, match=r"a\.b") as caught:
        Predicate.parse("a.b > 1", schema)
    assert "`a.b`" in caught.value.expected
