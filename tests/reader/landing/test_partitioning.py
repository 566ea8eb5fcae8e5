"""Rows by partition: every combination of values by itself, for any number of columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_sluice.reader.landing.partitioning import Partitioning


# With null, each column below has sixteen values: of 17 columns there are 2^68 combinations.
@pytest.mark.parametrize("columns", [1, 2, 15, 16, 17, 40])
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
