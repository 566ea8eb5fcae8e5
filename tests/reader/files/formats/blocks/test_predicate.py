"""The filter keeps the rows SQL would keep, and blocks are only skipped where no row is."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_sluice.errors import OptionError
from pyspark_sluice.reader.files.row_filter import Predicate
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import format_of
from pyspark_sluice.tests.reader.files.reading import read_rows, version

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
        ("at < TIMESTAMP '2026-01-01 02:00:00'", [1, 2]),
        ("at < '2026-01-01T02:00:00+01:00'", [1]),
        ("flag = true", [1, 4]),
        ("part = 3 AND id = 1", [2]),
    ],
)
def test_rows_are_kept_as_in_sql(text, days):
    kept = Predicate.parse(text, SCHEMA, {"part"}).keep(BATCH)
    assert [day.day for day in kept.column("day").to_pylist()] == days


def test_timestamps_without_a_zone_are_in_the_session_s():
    predicate = Predicate.parse("at >= '2026-01-01 04:00:00'", SCHEMA, (), "Europe/Berlin")
    assert predicate.keep(BATCH).num_rows == 1


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


def test_row_groups_that_cannot_match_are_not_read(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"id": list(range(1000)), "text": ["x" * 100] * 1000})
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="none")
    # What lies in the first row group's data is destroyed: reading it would fail.
    data = bytearray(path.read_bytes())
    file = version(path)
    first = format_of("parquet", table.schema).blocks(file)[0]
    data[4 : first.end] = bytes(first.end - 4)
    path.write_bytes(data)
    rows = read_rows([path], table.schema, file_format="parquet", filter="id >= 250")
    assert [row["id"] for row in rows] == list(range(250, 1000))
