"""Rows by partition: every combination of values by itself, for any number of columns."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from pyspark_sluice.reader.direct_write.partitioning import Partitioning


# With null, each column below has sixteen values: of 17 columns there are 2^68 combinations.
@pytest.mark.parametrize("columns", [1, 16, 17, 40])
def test_no_two_combinations_of_values_share_a_partition(columns):
    names = [f"c{index}" for index in range(columns)]
    found = [(value,) * columns for value in range(15)]
    # Each differs in one column from the first row.
    found += [(0,) * index + (1,) + (0,) * (columns - index - 1) for index in range(columns)]
    found += found[:3]
    values = [pa.array(column, pa.int8()) for column in zip(*found, strict=True)]
    batch = pa.record_batch([pa.array(range(len(found))), *values], ["id", *names])
    expected: dict[tuple[str, ...], list[int]] = {}
    # The values of each column are 0, 1, 2 ... in the order in which they come.
    for row in sorted(range(len(found)), key=found.__getitem__):
        expected.setdefault(tuple(map(str, found[row])), []).append(row)
    parts = Partitioning(batch.schema, names).split(batch)
    assert [(key, part["id"].to_pylist()) for key, part in parts] == list(expected.items())


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("America/New_York", ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.500000Z"]),
        (None, ["2024-01-02 03:04:05", "2024-01-02 03:04:05.500000"]),
    ],
)
def test_an_instant_has_its_zone_and_a_local_time_has_none(zone, expected):
    whole = dt.datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001 - a local time
    at = pa.array([whole, whole.replace(microsecond=500_000)], pa.timestamp("us"))
    if zone is not None:
        at = at.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
    parts = Partitioning((batch := pa.record_batch([[1, 2], at], ["id", "at"])).schema, ["at"])
    assert [values for values, _ in parts.split(batch)] == [(text,) for text in expected]
