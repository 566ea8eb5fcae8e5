"""A join of two backlogs of different lengths, whose sources are aligned or not."""

from __future__ import annotations

import pytest

from pyspark_sluice.benchmarks.alignment_row import join
from pyspark_sluice.benchmarks.event_time_row import write_hours

pytestmark = pytest.mark.slow

ROWS = 20


def test_the_state_of_a_join_of_aligned_sources_is_bounded_and_no_row_is_missing(spark, tmp_path):
    clicks, orders = tmp_path / "clicks", tmp_path / "orders"
    write_hours(clicks, days=8, rows=ROWS)
    write_hours(orders, days=4, rows=ROWS, first=4)
    limits = (24, 24)
    aligned = join(spark, clicks, orders, "both", limits)
    apart = join(spark, clicks, orders, "", limits)
    assert aligned.rows == apart.rows > 0
    # A batch of each, the skew between them, and what the watermarks hold back for two batches.
    assert aligned.state <= 5 * 24 * ROWS
    assert apart.state >= 8 * 24 * ROWS * 0.9
