"""What the Spark that runs the tests lacks."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from pyspark_sluice.tests import answers

HAS_READ_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None
"""True since Spark 4.2."""

FOR_RUNS_THAT_END: dict[str, str] = {} if HAS_READ_LIMITS else {"availableNow": "true"}
"""Spark 4.0 and 4.1 do not tell a source that its query runs with trigger(availableNow=True)."""

SEVERAL_BATCHES = pytest.mark.skipif(
    not HAS_READ_LIMITS, reason="Spark before 4.2 requests one batch in an AvailableNow run"
)
REPORTS = pytest.mark.skipif(
    not HAS_READ_LIMITS, reason="Spark before 4.2 does not ask a Python source for its report"
)
AS_NEWEST = pytest.mark.skipif(
    answers.LINE != answers.NEWEST_LINE,
    reason=f"compares with what Spark {answers.NEWEST_LINE} has, and this one has not",
)
