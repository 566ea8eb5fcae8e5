"""Several checkpoints in flight: one runs, others are durable and wait for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Unfinished

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_assignment import part_of
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReturnedSplit, UnfinishedSplit
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import Fault, MemoryStateStore
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings, StartingState
from pyspark_sluice.errors import FencedError, ProtocolError, StateError, WaitTimeoutError
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol.numbers import Harness, Number, NumberSource

TWO_FILES = CoordinatorSettings(BatchLimits(files=2), 2, discovery_timeout=0.0)


@pytest.fixture
def query():
    return Harness(range(8), TWO_FILES)


def published(query):
    return [name for name in sorted(query.state.objects) if name.startswith("checkpoints/")]


def header(query, ref):
    return query.coordinator.history.load(ref).header


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


@pytest.mark.parametrize("ahead", [0, 1, 2, 3])
def test_as_many_are_cut_ahead_as_may_wait(query, ahead):
    query.restart(checkpoints_ahead=ahead)
    query.coordinator.latest(NO_CHECKPOINT)
    for _ in range(5):
        query.calls.tick()
    assert len(published(query)) == 1 + ahead
    planned = 2 * (1 + max(1, ahead))
    assert query.enumerator.pending == list(range(planned, 8))


def test_every_batch_is_handed_out_once_and_in_order_however_many_wait(query):
    query.restart(checkpoints_ahead=3)
    ref, seen = query.coordinator.latest(NO_CHECKPOINT), []
    while True:
        seen.append(query.assigned(ref))
        query.calls.tick()
        query.acknowledge_all(ref)
        following = query.coordinator.latest(ref)
        if following == ref:
            break
        assert header(query, following).parent == ref
        ref = following
    assert seen == [{0: [n], 1: [n + 1]} for n in (0, 2, 4, 6)]


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


def test_what_two_checkpoints_ago_s_readers_say_is_counted_once_over_a_crash(query):
    query.restart(checkpoints_ahead=2)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.calls.tick()
    query.acknowledge(first, 0, unfinished=[_rest(100)])
    query.acknowledge(first, 1)
    second = query.coordinator.latest(first)
    query.acknowledge_all(second)
    third = query.coordinator.latest(second)
    assert header(query, third).counted == {first.name: [], second.name: []}
    query.restart()
    query.coordinator.assignments(second, third)
    query.calls.tick()
    assert query.enumerator.returned == [(0, [100])]
    query.acknowledge_all(third)
    seen, ref = [], third
    while (following := query.coordinator.latest(ref)) != ref:
        seen += [n for numbers in query.assigned(following).values() for n in numbers]
        query.acknowledge_all(following)
        ref = following
    assert sorted(seen) == [6, 7, 100]


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
    assert query.abandoned() == []
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
    assert header(query, third).events == {"0": ["a"]}


def test_the_next_checkpoint_is_cut_while_an_event_waits_for_its_reader(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.send_event(0, "a")
    query.calls.tick()
    assert len(published(query)) == 2
    assert query.coordinator.report()["heldEvents"] == 1
    assert header(query, query.coordinator.latest(first)).events == {"0": ["a"]}


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
    return {
        int(reader): [(c.split, c.checkpoint, c.index) for c in of]
        for reader, of in header(query, ref).continuations.items()
    }


def test_a_continuation_is_cut_while_it_is_held_and_starts_where_the_commit_says(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    assert query.enumerator.context.continue_split(0, "n0", max_rows=5)
    query.calls.tick()
    assert len(published(query)) == 2
    assert query.held() == {0: 1, 1: 1}
    query.acknowledge(first, 0, unfinished=[_rest(100)])
    query.acknowledge(first, 1)
    second = query.coordinator.latest(first)
    assert continued(query, second) == {0: [("n0", 1, 0)]}
    query.calls.tick()
    assert query.enumerator.returned == [], "the remainder belongs to the continuation"
    (checkpoint,) = query.coordinator.assignments(first, second)
    part = part_of(checkpoint, 0, query.source.split_serializer, query.commits.find)
    assert [split.value for split in part] == [2, 100]


def test_a_split_is_continued_once_and_only_before_its_commit_is_counted(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    go_on = query.enumerator.context.continue_split
    assert not go_on(0, "n9"), "nobody reads it"
    assert not go_on(1, "n0"), "another reader reads it"
    assert go_on(0, "n0")
    assert not go_on(0, "n0"), "it goes on already"
    query.calls.tick()
    assert go_on(0, "n0"), "in the checkpoint after it"
    query.acknowledge(first, 1, unfinished=[_rest(101)])
    query.calls.tick()
    assert not go_on(1, "n1")
    assert query.enumerator.returned == [(1, [101])]


def test_a_continuation_of_an_abandoned_split_comes_to_nothing_unless_that_is_unbounded(query):
    query.source.is_unbounded = lambda split: split.value == 0
    first = query.coordinator.latest(NO_CHECKPOINT)
    for reader in (0, 1):
        assert query.enumerator.context.continue_split(reader, f"n{reader}")
    second = query.coordinator.latest(first)
    (checkpoint,) = query.coordinator.assignments(first, second)
    serializer = query.source.split_serializer
    parts = [part_of(checkpoint, r, serializer, query.commits.find)[-1] for r in (0, 1)]
    assert parts == [Number(0), None]
    assert query.enumerator.returned == []


def test_a_continuation_is_an_orphan_with_its_checkpoint(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.continue_split(0, "n0")
    query.calls.tick()
    query.acknowledge(first, 0, unfinished=[_rest(100)])
    query.acknowledge(first, 1)
    query.restart()
    query.coordinator.latest(first)
    assert query.enumerator.returned == [(0, [100])]


def test_a_continuation_survives_a_restart_after_its_checkpoint(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.continue_split(0, "n0")
    query.calls.tick()
    query.acknowledge(first, 0, unfinished=[_rest(100)])
    query.acknowledge(first, 1)
    second = query.coordinator.latest(first)
    query.restart()
    (checkpoint,) = query.coordinator.assignments(first, second)
    assert query.enumerator.returned == []
    part = part_of(checkpoint, 0, query.source.split_serializer, query.commits.find)
    assert part[-1] == Number(100)


# Orphans ------------------------------------------------------------------------------------


def test_a_publication_that_fails_in_the_background_is_repeated_by_spark_s_thread(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.store.fault = Fault("error after", verb="publish")
    query.calls.tick()
    second = query.coordinator.latest(first)
    assert second == CheckpointRef(2, 1)
    assert query.enumerator.notified == []
    assert query.assigned(second) == {0: [2], 1: [3]}
    assert header(query, second).parent == first


def test_a_publication_that_fails_again_fails_spark_s_call_by_name(query):
    query.coordinator.history._store = RetryingStateStore(query.store, 2, sleep=lambda _: None)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.store.fault = Fault("error before", times=99, verb="publish")
    query.calls.tick()
    with pytest.raises(StateError, match="failed to publish 2 times in a row"):
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
        BatchLimits(files=1), 1, retained_checkpoints=3, deltas_per_base=2, discovery_timeout=0.0
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
    bases = query.coordinator.history.bases()
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


def test_a_call_without_limits_that_finds_nothing_leaves_the_limits_as_they_were():
    query = Harness([], TWO_FILES)
    assert query.coordinator.latest(NO_CHECKPOINT, unlimited=True) == NO_CHECKPOINT
    query.offer(0, 1, 2)
    assert query.assigned(query.coordinator.latest(NO_CHECKPOINT)) == {0: [0], 1: [1]}
