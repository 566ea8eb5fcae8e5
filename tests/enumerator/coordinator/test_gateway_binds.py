"""What a gateway decides: a part is handed out when its reader's commit has released it."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import (
    part_of,
)
from pyspark_sluice.enumerator import CoordinatorSettings
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.errors import ProtocolError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import rest
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import opened


def two_in_flight(*, continued: bool, patience: float = 0.0):
    """A query whose first batch runs, and whose second is cut and durable."""
    limits = BatchLimits(files=2)
    query = Harness(range(6), CoordinatorSettings(limits, parallelism=2, discovery_timeout=0.0))
    query.restart(commit_patience=patience)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.coordinator.assignments(NO_CHECKPOINT, first)
    if continued:
        assert query.enumerator.context.continue_split(0, "n0")
    query.calls.tick()
    (second,) = [record.ref for record in opened(query.coordinator).flight.ahead]
    return query, first, second


def values(query, start, end, reader=0):
    (checkpoint,) = query.coordinator.assignments(start, end)
    part = part_of(checkpoint, reader, query.source.split_serializer, query.commits.find)
    return [split and split.value for split in part]


@pytest.mark.parametrize("continued", [False, True])
def test_a_part_that_is_held_by_a_checkpoint_outside_the_range_is_not_handed_out(continued):
    query, first, second = two_in_flight(continued=continued)
    query.acknowledge(first, 1)
    expected = (
        r"the part of reader 0 is held until the reader has committed checkpoint 1 of epoch 1: "
        r"checkpoint 1 of epoch 1, reader 0; found no reader commit after 0 s"
    )
    for _ in range(2):
        with pytest.raises(ProtocolError, match=expected):
            query.coordinator.assignments(first, second)
        assert query.held() == {0: 1}, "what is reported is what is decided"
    query.acknowledge(first, 0)
    assert values(query, first, second) == ([None, 2] if continued else [2])


def test_a_commit_that_is_published_while_the_driver_waits_releases_the_part():
    query, first, second = two_in_flight(continued=True, patience=30.0)
    query.acknowledge(first, 1)
    publish = partial(query.acknowledge, first, 0, unfinished=[rest(100)])
    timer = threading.Timer(0.3, publish)
    timer.start()
    assert values(query, first, second) == [100, 2]
    timer.join()


def test_what_continues_a_part_is_held_although_spark_has_completed_that_part():
    """Only the commit says where it starts: without one, that of the driver."""
    query, first, second = two_in_flight(continued=True)
    query.source.is_unbounded = lambda split: split.value == 0
    assert query.coordinator.latest(first) == second
    query.acknowledge(first, 1)
    assert query.held() == {0: 1}
    assert query.abandoned() == []
    assert values(query, first, second) == [0, 2]
    assert query.abandoned() == [(0, [0])]
    assert query.held() == {}
