"""A join of two backlogs that are read at different speeds, whose sources are aligned or not."""

from __future__ import annotations

import pytest
from pyspark.sql.functions import expr

from pyspark_sluice.tests.spark.hours import drain, in_event_time, write_hours

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thorough("the simulation of aligned sources shows the same without Spark"),
]

ROWS = 20


def join(spark, root, **options):
    """(rows that the join returned, most rows of state after any batch)."""
    checkpoint = root / f"checkpoint-{len(options)}"
    clicks, orders = (
        in_event_time(
            spark, root / name, checkpoint, 12, sourceName=name, maxFilesPerTrigger=files, **options
        ).alias(name)
        for name, files in (("clicks", "6"), ("orders", "12"))
    )
    near = "clicks.at between orders.at - interval 15 minutes and orders.at"
    joined, counts = clicks.join(orders, expr(f"clicks.key = orders.key and {near}")), []
    progress = drain(joined, checkpoint, lambda frame, _: counts.append(frame.count()), "append")
    states = [sum(each["numRowsTotal"] for each in batch["stateOperators"]) for batch in progress]
    return sum(counts), max(states)


def test_the_state_of_a_join_of_aligned_sources_is_bounded_and_no_row_is_missing(spark, tmp_path):
    for name in ("clicks", "orders"):
        write_hours(tmp_path / name, days=4, rows=ROWS)
    aligned_rows, aligned_state = join(spark, tmp_path, alignmentGroup="both")
    rows, state = join(spark, tmp_path)
    assert aligned_rows == rows > 0
    # Orders: the skew, and what came since the watermark, which is two batches of clicks and an
    # hour old. Clicks: what came since the watermark.
    assert aligned_state <= (12 + 2 * 13) * ROWS
    # All orders are read when clicks are half-way.
    assert state > 48 * ROWS
