"""A decision and its effect are one step: what another thread does comes before or after it."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.enumerator import CoordinatorSettings
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.errors import ProtocolError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import rest
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import opened


def test_a_commit_that_is_counted_in_half_is_in_no_checkpoint():
    """Spark's thread may have the lock before the background thread's failure is known."""
    limits = BatchLimits(files=2)
    settings = CoordinatorSettings(
        limits, parallelism=2, discovery_timeout=0.0, checkpoints_ahead=0
    )
    query = Harness(range(6), settings)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, unfinished=[rest(100)], events=[("hello", 1), ("unknown", 2)])
    query.acknowledge(first, 1)
    with pytest.raises(ProtocolError, match="an event of an unregistered type"):
        opened(query.coordinator).acknowledgements.look()
    for _ in range(2):
        with pytest.raises(ProtocolError, match="an event of an unregistered type"):
            query.coordinator.latest(first)
    assert query.coordinator.history.checkpoints() == [first]


def test_a_handler_that_fails_in_half_is_in_no_checkpoint():
    query = Harness(range(6), CoordinatorSettings(parallelism=2, discovery_timeout=0.0))
    query.start()
    enumerator = query.enumerator

    def handle(*_):
        enumerator.pending.append(100)
        raise ProtocolError("half of it is done")

    enumerator.context.call_async(lambda: None, handle)
    query.calls.run_calls()
    with pytest.raises(ProtocolError, match="half of it is done"):
        query.coordinator.latest(NO_CHECKPOINT)
    assert query.coordinator.history.checkpoints() == []
