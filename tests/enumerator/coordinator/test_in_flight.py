"""Several checkpoints in flight: one runs, others are durable and wait for it and its readers."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import (
    continuations_of,
    part_of,
    readers_of,
)
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.errors import ProtocolError, StateError, WaitTimeoutError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import TWO_FILES, header, published, rest
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import events_in, opened


@pytest.fixture
def query():
    return Harness(range(8), TWO_FILES)


def test_the_next_checkpoint_is_cut_and_published_while_one_runs(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    assert len(published(query)) == 1
    query.calls.tick()
    assert len(published(query)) == 2
    before = query.store.operations
    second = query.coordinator.latest(first)
    assert second == CheckpointRef(2, 1)
    assert query.coordinator.latest(first) == second
    (checkpoint,) = query.coordinator.assignments(first, second)
    # A listing and the claim: is this still the owner?
    assert query.store.operations == before + 2, "Spark's thread waited for the store"
    assert checkpoint.header.parent == first
    assert query.assigned(second) == {0: [2], 1: [3]}


@pytest.mark.parametrize("ahead", [0, 1, 2, 3])
def test_as_many_are_cut_ahead_as_may_wait(query, ahead):
    query.restart(checkpoints_ahead=ahead)
    query.coordinator.latest(NO_CHECKPOINT)
    for _ in range(5):
        query.calls.tick()
    assert len(published(query)) == 1 + ahead
    planned = 2 * (1 + max(1, ahead))
    assert query.enumerator.pending == list(range(planned, 8))


def test_writes_may_end_in_any_order_and_spark_gets_what_is_durable_with_its_ancestors(query):
    query.restart(checkpoints_ahead=2)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.holds_writes = True
    query.calls.tick()
    assert len(query.calls.writes) == 2
    query.calls.make_write(1)
    assert published(query)[-1] == "checkpoints/0000000003-0000000001.arrow"
    with pytest.raises(WaitTimeoutError, match="timed out publishing"):
        query.coordinator.latest(first)
    query.calls.make_write(0)
    second = query.coordinator.latest(first)
    assert second == CheckpointRef(2, 1)
    assert query.coordinator.latest(second) == CheckpointRef(3, 1)


def test_what_turns_up_while_one_runs_is_in_the_next_if_that_has_room():
    query = Harness([0, 1, 2], TWO_FILES)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    assert len(published(query)) == 1
    query.offer(9)
    assert query.assigned(query.coordinator.latest(first)) == {0: [2], 1: [9]}


# Orphans ------------------------------------------------------------------------------------


def test_a_publication_that_fails_again_fails_spark_s_call_by_name(query):
    query.coordinator.history._store = RetryingStateStore(query.store, 2, sleep=lambda _: None)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.store.fault = Fault("error before", times=99, verb="publish")
    query.calls.tick()
    with pytest.raises(StateError, match="failed to publish repeatedly"):
        query.coordinator.latest(first)


@pytest.mark.parametrize("ahead", [1, 2])
def test_trigger_once_takes_back_what_was_cut_with_limits_and_takes_everything(query, ahead):
    query.restart(checkpoints_ahead=ahead)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    second = query.coordinator.latest(first, unlimited=True)
    assert second == CheckpointRef(2 + ahead, 1)
    assert query.enumerator.notified[:ahead] == [("aborted", 1 + n) for n in range(ahead, 0, -1)]
    assert query.assigned(second) == {0: [2, 4, 6], 1: [3, 5, 7]}
    assert header(query, second).parent == first
    query.calls.tick()
    assert query.coordinator.latest(second) == second


def test_a_call_without_limits_that_finds_nothing_leaves_the_limits_as_they_were():
    query = Harness([], TWO_FILES)
    assert query.coordinator.latest(NO_CHECKPOINT, unlimited=True) == NO_CHECKPOINT
    query.offer(0, 1, 2)
    assert query.assigned(query.coordinator.latest(NO_CHECKPOINT)) == {0: [0], 1: [1]}


def test_what_waits_to_be_handed_out_stays_in_memory_however_much_it_is():
    settings = replace(TWO_FILES, checkpoints_ahead=8)
    query = Harness(range(200), settings)
    ref = NO_CHECKPOINT
    for _ in range(12):
        end = query.coordinator.latest(ref)
        before = query.store.operations
        query.coordinator.history.load(end)
        assert query.store.operations == before, "Spark's thread read a checkpoint"
        query.coordinator.assignments(ref, end)
        query.acknowledge_all(end)
        query.calls.tick()
        ref = end


# What readers say ---------------------------------------------------------------------------


# Streams ------------------------------------------------------------------------------------


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
    assert values(query, first, second) == [100, 2], "in the order of sending"


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


def two_in_flight(*, continued: bool, patience: float = 0.0):
    """A query whose first batch runs, and whose second is cut and durable."""
    query = Harness(range(6), TWO_FILES)
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
