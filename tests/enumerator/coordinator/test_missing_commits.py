"""Which readers have not acknowledged, how long it takes to believe that, and what follows."""

import time

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_commit import Abandonment, ReaderCommits, about
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings, StartingState
from pyspark_sluice.errors import StateError
from pyspark_sluice.tests.protocol.numbers import Harness


@pytest.fixture
def query():
    made = Harness([0, 1, 2, 3])
    made.restart(commit_patience=60.0)
    return made


def abandon(query, ref, reader):
    names = about(query.coordinator.history.load(ref).identity)
    query.commits.abandon(Abandonment(**names, reader=reader, attempt=0, reported=0))


class OldListings(MemoryStateStore):
    """A network file system as one of its clients sees it: listings are as of the first look."""

    def list(self, directory):
        return [] if directory.startswith("readers/") else super().list(directory)


def test_commits_are_looked_for_by_name_where_a_listing_does_not_show_them():
    query = Harness([0, 1, 2, 3], state=OldListings())
    ref = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(ref, 0, returned=[{"index": 0, "reason": "torn"}])
    query.acknowledge(ref, 1)
    assert query.assigned(query.coordinator.latest(ref)) == {0: [0]}
    assert query.abandoned() == []
    assert query.coordinator.report()["abandonedReaders"] == 0


def test_the_commits_of_many_readers_are_looked_for_at_once():
    query = Harness(range(100), CoordinatorSettings(parallelism=100, discovery_timeout=0.0))
    ref = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge_all(ref)
    real = query.store.read

    def slow(name):
        time.sleep(0.03)
        return real(name)

    query.store.read = slow  # type: ignore[method-assign]
    began = time.monotonic()
    query.coordinator.latest(ref)
    assert time.monotonic() - began < 1.5, "one after the other they take three seconds"


def test_nothing_is_waited_for_where_every_reader_has_said_how_it_ended(query):
    ref = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(ref, 0)
    abandon(query, ref, 1)
    began = time.monotonic()
    assert query.coordinator.latest(ref) == ref
    assert time.monotonic() - began < 30
    assert query.abandoned() == [(1, [1, 3])]


def test_what_was_abandoned_is_counted_and_reported(query):
    query.restart(commit_patience=0.2)
    ref = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(ref, 0)
    began = time.monotonic()
    query.coordinator.latest(ref)
    assert 0.2 <= time.monotonic() - began < 30
    report = query.coordinator.report()
    assert (report["abandonedReaders"], report["abandonedSplits"]) == (1, 2)


def test_a_commit_counts_although_another_attempt_was_abandoned(query):
    ref = query.coordinator.latest(NO_CHECKPOINT)
    abandon(query, ref, 0)
    query.acknowledge(ref, 0, returned=[{"index": 1, "reason": "torn"}])
    query.acknowledge(ref, 1)
    abandon(query, ref, 1)
    assert query.assigned(query.coordinator.latest(ref)) == {0: [2]}
    assert query.abandoned() == []


def test_an_abandoned_reader_that_acknowledges_in_the_replay_counts_as_acknowledged(query):
    ref = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(ref, 1)
    abandon(query, ref, 0)
    query.restart()
    query.coordinator.assignments(NO_CHECKPOINT, ref)
    query.acknowledge(ref, 0, returned=[{"index": 0, "reason": "torn"}])
    assert query.assigned(query.coordinator.latest(ref)) == {0: [0]}
    assert query.abandoned() == []


def test_a_savepoint_s_commits_are_looked_for_by_name_too():
    state = OldListings()
    old = Harness([0, 1], state=state)
    ref = old.coordinator.latest(NO_CHECKPOINT)
    old.acknowledge(ref, 0, returned=[{"index": 0, "reason": "torn"}])
    old.acknowledge(ref, 1)
    new = Harness()
    new.restart(starting_state=lambda: StartingState(state, ref))
    assert new.assigned(new.coordinator.latest(NO_CHECKPOINT)) == {0: [0]}
    assert new.abandoned() == []


def test_the_first_record_of_an_abandoned_reader_stays():
    store = MemoryStateStore()
    commits = ReaderCommits(store)
    for attempt in range(3):
        commits.abandon(
            Abandonment(checkpoint=1, epoch=1, reader=4, attempt=attempt, reported=attempt)
        )
    ((_, data),) = store.objects.items()
    assert b'"attempt": 0' in data


# Batches that nobody read -------------------------------------------------------------------------


@pytest.fixture
def strict():
    """Batches of one number; the second is cut while the first one runs."""
    made = Harness([0, 1, 2, 3])
    made.restart(limits=BatchLimits(files=1), parallelism=1, batches_may_be_unread=False)
    return made


def test_a_later_batch_may_be_left_unread_in_every_incarnation_if_that_is_permitted(strict):
    first = strict.coordinator.latest(NO_CHECKPOINT)
    strict.acknowledge_all(first)
    second = strict.coordinator.latest(first)
    strict.restart()
    with pytest.raises(StateError, match="no reader ran in a batch"):
        strict.coordinator.latest(second)
    strict.restart(batches_may_be_unread=True)
    third = strict.coordinator.latest(second)
    assert strict.assigned(third) == {0: [2]}
    strict.coordinator.latest(third)
    assert strict.abandoned() == [(0, [1]), (0, [2])]


def test_a_reader_of_the_first_batch_that_was_closed_half_way_has_run(strict):
    first = strict.coordinator.latest(NO_CHECKPOINT)
    abandon(strict, first, 0)
    assert strict.assigned(strict.coordinator.latest(first)) == {0: [1]}
    assert strict.abandoned() == [(0, [0])]
