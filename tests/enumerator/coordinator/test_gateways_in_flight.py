"""Commits, events and continuations of readers while several checkpoints are in flight."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import (
    continuations_of,
    part_of,
    readers_of,
)
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReturnedSplit
from pyspark_sluice.errors import ProtocolError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import TWO_FILES, header, published, rest
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import events_in


@pytest.fixture
def query():
    return Harness(range(8), TWO_FILES)


# What readers say ---------------------------------------------------------------------------


def test_what_a_crash_makes_uncounted_is_counted_again_and_only_that(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, events=[("hello", 0)])
    query.calls.tick()
    query.acknowledge(first, 1, events=[("hello", 1)], unfinished=[rest(101)])
    second = query.coordinator.latest(first)
    query.calls.tick()
    assert query.enumerator.heard == [(0, "hello", 0), (1, "hello", 1)]
    query.restart()
    query.coordinator.assignments(first, second)
    query.calls.tick()
    assert query.enumerator.heard == [(1, "hello", 1)]
    assert query.enumerator.returned == [(1, [101])]
    assert query.abandoned() == []
    assert query.enumerator.notified[0] == ("complete", 1)


# Streams ------------------------------------------------------------------------------------


def test_what_is_sent_while_two_are_in_flight_waits_for_both(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    query.enumerator.context.send_event(0, "a")
    assert query.held() == {0: 2, 1: 1}
    query.acknowledge(first, 0)
    query.calls.tick()
    assert query.held() == {0: 2, 1: 1}
    second = query.coordinator.latest(first)
    query.acknowledge(second, 0)
    query.calls.tick()
    third = query.coordinator.latest(second)
    assert events_in(header(query, third)) == {"0": ["a"]}


def test_the_next_checkpoint_is_cut_while_an_event_waits_for_its_reader(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.send_event(0, "a")
    query.calls.tick()
    assert len(published(query)) == 2
    assert query.coordinator.report()["heldEvents"] == 1
    assert events_in(header(query, query.coordinator.latest(first))) == {"0": ["a"]}


def test_a_batch_that_is_replayed_is_in_flight(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.restart(parallelism=3)
    query.coordinator.assignments(NO_CHECKPOINT, first)
    query.enumerator.context.send_event(0, "a")
    assert query.held() == {0: 1}
    query.acknowledge(first, 0)
    query.calls.tick()
    assert query.held() == {}
    assert query.coordinator.latest(first) == CheckpointRef(2, 2)


def test_events_for_a_reader_that_no_longer_exists_go_back_to_the_enumerator(query):
    query.restart(parallelism=2)
    query.start()
    query.enumerator.pending[:] = [0]
    query.enumerator.context.send_event(1, "early")
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.restart(parallelism=1)
    with pytest.raises(ProtocolError, match="events wait for a reader that no longer exists"):
        query.start(first)


# Continuations ------------------------------------------------------------------------------


def continued(query, ref):
    checkpoint = query.coordinator.history.load(ref)
    parts = {reader: continuations_of(checkpoint, reader) for reader in readers_of(checkpoint)}
    return {r: [(c.split, c.checkpoint, c.index) for c in of] for r, of in parts.items() if of}


def test_a_continuation_is_cut_while_it_is_held_and_starts_where_the_commit_says(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    assert query.enumerator.context.continue_split(0, "n0", max_rows=5)
    query.calls.tick()
    assert len(published(query)) == 2
    assert query.held() == {0: 1, 1: 1}
    query.acknowledge(first, 0, unfinished=[rest(100)])
    query.acknowledge(first, 1)
    second = query.coordinator.latest(first)
    assert continued(query, second) == {0: [("n0", 1, 0)]}
    query.calls.tick()
    assert query.enumerator.returned == [], "the remainder belongs to the continuation"
    (checkpoint,) = query.coordinator.assignments(first, second)
    part = part_of(checkpoint, 0, query.source.split_serializer, query.commits.find)
    assert [split.value for split in part] == [100, 2], "in the order of sending"


def test_a_split_is_continued_once_and_only_before_its_commit_is_counted(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    go_on = query.enumerator.context.continue_split
    assert not go_on(0, "n9"), "nobody reads it"
    assert not go_on(1, "n0"), "another reader reads it"
    assert go_on(0, "n0")
    assert not go_on(0, "n0"), "it goes on already"
    query.calls.tick()
    assert go_on(0, "n0"), "in the checkpoint after it"
    query.acknowledge(first, 1, unfinished=[rest(101)])
    query.calls.tick()
    assert not go_on(1, "n1")
    assert query.enumerator.returned == [(1, [101])]


def test_what_is_said_after_the_cut_goes_into_the_checkpoint_after_the_next(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, events=[("hello", "early")])
    query.calls.tick()
    query.acknowledge(first, 1, returned=[ReturnedSplit(index=0, reason="gone")])
    query.calls.tick()
    second = query.coordinator.latest(first)
    assert header(query, second).counted == {first.name: [0]}
    assert header(query, second).attempts == {}
    query.calls.tick()
    third = query.coordinator.latest(second)
    assert header(query, third).attempts == {"n1": 1}
    assert header(query, third).counted == {second.name: []}
