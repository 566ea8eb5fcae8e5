"""Where a query begins, and who owns a state directory that others have written into."""

from dataclasses import replace

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.reader_commit import (
    Abandonment,
    ReaderCommit,
    ReaderCommits,
    ReturnedSplit,
    about,
)
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings, StartingState
from pyspark_sluice.enumerator.coordinator.start_position import taken_up
from pyspark_sluice.errors import FencedError, StateError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import TWO_FILES, rest
from pyspark_sluice.tests.protocol.numbers import Harness, after_eight_batches
from pyspark_sluice.tests.protocol.opened import events_in


def test_a_savepoint_starts_a_new_query_and_stays_untouched(query):
    query.settings = replace(TWO_FILES, commit_patience=0.0)
    query.restart()
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, returned=[ReturnedSplit(index=0, reason="gone")])
    second = query.coordinator.latest(first)
    query.acknowledge(second, 1)
    before = dict(query.state.objects)
    other = Harness((), query.settings, MemoryStateStore("other"))
    other.restart(starting_state=lambda: StartingState(query.state, first))
    end = other.coordinator.latest(NO_CHECKPOINT)
    assert end == CheckpointRef(1, 1)
    # Reader 0 sent 0 back; reader 1 was abandoned; 2 and 3 were not assigned yet.
    assert other.enumerator.returned == [(0, [0])]
    assert other.coordinator.report()["abandonedReaders"] == 1
    assert other.assigned(end) == {0: [2], 1: [3]}
    assert query.state.objects == before
    assert query.assigned(second) == {0: [2], 1: [3]}
    other.restart(starting_state=lambda: pytest.fail("the old state is not needed any more"))
    assert other.assigned(other.coordinator.latest(end)) == {0: [0]}


