"""Columns are fitted by name, and no cast loses anything."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.values.column_fitter import ColumnFitter

UTC = pa.timestamp("us", "UTC")
DAY = dt.date(2026, 1, 2)
WHEN = dt.datetime.fromisoformat("2026-01-02T03:04:05.000006")


def fit(array: pa.Array, target: pa.DataType, *, nullable: bool = True, zone: str = "UTC") -> Any:
    fitter = ColumnFitter(pa.schema([pa.field("c", target, nullable)]), zone)
    fitted = fitter.fit(pa.record_batch([array], names=["c"]), "/data/f")
    fitted.validate(full=True)
    assert fitted.schema == fitter.schema
    assert fitted.column(0).type == target
    return fitted.column(0).to_pylist()


@pytest.mark.parametrize(
    ("array", "target", "expected"),
    [
        (pa.array([1, None], pa.int8()), pa.int64(), [1, None]),
        (pa.array([2**31 - 1], pa.int64()), pa.int32(), [2**31 - 1]),
        (pa.array([7], pa.uint64()), pa.int16(), [7]),
        (pa.array([1.5], pa.float32()), pa.float64(), [1.5]),
        (pa.array([3], pa.int32()), pa.float64(), [3.0]),
        (pa.array([3], pa.int64()), pa.decimal128(5, 2), [Decimal("3.00")]),
        (pa.array([Decimal("1.50")]), pa.decimal128(20, 4), [Decimal("1.5000")]),
        (pa.array([Decimal("1.50")], pa.decimal256(40, 2)), pa.decimal128(3, 1), [Decimal("1.5")]),
        (pa.array(["a", None], pa.large_string()), pa.string(), ["a", None]),
        (pa.array(["a"], pa.string_view()), pa.string(), ["a"]),
        (pa.array([b"a"], pa.binary_view()), pa.binary(), [b"a"]),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
        (pa.array([b"ab"], pa.binary()), pa.string(), ["ab"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string(), ["a", "b", "a"]),
        (pa.array([DAY], pa.date64()), pa.date32(), [DAY]),
        (pa.array([WHEN], pa.timestamp("us")), pa.timestamp("us"), [WHEN]),
        (
            pa.array([DAY], pa.date32()),
            pa.timestamp("us"),
            [dt.datetime.fromisoformat("2026-01-02")],
        ),
        (pa.array([None, None]), pa.map_(pa.string(), UTC), [None, None]),
        (
            pa.array([[1], None, []], pa.large_list(pa.int32())),
            pa.list_(pa.int64()),
            [[1], None, []],
        ),
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), pa.list_(pa.int64()), [[1, 2], None]),
        (pa.array([["a"], None], pa.list_view(pa.string())), pa.list_(pa.string()), [["a"], None]),
    ],
    ids=str,
)
def test_values_keep_their_meaning(array, target, expected):
    assert fit(array, target) == expected


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([2**31], pa.int64()), pa.int32()),
        (pa.array([-1], pa.int32()), pa.uint8()),
        (pa.array([2**53 + 1], pa.int64()), pa.float64()),
        (pa.array([Decimal("1.55")]), pa.decimal128(5, 1)),
        (pa.array([Decimal("123.4")]), pa.decimal128(3, 1)),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([1], pa.timestamp("ns", "UTC")), UTC),
        (pa.array([1], pa.date64()), pa.date32()),
        (pa.array([b"\xff"], pa.binary()), pa.string()),
    ],
    ids=str,
)
def test_a_cast_that_loses_something_names_file_column_and_types(array, target):
    with pytest.raises(SchemaMismatchError) as caught:
        fit(array, target)
    assert "'c'" in str(caught.value)
    assert caught.value.where == "/data/f"
    assert caught.value.found.startswith(str(array.type))
    assert caught.value.expected == f"{target}, without loss"


@pytest.mark.parametrize(
    ("value", "kind", "target"),
    [
        (-(2**63), pa.int64(), pa.float64()),
        (2**53 + 2, pa.int64(), pa.float64()),
        (2**64 - 2**11, pa.uint64(), pa.float64()),
        (2**24 + 2, pa.int32(), pa.float32()),
    ],
)
def test_integers_that_a_float_holds_exactly_are_taken_however_large(value, kind, target):
    assert fit(pa.array([value, None, 1], kind), target) == [float(value), None, 1.0]
    for off in (value + 1, value - 1 if value > 0 else value + 2):
        with pytest.raises(SchemaMismatchError, match="without loss"):
            fit(pa.array([off], kind), target)


@pytest.mark.parametrize(
    ("found", "target"),
    [
        (pa.string(), pa.int32()),
        (pa.int32(), pa.string()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.float64(), pa.decimal128(10, 2)),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.bool_(), pa.int8()),
        (UTC, pa.timestamp("us")),
        (UTC, pa.date32()),
        (pa.list_(pa.string()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.string())]), pa.struct([("a", pa.int32())])),
        (pa.int32(), pa.struct([("a", pa.int32())])),
    ],
    ids=str,
)
def test_types_that_never_fit_are_refused_without_a_value(found, target):
    with pytest.raises(SchemaMismatchError, match="does not fit the schema"):
        fit(pa.nulls(0, found), target)


def test_columns_are_found_by_name_in_the_schema_s_order():
    fitter = ColumnFitter(pa.schema([("b", pa.int32()), ("gone", pa.string()), ("A", pa.int32())]))
    batch = pa.record_batch([[1], [2], [3]], schema=pa.schema([(n, pa.int32()) for n in "axb"]))
    assert fitter.fit(batch, "f").to_pylist() == [{"b": 3, "gone": None, "A": 1}]
    assert fitter.wanted(batch.schema, "f") == [0, 2]


def test_an_exact_name_goes_before_one_in_other_case():
    fitter = ColumnFitter(pa.schema([("a", pa.int64())]))
    assert fitter.fit(pa.record_batch({"A": [1], "a": [2]}), "f").to_pylist() == [{"a": 2}]


def test_two_columns_that_match_equally_are_refused_by_name():
    fitter = ColumnFitter(pa.schema([("a", pa.int64())]))
    batch = pa.record_batch([[1], [2]], names=["A", "A"])
    with pytest.raises(SchemaMismatchError, match="2 columns of that name: A, A"):
        fitter.fit(batch, "f")


def test_a_missing_column_that_may_not_be_null_is_refused():
    fitter = ColumnFitter(pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    expected = "column 'a' does not fit the schema: /data/f; found no such column"
    with pytest.raises(SchemaMismatchError, match=re.escape(expected)):
        fitter.fit(pa.record_batch({"b": [1]}), "/data/f")


def test_a_null_in_a_column_that_may_not_be_null_is_refused_with_its_row():
    with pytest.raises(SchemaMismatchError, match="null in row 1 of the batch"):
        fit(pa.array([1, None]), pa.int64(), nullable=False)


def test_structs_are_fitted_by_name_all_the_way_down():
    found = pa.array([{"a": 1, "b": [{"x": 1, "y": "q"}]}, None, {"a": 2, "b": None}])
    inner = pa.struct([("Y", pa.string()), ("z", pa.date32())])
    target = pa.struct([("b", pa.list_(inner)), ("a", pa.int32())])
    expected = [{"b": [{"Y": "q", "z": None}], "a": 1}, None, {"b": None, "a": 2}]
    assert fit(found, target) == expected


def test_a_null_struct_does_not_count_for_fields_that_may_not_be_null():
    target = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    assert fit(pa.array([{"a": 1}, None]), target) == [{"a": 1}, None]
    with pytest.raises(SchemaMismatchError, match=r"'c\.a'"):
        fit(pa.array([{"a": 1}, {"a": None}]), target)


def test_zoneless_timestamps_hang_in_the_given_zone():
    array = pa.array([dt.datetime.fromisoformat("2026-07-01T12:00")], pa.timestamp("us"))
    assert fit(array, UTC)[0].hour == 12
    assert fit(array, UTC, zone="Europe/Berlin")[0].hour == 10


@given(
    data=st.lists(
        st.none()
        | st.fixed_dictionaries(
            {
                "l": st.none() | st.lists(st.none() | st.integers(-100, 100), max_size=3),
                "m": st.none() | st.lists(st.tuples(st.text(max_size=2), st.integers(0, 9))),
            }
        ),
        max_size=8,
    ),
    start=st.integers(0, 8),
    length=st.integers(0, 8),
)
def test_nested_columns_survive_slicing_and_nulls(data, start, length):
    found = pa.struct(
        [("m", pa.map_(pa.large_string(), pa.int64())), ("l", pa.large_list(pa.int32()))]
    )
    target = pa.struct([("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int16()))])
    array = pa.array(data, found).slice(min(start, len(data)), length)
    expected = [
        None if row is None else {"l": row["l"], "m": row["m"]}
        for row in data[min(start, len(data)) :][:length]
    ]
    assert fit(array, target) == expected
