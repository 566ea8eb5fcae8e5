"""Each planted bug is shown by its trace, and by nothing but the bug."""

from __future__ import annotations

import pytest

from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.protocol.broken import BROKEN, GATEWAYS, IN_FLIGHT
from pyspark_sluice.tests.protocol.traces import traces

TRACES = {trace.bug: trace for trace in traces()}


def test_each_planted_bug_has_a_trace():
    assert list(TRACES) == [broken.__name__ for broken in (*BROKEN, *IN_FLIGHT, *GATEWAYS)]


@pytest.mark.parametrize("bug", TRACES)
def test_a_planted_bug_is_caught(bug):
    trace = TRACES[bug]
    trace.replay()
    with pytest.raises((AssertionError, SluiceError), match=trace.error):
        trace.replay(trace.broken)
