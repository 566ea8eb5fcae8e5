"""A join of two backlogs that are read at different speeds, whose sources are aligned or not."""

from __future__ import annotations

import pytest

from pyspark_sluice.benchmarks.alignment_row import join
from pyspark_sluice.benchmarks.event_time_row import write_hours

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thorough("the simulation of aligned sources shows the same without Spark"),
]

ROWS = 20


def test_the_state_of_a_join_of_aligned_sources_is_bounded_and_no_row_is_missing(spark, tmp_path):
    clicks, orders = tmp_path / "clicks", tmp_path / "orders"
    for path in (clicks, orders):
        write_hours(path, days=4, rows=ROWS)
    aligned = join(spark, clicks, orders, "both", hours=(6, 12))
    apart = join(spark, clicks, orders, "", hours=(6, 12))
    assert aligned.rows == apart.rows > 0
    # Orders: the skew, and what came since the watermark, which is two batches of clicks and an
    # hour old. Clicks: what came since the watermark.
    assert aligned.state <= (12 + 2 * 13) * ROWS
    # All orders are read when clicks are half-way.
    assert apart.state > 48 * ROWS
