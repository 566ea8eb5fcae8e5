"""The coordinator as Spark drives it, step by step."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.errors import ProtocolError, StateCorruptError, StateError, StateMissingError
from pyspark_sluice.tests.protocol.opened import events_in


def test_an_idle_query_answers_from_memory(query):
    end = query.coordinator.latest(NO_CHECKPOINT)
    assert query.coordinator.latest(end) == end
    before = query.store.operations
    for _ in range(100):
        assert query.coordinator.latest(end) == end
    assert query.store.operations == before


def test_what_is_sent_while_a_checkpoint_runs_is_held_and_cut_into_the_next_one(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.send_event(0, "a")
    query.enumerator.context.send_event(1, "b")
    query.plan_ahead(4, 5)
    assert query.held() == {0: 1, 1: 1}
    assert query.coordinator.report()["heldSplits"] == 2
    assert query.coordinator.report()["heldEvents"] == 2
    query.acknowledge(first, 0)
    query.calls.tick()
    assert query.held() == {1: 1}
    second = query.coordinator.latest(first)
    assert query.assigned(second) == {0: [4], 1: [5]}
    header = query.coordinator.history.load(second).header
    assert events_in(header) == {"0": ["a"], "1": ["b"]}


def test_a_restart_assigns_the_same_splits_to_the_same_readers(query):
    end = query.coordinator.latest(NO_CHECKPOINT)
    before = [
        (r, b.to_pylist()) for r, b in query.coordinator.assignments(NO_CHECKPOINT, end)[0].assigned
    ]
    query.restart(parallelism=1)
    (again,) = query.coordinator.assignments(NO_CHECKPOINT, end)
    assert [(r, b.to_pylist()) for r, b in again.assigned] == before
    assert query.coordinator.latest(end) == end


def test_what_does_not_follow_the_last_checkpoint_is_named(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.offer(4)
    second = query.coordinator.latest(first)
    with pytest.raises(ProtocolError, match="checkpoint 7 of epoch 1; expected checkpoint 2 of"):
        query.coordinator.latest(CheckpointRef(7, 1))
    with pytest.raises(StateCorruptError, match="does not descend"):
        query.coordinator.assignments(CheckpointRef(1, 9), second)
    query.restart()
    with pytest.raises(StateMissingError, match="checkpoint 5 of epoch 2 is not in the state"):
        query.coordinator.latest(CheckpointRef(5, 2))


# Aborts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["error before", "error after"])
def test_a_publication_that_fails_is_repeated_under_the_same_name(query, kind):
    query.start()
    query.store.fault = Fault(kind, verb="publish")
    with pytest.raises(StateError, match="no answer"):
        query.coordinator.latest(NO_CHECKPOINT)
    query.plan_ahead(4)
    end = query.coordinator.latest(NO_CHECKPOINT)
    assert end == CheckpointRef(1, 1)
    assert query.assigned(end) == {0: [0, 2], 1: [1, 3]}
    assert query.enumerator.notified == []
    assert query.assigned(query.coordinator.latest(end)) == {0: [4]}


def test_a_snapshot_that_fails_fails_the_query_with_its_cause(query):
    query.start()
    query.enumerator.snapshot_error = ValueError("no snapshot today")
    for _ in range(2):
        with pytest.raises(ValueError, match="no snapshot today"):
            query.coordinator.latest(NO_CHECKPOINT)
    assert not any(name.startswith("checkpoints/") for name in query.state.objects)
    query.restart()
    end = query.coordinator.latest(NO_CHECKPOINT)
    assert query.assigned(end) == {0: [0, 2], 1: [1, 3]}


def test_the_enumerator_s_progress_is_what_the_restored_checkpoint_says(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    for place in (1, 2):
        query.enumerator.come_to = {"place": place}
        query.offer(place + 4)
        query.acknowledge_all(first)
        first, before = query.coordinator.latest(first), first
    query.restart()
    query.start(before)
    assert query.enumerator.come_to == {"place": 1}
    query.restart()
    query.start(first)
    assert query.enumerator.come_to == {"place": 2}
