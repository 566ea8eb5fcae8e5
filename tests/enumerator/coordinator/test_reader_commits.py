"""What readers receive, and what their commits do to the coordinator."""

from __future__ import annotations

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReturnedSplit
from pyspark_sluice.tests.protocol.opened import events_in, opened

# Events to readers --------------------------------------------------------------------------


def test_an_event_for_a_reader_without_splits_waits_in_the_checkpoint_and_survives_a_crash(query):
    query.start()
    query.enumerator.pending[:] = [0]
    query.enumerator.context.send_event(1, "early")
    first = query.coordinator.latest(NO_CHECKPOINT)
    header = query.coordinator.history.load(first).header
    assert (events_in(header), header.waiting) == ({}, {"1": ["early"]})
    query.restart()
    query.start(first)
    query.enumerator.context.send_event(1, "later")
    query.offer(1)
    second = query.coordinator.latest(first)
    header = query.coordinator.history.load(second).header
    assert (events_in(header), header.waiting) == ({"1": ["early", "later"]}, {})


# Reader commits -----------------------------------------------------------------------------


def test_a_reader_event_is_counted_once_however_often_the_commits_are_looked_at(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, events=[("hello", [1, {"a": None}])])
    for _ in range(3):
        query.calls.tick()
    query.coordinator.latest(first)
    query.calls.tick()
    assert query.enumerator.heard == [(0, "hello", [1, {"a": None}])]
    assert query.enumerator.notified == [("complete", 1)]


def test_an_abandonment_is_durable_so_a_late_attempt_cannot_commit(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.coordinator.latest(first)
    counts = query.acknowledge(first, 0, events=[("hello", 1)])
    assert counts.abandoned
    query.calls.tick()
    assert query.enumerator.heard == []
    assert query.abandoned() == [(0, [0, 2]), (1, [1, 3])]


def test_a_commit_that_is_there_counts_although_the_driver_did_not_see_it(query):
    """The driver publishes create-only under the name of the commit: what is there counts."""
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, events=[("hello", 1)])
    acknowledgements = opened(query.coordinator).acknowledgements
    acknowledgements._look_for = lambda record, readers: list(readers)  # type: ignore[method-assign]
    query.coordinator.latest(first)
    assert query.enumerator.heard == [(0, "hello", 1)]
    assert query.abandoned() == [(1, [1, 3])]


def test_an_unbounded_split_that_was_abandoned_comes_back_at_its_old_start(query):
    query.source.is_unbounded = lambda split: split.value == 1
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0)
    query.coordinator.latest(first)
    assert query.enumerator.returned == [(1, [1])]
    (part,) = query.commits.find(first, 1).unfinished
    assert (part.index, part.remainder) == (0, {"json": ["1"]})


def test_a_split_sent_back_is_assigned_again_and_quarantined_after_the_last_attempt(query):
    query.restart(max_split_attempts=2)
    ref = query.coordinator.latest(NO_CHECKPOINT)
    back = [ReturnedSplit(index=1, reason="gone")]
    query.acknowledge(ref, 0, returned=back)
    query.acknowledge(ref, 1)
    second = query.coordinator.latest(ref)
    assert query.assigned(second) == {0: [2]}
    header = query.coordinator.history.load(second).header
    assert header.attempts == {"n2": 1}
    query.restart()
    query.start(second)
    query.acknowledge(second, 0, returned=[ReturnedSplit(index=0, reason="still gone")])
    query.offer(5)
    third = query.coordinator.latest(second)
    header = query.coordinator.history.load(third).header
    (given_up,) = header.quarantined
    assert (given_up.split_id, given_up.reason) == ("n2", "still gone")
    assert (given_up.attempts, given_up.checkpoint) == (2, 2)
    assert header.attempts == {}
    assert query.assigned(third) == {1: [5]}
    assert query.coordinator.report()["quarantinedSplits"] == 1
    query.restart()
    query.start(third)
    assert query.coordinator.report()["quarantinedSplits"] == 1


def test_a_split_that_is_read_after_all_is_forgiven(query):
    ref = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(ref, 0, returned=[ReturnedSplit(index=0, reason="gone")])
    query.acknowledge(ref, 1)
    second = query.coordinator.latest(ref)
    query.acknowledge_all(second)
    query.offer(9)
    third = query.coordinator.latest(second)
    assert query.coordinator.history.load(third).header.attempts == {}
