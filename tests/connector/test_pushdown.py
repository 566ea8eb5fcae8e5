"""Spark's conditions in this reader's words: each keeps at least the rows that Spark keeps."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from pyspark_sluice.connector.batch_reader import SluiceBatchReader
from pyspark_sluice.connector.pushdown import conditions_of
from pyspark_sluice.reader.files.formats.filter.predicate import Predicate

NAN = float("nan")
CENTS, INSTANT = pa.decimal128(9, 2), pa.timestamp("us", "UTC")
TABLE = pa.record_batch(
    {
        "i": pa.array([0, 1, None, 3], pa.int32()),
        "d": pa.array([-0.0, NAN, None, 5.0]),
        "s": pa.array(["", "ä", None, "z"]),
        "n": pa.array([None if n == 2 else Decimal(n) * 5 / 4 for n in range(4)], CENTS),
        "day": pa.array([date(1, 1, 1), date(2024, 1, 2), None, date(9999, 12, 31)]),
        "at": pa.array([datetime(2024, 1, n, tzinfo=UTC) for n in (1, 2, 3, 4)], INSTANT),
    }
)
CASES = [
    ([EqualTo(("i",), 3)], [3]),
    ([EqualNullSafe(("i",), 3)], [3]),
    ([Not(EqualTo(("i",), 3))], [0, 1]),
    ([GreaterThan(("i",), 0), LessThanOrEqual(("i",), 3)], [1, 3]),
    ([In(("i",), (1, None, 9))], [1]),
    ([IsNull(("i",))], [2]),
    ([Not(IsNull(("i",)))], [0, 1, 3]),
    ([IsNotNull(("s",))], [0, 1, 3]),
    ([EqualTo(("d",), 0.0)], [0]),
    ([GreaterThanOrEqual(("d",), 5.0)], [1, 3]),
    ([Not(EqualTo(("d",), 5.0))], [0, 1]),
    ([LessThan(("s",), "ä")], [0, 3]),
    ([GreaterThan(("n",), Decimal("1.2"))], [1, 3]),
    ([LessThan(("day",), date(2024, 1, 2))], [0]),
    ([EqualTo(("at",), datetime(2024, 1, 2, 1, tzinfo=timezone(timedelta(hours=1))))], [1]),
]
LEFT_TO_SPARK = [
    EqualTo(("i",), None),
    EqualTo(("i",), True),
    EqualTo(("i",), 2**40),
    EqualTo(("d",), NAN),
    In(("d",), (NAN, 1.0)),
    Not(In(("i",), (1,))),
    Not(GreaterThan(("i",), 1)),
    EqualTo(("a", "b"), 1),
    EqualTo(("gone",), 1),
    StringStartsWith(("s",), "a"),
    GreaterThan(("n",), Decimal("1.255")),
]


@pytest.mark.parametrize(("filters", "kept"), CASES)
def test_a_condition_keeps_the_rows_that_sql_keeps(filters, kept):
    conditions = conditions_of(filters, TABLE.schema)
    assert len(conditions) == len(filters)
    numbered = TABLE.append_column("row", pa.array(range(4)))
    assert Predicate(tuple(conditions)).keep(numbered).column("row").to_pylist() == kept


@pytest.mark.parametrize("one", LEFT_TO_SPARK, ids=repr)
def test_what_is_not_understood_is_left_to_spark(one):
    assert conditions_of([one], TABLE.schema) == []


def test_nothing_is_left_out_before_rows_are_numbered():
    metadata = pa.field("_metadata", pa.struct([("row_index", pa.int64())]))
    assert conditions_of([EqualTo(("i",), 3)], TABLE.schema.append(metadata)) == []


def test_spark_sees_an_inherited_method_and_gets_every_filter_back():
    reader = SluiceBatchReader({}, StructType())
    assert reader.pushFilters.__func__ is DataSourceReader.pushFilters
    given: list[Filter] = [EqualTo(("i",), 3)]
    assert reader.pushFilters(given) is given
    assert reader._filters == tuple(given)
