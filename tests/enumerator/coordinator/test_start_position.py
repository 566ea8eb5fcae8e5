"""A query without a checkpoint over a state that has been read from."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.enumerator import StartingState
from pyspark_sluice.errors import StateError
from pyspark_sluice.tests.protocol.numbers import Harness


def read_two_batches():
    query = Harness(
        [0, 1],
    )
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge_all(first)
    query.offer(2)
    second = query.coordinator.latest(first)
    query.acknowledge_all(second)
    return query


def test_it_is_refused_by_name_and_supersedes_nobody():
    query = read_two_batches()
    running = query.coordinator
    query.restart()
    with pytest.raises(StateError, match="everything would be ingested again") as error:
        query.coordinator.latest(NO_CHECKPOINT)
    assert "rows read up to checkpoint 2 of epoch 1" in str(error.value)
    assert "startingState=memory@2" in str(error.value)
    assert "ingestAgain=true" in str(error.value)
    running.latest(CheckpointRef(2, 1))
    assert query.state.list("epochs") == ["0000000001.json"]


def test_it_is_permitted_by_an_option():
    query = read_two_batches()
    query.restart(ingest_again=True)
    query.start()
    query.offer(0, 1, 2)
    assert query.coordinator.latest(NO_CHECKPOINT) == CheckpointRef(1, 2)


def test_it_may_resume_from_where_the_state_is():
    query = read_two_batches()
    state = StartingState(query.state, CheckpointRef(2, 1))
    query.restart(starting_state=lambda: state)
    query.start()
    query.offer(3)
    new = query.coordinator.latest(NO_CHECKPOINT)
    assert query.assigned(new) == {1: [3]}


def test_a_driver_that_died_before_its_first_batch_ran_begins_again_without_a_word():
    query = Harness([0, 1])
    query.coordinator.latest(NO_CHECKPOINT)
    query.restart()
    query.start()
    query.offer(0, 1)
    assert query.coordinator.latest(NO_CHECKPOINT) == CheckpointRef(1, 2)


def test_a_query_that_spark_has_written_down_no_batch_of_begins_again_with_them():
    """Asynchronous progress tracking, killed in the first batches."""
    query = Harness(range(4))
    query.restart(query_without_batches=lambda: "mine")
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, query_id="mine")
    # A limit downstream has left the other reader, and the driver says so.
    query.coordinator.latest(first)
    for another in ("", "another"):
        query.restart(query_without_batches=lambda another=another: another)
        with pytest.raises(StateError, match="everything would be ingested again"):
            query.coordinator.latest(NO_CHECKPOINT)
    query.restart(query_without_batches=lambda: "mine")
    again = query.coordinator.latest(NO_CHECKPOINT)
    assert query.assigned(again) == query.assigned(first)
    query.acknowledge_all(again)
    query.coordinator.latest(again)
    assert query.abandoned() == [(1, [1, 3])]
