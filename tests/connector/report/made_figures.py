"""The figures of a report over batches that started when a test says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark_sluice.connector.report.figures import Batch, Figures
from pyspark_sluice.connector.views.owner import Owner

BEGIN = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)


def figures(starts, owner=None, **more):
    batches = [
        Batch(number, BEGIN + timedelta(seconds=start), 0.5, 100, 1000, 0, 0, 0.2, 0.1)
        for number, start in enumerate(starts, 1)
    ]
    given = {"files": {}, "quarantine": [], "in_flight": [], **more}
    return Figures("/state", batches, owner=owner or Owner(1, "here", 7, "running"), **given)
