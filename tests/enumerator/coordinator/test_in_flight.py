"""Several checkpoints in flight: one runs, others are durable and wait for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Unfinished
from dataclasses import replace

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore
from pyspark_sluice.checkpoint_meta.stores.testing import Fault, MemoryStateStore
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.errors import StateError, WaitTimeoutError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import TWO_FILES, header, published
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol.numbers import Harness, NumberSource


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


# Orphans ------------------------------------------------------------------------------------


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
