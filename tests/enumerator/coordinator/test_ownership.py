"""Who owns a state directory that is restored, emptied, or taken over while somebody runs."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_commit import (
    Abandonment,
    ReaderCommit,
    ReaderCommits,
)
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings, StartingState
from pyspark_sluice.enumerator.coordinator.start_position import taken_up
from pyspark_sluice.errors import FencedError, StateError
from pyspark_sluice.tests.protocol.numbers import Harness

SETTINGS = CoordinatorSettings(BatchLimits(files=2), parallelism=2, discovery_timeout=0.0)


def batch(query, ref):
    end = query.coordinator.latest(ref)
    query.coordinator.assignments(ref, end)
    query.acknowledge_all(end)
    return end


def test_a_driver_whose_directory_was_emptied_writes_nothing_more():
    query = Harness(range(100), SETTINGS)
    ref = batch(query, NO_CHECKPOINT)
    query.state.objects.clear()
    with pytest.raises(FencedError, match="claim is no longer in the state directory"):
        query.coordinator.latest(ref)
    assert not query.state.objects


# Executors of a query that was deleted with its directory -----------------------------------------


@pytest.fixture
def begun_again():
    """A query in the place of a deleted one, whose executor commits what it still reads."""
    old = Harness(range(4), SETTINGS)
    first = old.coordinator.latest(NO_CHECKPOINT)
    lineage = old.coordinator.history.load(first).header.lineage
    old.state.objects.clear()
    commit = ReaderCommit(
        checkpoint=1, epoch=1, reader=0, attempt=0, lineage=lineage,
        rows=[9], input_bytes=[9], microseconds=[9], returned=[{"index": 0, "reason": "torn"}],
    )  # fmt: skip
    late = ReaderCommits(old.state, lineage)
    late.publish(commit)
    late.abandon(Abandonment(checkpoint=1, epoch=1, reader=1, attempt=0, reported=0))
    return Harness(range(4), SETTINGS, old.state)


def test_a_commit_of_a_deleted_query_is_not_counted_and_blocks_nobody(begun_again):
    query = begun_again
    first = query.coordinator.latest(NO_CHECKPOINT)
    lineage = query.coordinator.history.load(first).header.lineage
    commits = ReaderCommits(query.state, lineage)
    assert commits.find(first, 0) is None
    assert commits.abandoned(first) == []
    rows = {"rows": [1], "input_bytes": [1], "microseconds": [1]}
    mine = ReaderCommit(checkpoint=1, epoch=1, reader=0, attempt=1, lineage=lineage, **rows)
    assert commits.publish(mine) == mine
    assert commits.publish(mine.model_copy(update={"attempt": 2})).attempt == 1
    query.acknowledge(first, 1)
    second = query.coordinator.latest(first)
    assert query.assigned(second) == {0: [2], 1: [3]}
    assert query.coordinator.report()["quarantinedSplits"] == 0


def test_what_a_deleted_query_s_readers_say_explains_no_batch_that_nobody_read(begun_again):
    query = begun_again
    query.restart(batches_may_be_unread=False)
    first = query.coordinator.latest(NO_CHECKPOINT)
    with pytest.raises(StateError, match="no reader ran in a batch"):
        query.coordinator.latest(first)


# Several chains in one directory ------------------------------------------------------------------


def test_the_newest_that_was_read_is_of_the_chain_that_was_begun_last():
    query = Harness(range(100), SETTINGS)
    ref = NO_CHECKPOINT
    for _ in range(5):
        ref = batch(query, ref)
    resumed = StartingState(query.state, ref)
    query.restart(starting_state=lambda: resumed)
    ref = batch(query, batch(query, NO_CHECKPOINT))
    query.restart(starting_state=None)
    with pytest.raises(StateError, match=f"startingState={query.state.location}@2;"):
        query.coordinator.latest(NO_CHECKPOINT)
    assert taken_up(query.state, 2) == ref
    assert taken_up(query.state, 5) == CheckpointRef(5, 1)
    assert taken_up(query.state, 6) is None