@pytest.mark.parametrize("acknowledged", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("went_on", ["not", "cut", "same batch", "acknowledged", "abandoned"])
def test_a_savepoint_whose_rows_nobody_has_read_gives_them_to_the_new_query(acknowledged, went_on):
    old = Harness(range(6), TWO_FILES)
    old.start()
    old.enumerator.context.send_event(1, "hello")
    first = old.coordinator.latest(NO_CHECKPOINT)
    for reader in acknowledged:
        old.acknowledge(first, reader)
    if went_on == "cut":
        old.calls.tick()
    elif went_on == "same batch":
        # Spark 4.1 with availableNow: the tasks of one batch read both, each in its own order.
        old.coordinator.prepare_available_now()
        assert old.coordinator.latest_of_run(NO_CHECKPOINT).checkpoint == 3
        old.acknowledge(CheckpointRef(2, 1), 0, batch_start=0)
    elif went_on != "not":
        second = old.coordinator.latest(first)
        if went_on == "acknowledged":
            old.acknowledge(second, 0)
        elif went_on == "abandoned":
            record = {"checkpoint": 2, "epoch": 1, "reader": 0, "attempt": 0, "reported": 0}
            record["batch_start"] = 1
            old.commits.abandon(Abandonment.model_validate(record))
    silent = sorted({0, 1} - set(acknowledged))
    new, end, read = _begun_from(old.state, first)
    if went_on in ("not", "cut", "same batch"):
        assert read == sorted([*silent, 2, 3, 4, 5])
        events = events_in(new.coordinator.history.load(end).header)
        assert events == ({"1": ["hello"]} if 1 in silent else {})
    else:
        assert read == [2, 3, 4, 5]
        assert new.coordinator.report()["abandonedReaders"] == len(silent)


def test_an_orphan_s_readers_do_not_prove_that_a_savepoint_has_been_read():
    old = Harness(range(4), TWO_FILES)
    first = old.coordinator.latest(NO_CHECKPOINT)
    old.restart()
    old.coordinator.latest(NO_CHECKPOINT)
    later = old.coordinator.latest(CheckpointRef(1, 2))
    assert later == CheckpointRef(2, 2)
    old.acknowledge(later, 0)
    assert _begun_from(old.state, first)[2] == [0, 1, 2, 3]


@pytest.mark.parametrize(("ahead", "later"), [(1, 8), (4, 0)])
def test_every_retained_checkpoint_starts_a_query_with_any_cut_ahead(ahead, later):
    settings = CoordinatorSettings(
        BatchLimits(files=2), 2, checkpoints_ahead=ahead, retained_checkpoints=3, deltas_per_base=2
    )
    old = Harness(range(40), settings)
    ref, handed_out = NO_CHECKPOINT, []
    for number in range(12):
        ref = old.coordinator.latest(ref)
        handed_out.append(ref)
        old.calls.tick()
        old.calls.run_calls()
        old.acknowledge(ref, 0, unfinished=[rest(100 + number)])
        old.acknowledge(ref, 1, returned=[ReturnedSplit(index=0, reason="gone")])
    retained = [handed_out[-1 - back] for back in range(1, 5)]
    before = [_begun_from(old.state, savepoint)[2] for savepoint in retained]
    old.restart(checkpoints_ahead=later)
    old.coordinator.assignments(handed_out[-2], ref)
    for _ in range(8):
        old.calls.run_calls()
        old.coordinator.commit(handed_out[-2])
    left = old.coordinator.history.checkpoints()
    assert handed_out[1] not in left
    assert retained[-1] in left
    assert [_begun_from(old.state, savepoint)[2] for savepoint in retained] == before


def test_what_has_resumed_from_its_own_state_resumes_from_it_again():
    query, ref = after_eight_batches()
    # Of the chain that is left some are gone, and others stay.
    left = query.coordinator.history.checkpoints()
    assert CheckpointRef(2, 1) not in left
    assert ref in left
    for number in (8, 9):
        savepoint = StartingState(query.state, ref)
        query.restart(starting_state=lambda savepoint=savepoint: savepoint)
        ref = query.coordinator.latest(NO_CHECKPOINT)
        assert query.assigned(ref) == {0: [number]}
        query.acknowledge(ref, 0)


def _begun_from(state, savepoint):
    """A new query that begins with `savepoint`, its first checkpoint, and what it reads in that."""
    new = Harness((), CoordinatorSettings(parallelism=2, discovery_timeout=0.0))
    new.restart(starting_state=lambda: StartingState(state, savepoint))
    end = new.coordinator.latest(NO_CHECKPOINT)
    return new, end, sorted(n for numbers in new.assigned(end).values() for n in numbers)


# Without a checkpoint, over a state that has been read from ------------------------------------


def read_two_batches():
    query = Harness([0, 1])
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
    # Whether the sink has the second batch is not known: nothing was asked for after it.
    assert "startingState=memory@1. Readers have finished checkpoint 2 " in str(error.value)
    assert "`sluice requeue memory --matching '*' --yes`" in str(error.value)
    running.latest(CheckpointRef(2, 1))
    assert query.state.list("epochs") == ["0000000001.json"]


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


def batch(query, ref):
    end = query.coordinator.latest(ref)
    query.coordinator.assignments(ref, end)
    query.acknowledge_all(end)
    return end


def test_a_driver_whose_directory_was_emptied_writes_nothing_more():
    query = Harness(range(100), TWO_FILES)
    ref = batch(query, NO_CHECKPOINT)
    query.state.objects.clear()
    with pytest.raises(FencedError, match="claim is no longer in the state directory"):
        query.coordinator.latest(ref)
    assert not query.state.objects


# Executors of a query that was deleted with its directory -----------------------------------------


@pytest.fixture
def begun_again():
    """A query in the place of a deleted one, whose executor commits what it still reads."""
    old = Harness(range(4), TWO_FILES)
    first = old.coordinator.latest(NO_CHECKPOINT)
    names = about(old.coordinator.history.load(first).identity)
    old.state.objects.clear()
    commit = ReaderCommit(
        **names, reader=0, attempt=0,
        rows=[9], input_bytes=[9], microseconds=[9], returned=[{"index": 0, "reason": "torn"}],
    )  # fmt: skip
    late = ReaderCommits(old.state)
    late.publish(commit)
    late.abandon(Abandonment(**names, reader=1, attempt=0, reported=0))
    return Harness(range(4), TWO_FILES, old.state)


def test_a_commit_of_a_deleted_query_is_not_counted_and_blocks_nobody(begun_again):
    query = begun_again
    first = query.coordinator.latest(NO_CHECKPOINT)
    checkpoint = query.coordinator.history.load(first).identity
    commits = ReaderCommits(query.state)
    assert commits.find(checkpoint, 0) is None
    assert commits.abandoned(checkpoint) == []
    rows = {"rows": [1], "input_bytes": [1], "microseconds": [1]}
    mine = ReaderCommit(**about(checkpoint), reader=0, attempt=1, **rows)
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
    query = Harness(range(100), TWO_FILES)
    ref = NO_CHECKPOINT
    for _ in range(5):
        ref = batch(query, ref)
    resumed = StartingState(query.state, ref)
    query.restart(starting_state=lambda: resumed)
    ref = batch(query, batch(query, NO_CHECKPOINT))
    query.restart(starting_state=None)
    with pytest.raises(StateError, match=f"startingState={query.state.location}@1. Readers"):
        query.coordinator.latest(NO_CHECKPOINT)
    assert taken_up(query.state, 2) == ref
    assert taken_up(query.state, 5) == CheckpointRef(5, 1)
    assert taken_up(query.state, 6) is None
