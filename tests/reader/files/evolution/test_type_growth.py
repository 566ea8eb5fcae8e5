"""Types of a schema that grow: what is added, what is widened, what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_sluice.errors import SchemaMismatchError
from pyspark_sluice.reader.files.evolution.type_growth import (
    added_or_widened,
    aligned,
    fitted,
    grown,
    wider,
)

ID = pa.schema([("id", pa.int32())])


def test_new_columns_and_fields_come_last_and_types_stay():
    before = pa.schema([("at", pa.struct([("zip", pa.string())])), ("id", pa.int32())])
    found = pa.schema(
        [
            ("new", pa.bool_()),
            ("id", pa.int64()),
            ("at", pa.struct([("city", pa.string()), ("zip", pa.int64())])),
        ]
    )
    after = grown(before, found, widen=False)
    at = pa.struct([("zip", pa.string()), ("city", pa.string())])
    assert after == pa.schema([("at", at), ("id", pa.int32()), ("new", pa.bool_())])
    assert added_or_widened(before, found, widen=False) == ["at.city string", "new bool"]
    assert added_or_widened(before, found, widen=True) == ["at.city string", "id int64", "new bool"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (pa.int64(), pa.decimal128(10, 2), pa.decimal128(22, 2)),
        (pa.decimal128(5, 4), pa.decimal128(10, 0), pa.decimal128(14, 4)),
        (pa.decimal128(38, 0), pa.decimal128(10, 2), None),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us", "UTC"), None),
        (pa.int64(), pa.string(), None),
        (pa.bool_(), pa.int8(), None),
    ],
)
def test_a_wider_type_takes_every_value_of_both_or_does_not_exist(one, other, both):
    assert wider(one, other) == wider(other, one) == both


def test_names_that_differ_in_case_are_aligned_or_refused():
    found = pa.struct([("ID", pa.int32()), ("more", pa.int8())])
    before = pa.struct([("id", pa.int32())])
    assert aligned(found, before) == pa.struct([("id", pa.int32()), ("more", pa.int8())])
    both = pa.struct([("id", pa.int32()), ("ID", pa.int32())])
    assert aligned(both, before) == both
    with pytest.raises(SchemaMismatchError, match="id and ID"):
        grown(ID, pa.schema(list(both)), widen=False)


def test_what_has_only_been_null_is_no_news():
    found = pa.schema([("n", pa.null()), ("id", pa.null())])
    assert added_or_widened(ID, found, widen=True) == []


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.decimal128(5, -2), pa.decimal128(7, 0)),
        (pa.float16(), pa.float32()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.list_(pa.uint8(), 3), pa.list_(pa.field("element", pa.int16()))),
        (pa.large_list(pa.string_view()), pa.list_(pa.field("element", pa.string()))),
        (pa.map_(pa.string(), pa.uint16()), pa.map_(pa.string(), pa.int32())),
        (pa.timestamp("ns", "Europe/Rome"), pa.timestamp("us", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.binary(16), pa.binary()),
    ],
)
def test_types_of_files_become_types_of_spark(found, kind):
    assert fitted(found) == kind


@pytest.mark.parametrize(
    "found",
    [pa.time64("us"), pa.duration("s"), pa.decimal256(50, 0), pa.decimal128(38, -1)],
)
def test_a_type_that_spark_does_not_have_is_no_other_one(found):
    with pytest.raises(TypeError):
        fitted(found)
