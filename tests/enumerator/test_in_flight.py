"""Two checkpoints in flight: one runs, the next one is durable and waits for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Unfinished

import pytest

from pyspark_sluice.checkpoint_meta.reader_commit import ReturnedSplit, UnfinishedSplit
from pyspark_sluice.checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.testing import Fault, MemoryStateStore
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings, StartingState
from pyspark_sluice.errors import FencedError, ProtocolError, StateError
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol.numbers import Harness, NumberSource
from pyspark_sluice.tests.protocol.opened import opened

TWO_FILES = CoordinatorSettings(BatchLimits(files=2), 2, settle_timeout=0.0)


@pytest.fixture
def query():
    return Harness(range(8), TWO_FILES)


def published(query):
    return [name for name in sorted(query.state.objects) if name.startswith("checkpoints/")]


def header(query, ref):
    return query.coordinator._history.load(ref).header


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
    assert query.store.operations == before, "Spark's thread waited for the store"
    assert checkpoint.header.parent == first
    assert query.assigned(second) == {0: [2], 1: [3]}


def test_not_more_than_one_is_cut_ahead(query):
    query.coordinator.latest(NO_CHECKPOINT)
    for _ in range(5):
        query.calls.tick()
    assert len(published(query)) == 2
    assert query.enumerator.pending == [4, 5, 6, 7], "planned for a batch that may come back"


def test_what_turns_up_while_one_runs_is_in_the_next_if_that_has_room():
    query = Harness([0, 1, 2], TWO_FILES)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    assert len(published(query)) == 1
    query.offer(9)
    assert query.assigned(query.coordinator.latest(first)) == {0: [2], 1: [9]}


def test_spark_waits_for_a_checkpoint_that_is_being_published():
    entered, go_on = threading.Event(), threading.Event()

    class Slow(MemoryStateStore):
        def publish(self, name, data):
            if name.startswith("checkpoints/0000000002"):
                entered.set()
                assert go_on.wait(PATIENCE)
            super().publish(name, data)

    settings = CoordinatorSettings(BatchLimits(files=1), 1, background_interval=0.01)
    coordinator = Coordinator(NumberSource(range(3)), Slow(), settings)
    first = coordinator.latest(NO_CHECKPOINT)
    assert entered.wait(PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(coordinator.latest, first)
        with pytest.raises(Unfinished):
            asked.result(0.05)
        go_on.set()
        assert asked.result(PATIENCE) == CheckpointRef(2, 1)
    coordinator.close()


# What readers say ---------------------------------------------------------------------------


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


def test_what_a_crash_makes_uncounted_is_counted_again_and_only_that(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, events=[("hello", 0)])
    query.calls.tick()
    query.acknowledge(first, 1, events=[("hello", 1)], unfinished=[_rest(101)])
    second = query.coordinator.latest(first)
    query.calls.tick()
    assert query.enumerator.heard == [(0, "hello", 0), (1, "hello", 1)]
    query.restart()
    query.coordinator.assignments(first, second)
    query.calls.tick()
    assert query.enumerator.heard == [(1, "hello", 1)]
    assert query.enumerator.returned == [(1, [101])]
    assert query.enumerator.abandoned == []
    assert query.enumerator.notified[0] == ("complete", 1)


def _rest(number):
    return UnfinishedSplit(index=0, remainder={"json": [str(number)]})


def test_an_unfinished_split_is_assigned_again_when_its_commit_is_in_and_once(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    query.acknowledge(first, 0, unfinished=[_rest(100)])
    query.acknowledge(first, 1)
    ref, seen = first, []
    for _ in range(6):
        following = query.coordinator.latest(ref)
        if following != ref:
            seen.extend(number for of in query.assigned(following).values() for number in of)
            query.acknowledge_all(following)
        query.calls.tick()
        ref = following
    assert sorted(seen) == [2, 3, 4, 5, 6, 7, 100]


def test_a_savepoint_counts_what_its_checkpoint_has_not(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    query.acknowledge(first, 0, unfinished=[_rest(100)])
    query.acknowledge(first, 1)
    second = query.coordinator.latest(first)
    query.acknowledge_all(second)
    other = Harness((), TWO_FILES, MemoryStateStore("other"))
    other.restart(starting_state=lambda: StartingState(query.state, second))
    other.start()
    assert other.enumerator.returned == [(0, [100])]
    assert sorted(other.enumerator.pending) == [4, 5, 6, 7, 100]


def test_a_checkpoint_cut_over_another_is_refused_by_a_release_that_cannot_count_it(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    second = query.coordinator.latest(first)
    assert (header(query, first).format, header(query, second).format) == (1, 2)


# Events to readers --------------------------------------------------------------------------


def test_what_is_sent_while_two_are_in_flight_waits_for_both(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    query.enumerator.context.send_event(0, "a")
    query.acknowledge(first, 0)
    query.calls.tick()
    assert query.events() == {}
    second = query.coordinator.latest(first)
    query.calls.tick()
    assert query.events() == {}
    query.acknowledge(second, 0)
    opened(query.coordinator).acknowledgements.take_in(second)
    assert query.events() == {"0": ["a"]}


def test_nothing_is_cut_ahead_while_an_event_waits_for_its_reader(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.send_event(0, "a")
    query.calls.tick()
    assert len(published(query)) == 1
    query.acknowledge(first, 0)
    query.calls.tick()
    assert len(published(query)) == 2
    assert header(query, query.coordinator.latest(first)).events == {"0": ["a"]}


def test_a_batch_that_is_replayed_is_in_flight(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.restart(parallelism=3)
    query.coordinator.assignments(NO_CHECKPOINT, first)
    query.enumerator.context.send_event(0, "a")
    assert query.events() == {}
    query.acknowledge(first, 0)
    opened(query.coordinator).acknowledgements.take_in(first)
    assert query.events() == {"0": ["a"]}
    assert query.coordinator.latest(first) == CheckpointRef(2, 2)


# Orphans ------------------------------------------------------------------------------------


def test_a_publication_that_fails_in_the_background_is_taken_back_by_id(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.store.fault = Fault("error after", verb="publish")
    query.calls.tick()
    assert query.enumerator.notified == [("aborted", 2)]
    assert query.inbox() == {0: [2], 1: [3]}
    query.calls.tick()
    second = query.coordinator.latest(first)
    assert second == CheckpointRef(3, 1)
    assert query.assigned(second) == {0: [2], 1: [3]}
    assert header(query, second).parent == first


def test_a_publication_that_fails_again_fails_spark_s_call_by_name(query):
    query.coordinator._history._store = RetryingStateStore(query.store, 2, sleep=lambda _: None)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.store.fault = Fault("error before", times=99, verb="publish")
    query.calls.tick()
    with pytest.raises(StateError, match="failed to publish 2 times in a row"):
        query.coordinator.latest(first)


def test_trigger_once_takes_back_what_was_cut_with_limits_and_takes_everything(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    second = query.coordinator.latest(first, unlimited=True)
    assert second == CheckpointRef(3, 1)
    assert query.assigned(second) == {0: [2, 4, 6], 1: [3, 5, 7]}
    assert header(query, second).parent == first
    query.calls.tick()
    assert query.coordinator.latest(second) == second


def test_a_restart_with_other_limits_and_readers_finds_no_trace_of_an_orphan(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge_all(first)
    query.calls.tick()
    assert len(published(query)) == 2
    query.restart(limits=BatchLimits(files=3), parallelism=1)
    ref, seen = first, []
    while (following := query.coordinator.latest(ref)) != ref:
        seen.append(query.assigned(following))
        assert header(query, following).parent == ref
        query.acknowledge_all(following)
        query.calls.tick()
        ref = following
    assert seen == [{0: [2, 3, 4]}, {0: [5, 6, 7]}]


def test_retention_and_bases_never_count_an_orphan():
    settings = CoordinatorSettings(
        BatchLimits(files=1), 1, retained_checkpoints=3, deltas_per_base=2, settle_timeout=0.0
    )
    query = Harness(range(40), settings)
    ref, handed_out = NO_CHECKPOINT, []
    for round_ in range(24):
        ref = query.coordinator.latest(ref)
        handed_out.append(ref)
        query.calls.tick()
        if round_ % 3 == 2:
            query.restart()  # What was cut ahead is an orphan.
            query.coordinator.assignments(NO_CHECKPOINT if round_ == 0 else handed_out[-2], ref)
        query.acknowledge_all(ref)
        if len(handed_out) > 1:
            query.coordinator.commit(handed_out[-2])
            query.calls.run_calls()
    bases = query.coordinator._history.bases()
    assert bases
    assert set(bases) <= set(handed_out)
    for retained in handed_out[-4:]:
        query.restart()
        query.start(retained)
        assert query.enumerator.pending[0] == retained.checkpoint, "ids count what is read here"


def test_a_superseded_coordinator_hands_out_nothing_that_it_cut_afterwards(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    older, calls = query.coordinator, query.calls
    query.restart()
    query.start(first)
    calls.tick()
    with pytest.raises(FencedError):
        older.latest(first)
    query.acknowledge_all(first)
    second = query.coordinator.latest(first)
    assert query.assigned(second) == {0: [2], 1: [3]}


def test_a_cut_over_held_events_is_a_protocol_error(query):
    query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.send_event(0, "a")
    with pytest.raises(ProtocolError, match="1 events held"):
        opened(query.coordinator)._cut()


def test_a_call_without_limits_that_finds_nothing_leaves_the_limits_as_they_were():
    query = Harness([], TWO_FILES)
    assert query.coordinator.latest(NO_CHECKPOINT, unlimited=True) == NO_CHECKPOINT
    query.offer(0, 1, 2)
    assert query.assigned(query.coordinator.latest(NO_CHECKPOINT)) == {0: [0], 1: [1]}
