"""The filter keeps the rows SQL would keep; a dot in a name is no step into a struct."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_sluice.errors import OptionError, SchemaMismatchError
from pyspark_sluice.reader.files.row_filter import Predicate
from pyspark_sluice.reader.files.testing import read_rows
from pyspark_sluice.tests.reader.files.formats.table_files import write_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("region", pa.string()),
        ("real", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("flag", pa.bool_()),
        ("small", pa.float32()),
    ]
)
BATCH = pa.RecordBatch.from_pylist(
    [
        {
            "id": None if i == 2 else i,
            "day": dt.date(2026, 1, 1 + i),
            "region": ["eu", "us", None, "it's"][i],
            "real": [1.0, float("nan"), 3.0, None][i],
            "price": i,
            "at": dt.datetime(2026, 1, 1, i, tzinfo=dt.UTC),
            "flag": [True, False, None, True][i],
            "small": [1.1, 1.0, None, 16777216.0][i],
        }
        for i in range(4)
    ],
    schema=SCHEMA,
)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("", [1, 2, 3, 4]),
        ("id >= 1", [2, 4]),
        ("id != 1", [1, 4]),
        ("ID <> 1 AND region = 'eu'", [1]),
        ("region in ('eu', 'us')", [1, 2]),
        ("region = 'it''s'", [4]),
        ("region IS NULL", [3]),
        ("id is not null and id < 3", [1, 2]),
        ("day > '2026-01-02'", [3, 4]),
        ("`day` == DATE '2026-01-02'", [2]),
        ("real > 2", [2, 3]),
        ("real < 2", [1]),
        ("price >= 1.50", [3, 4]),
        ("price > 1.999", [3, 4]),
        ("price < 99999999999999999999", [1, 2, 3, 4]),
        ("price in (1.001, 2)", [3]),
        ("id > 0.5", [2, 4]),
        ("id < 9223372036854775808", [1, 2, 4]),
        ("small > 1.1", [1, 4]),
        ("small = 16777217", []),
        ("small in (16777217, 16777216)", [4]),
        ("at < TIMESTAMP '2026-01-01 03:00:00'", [1, 2]),
        ("at < '2026-01-01T02:00:00+01:00'", [1]),
        ("flag = true", [1, 4]),
        ("part = 3 AND id = 1", [2]),
    ],
)
def test_rows_are_kept_as_in_sql_in_the_zone_of_the_session(text, days):
    kept = Predicate.parse(text, SCHEMA, {"part"}, "Europe/Berlin").keep(BATCH)
    assert [day.day for day in kept.column("day").to_pylist()] == days


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("nope = 1", "'nope'", "a column of the schema"),
        ("id = 'x'", "\"'x'\"", "a value of type int64 for column 'id'"),
        ("id = true", "'true'", "a value of type int64"),
        (f"price > 0.{'1' * 39}", f"'0.{'1' * 39}'", "a value of type decimal128"),
        ("flag = 1", "'1'", "a value of type bool"),
        ("day > TIMESTAMP '2026-01-01 12:00:00'", "\"'2026-01-01 12:00:00'\"", "a value of type"),
        ("region = 1", "'1'", "a value of type string"),
        ("id = 1 or id = 2", "'or'", "AND"),
        ("id ~ 3", "'~ 3'", "a comparison"),
        ("id <=> 3", "'<=>'", "one of"),
        ("id =", "its end", "a number"),
        ("id in (1,", "its end", "a number"),
        ("id in (1", "its end", ")"),
        ("id is 3", "'3'", "NULL"),
        ("= 3", "'='", "the name of a column"),
        ("day = '2026-13-01'", "\"'2026-13-01'\"", "a value of type date32"),
    ],
)
def test_what_does_not_parse_is_named_with_its_place(text, found, expected):
    with pytest.raises(OptionError, match=re.escape(repr(text))) as caught:
        Predicate.parse(text, SCHEMA)
    assert caught.value.found == found
    assert caught.value.expected.startswith(expected)


NUMBERS = st.integers(-3, 12)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], st.SearchStrategy[str]]] = {
    "i": (pa.int32(), st.integers(0, 9), NUMBERS.map(str)),
    "f": (
        pa.float64(),
        st.integers(0, 9).map(float) | st.just(float("nan")),
        NUMBERS.map(lambda n: str(n / 2)),
    ),
    "g": (
        pa.float32(),
        st.sampled_from([1.1, 16777216.0, 16777218.0, 1.0, float("nan")]),
        st.sampled_from(["1.1", "1.1e0", "16777217", "16777216", "1"]),
    ),
    "n": (pa.int8(), st.integers(-2, 3), st.sampled_from(["1", "1.5", "2.0", "300", "-1e0"])),
    "s": (pa.string(), st.sampled_from("abcde"), st.sampled_from("abcdef").map(repr)),
    "d": (
        pa.date32(),
        st.integers(1, 9).map(lambda n: dt.date(2026, 1, n)),
        st.integers(1, 12).map(lambda n: f"'2026-01-{n:02}'"),
    ),
    "t": (
        pa.timestamp("us", "UTC"),
        st.integers(1, 9).map(lambda n: dt.datetime(2026, 1, n, tzinfo=dt.UTC)),
        st.integers(1, 12).map(lambda n: f"'2026-01-{n:02} 00:00:00'"),
    ),
    "b": (pa.bool_(), st.booleans(), st.sampled_from(["true", "false"])),
}
"""The type of each column, its values, and literals in conditions on it."""


@st.composite
def conditions(draw: Any) -> str:
    column = draw(st.sampled_from(sorted(COLUMNS)))
    op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "IN", "IS NULL", "IS NOT NULL"]))
    if op.startswith("IS"):
        return f"{column} {op}"
    literals = COLUMNS[column][2]
    if op == "IN":
        return f"{column} IN ({', '.join(draw(st.lists(literals, min_size=1)))})"
    return f"{column} {op} {draw(literals)}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.lists(
        st.fixed_dictionaries({name: st.none() | column[1] for name, column in COLUMNS.items()}),
        max_size=12,
    ),
    text=st.lists(conditions(), min_size=1, max_size=3).map(" AND ".join),
    group_rows=st.integers(1, 6),
)
def test_the_rows_do_not_depend_on_row_groups(data, text, group_rows, tmp_path):
    schema = pa.schema([(name, column[0]) for name, column in COLUMNS.items()])
    table = pa.Table.from_pylist(data, schema)
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=group_rows)
    # A wider type in the schema than in the file must not change what is skipped either.
    wide = schema.set(0, pa.field("i", pa.int64()))
    found = read_rows([path], wide, file_format="parquet", filter=text)
    whole = Predicate.parse(text, schema)
    expected = [
        row for b in table.combine_chunks().to_batches() for row in whole.keep(b).to_pylist()
    ]
    assert repr(found) == repr(expected)


def test_row_groups_that_cannot_match_and_columns_that_are_left_out_are_not_read(tmp_path):
    path = tmp_path / "x.parquet"
    numbers = list(range(1000))
    structs = [{"a": i, "b": "y"} for i in numbers]
    table = pa.table({"id": numbers, "bulk": ["x" * 100] * 1000, "s": structs})
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="none")
    data, metadata = bytearray(path.read_bytes()), pq.read_metadata(path)
    for group in range(10):
        for column in range(4):
            chunk = metadata.row_group(group).column(column)
            if group < 2 or chunk.path_in_schema == "bulk":
                # Reading the column here would fail.
                start, size = chunk.data_page_offset, chunk.total_compressed_size
                data[start : start + size] = bytes(size)
    path.write_bytes(data)
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())]))])
    rows = read_rows([path], schema, file_format="parquet", filter="id >= 250")
    assert rows == [{"id": i, "s": {"a": i}} for i in range(250, 1000)]


ROWS = 899
INNER = pa.struct([("c", pa.int64()), ("c.d", pa.int64()), ("e", pa.struct([("d", pa.int64())]))])
DOTTED = {
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


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1], ids=["dotted first", "struct first"])
@pytest.mark.parametrize("name", ["parquet", "orc", "arrow"])
@pytest.mark.sample("dotted first", why="the other order of the same columns")
def test_dots_in_names_do_not_lead_into_structs_nor_into_their_statistics(name, order, tmp_path):
    table = pa.table({column: DOTTED[column] for column in list(DOTTED)[::order]})
    path = tmp_path / "x"
    write_table(name, path, table, 100)
    folded = {column.lower(): DOTTED[column].to_pylist() for column in DOTTED}
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
