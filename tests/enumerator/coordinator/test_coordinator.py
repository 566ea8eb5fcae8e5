"""The coordinator: as Spark drives it, what readers say to it, its threads and its successors."""

import itertools
import threading
import time
from contextlib import contextmanager

import pytest

from pyspark_sluice.checkpoint_meta.documents import heartbeat
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.heartbeat import is_beating
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReturnedSplit
from pyspark_sluice.checkpoint_meta.stores.testing import Fault, MemoryStateStore
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.coordinator import coordinator as coordinator_module
from pyspark_sluice.errors import (
    FencedError,
    ProtocolError,
    SourceUnavailable,
    StateCorruptError,
    StateError,
    StateMissingError,
    WaitTimeoutError,
)
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.protocol.numbers import NumberSource
from pyspark_sluice.tests.protocol.opened import events_in, opened


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
    (part,) = query.commits.find(query.coordinator.history.load(first).identity, 1).unfinished
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


# Fencing ------------------------------------------------------------------------------------


def test_the_older_of_two_coordinators_stops_and_names_both_epochs(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    older = query.coordinator
    query.restart()
    query.start(first)
    opened(older).enumerator.pending.append(4)
    for _ in range(2):
        with pytest.raises(FencedError, match=r"found epoch 2 claimed by .*expected epoch 1"):
            older.latest(first)
    query.offer(5)
    assert query.assigned(query.coordinator.latest(first)) == {1: [5]}


def test_an_idle_older_coordinator_stops_in_the_background(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    older, calls = query.coordinator, query.calls
    query.restart()
    query.start(first)
    calls.tick()
    with pytest.raises(FencedError, match="distinct sourceName"):
        older.latest(first)
    with pytest.raises(FencedError):
        older.assignments(NO_CHECKPOINT, first)


# Bounds and threads -------------------------------------------------------------------------


def rarely_in_background(clock=time.time, **more):
    settings = CoordinatorSettings(parallelism=1, background_interval=60, **more)
    return Coordinator(NumberSource([0]), MemoryStateStore(), settings, clock)


def test_an_error_of_a_background_thread_fails_the_query_and_every_later_call_without_its_history():
    coordinator = rarely_in_background()
    first = coordinator.latest(NO_CHECKPOINT)

    def handler(result, error):
        raise SourceUnavailable("the bucket is gone") from error

    opened(coordinator).context.call_async(lambda: 1 / 0, handler)
    wait_until(lambda: coordinator._threads.failure is not None)
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match="the bucket is gone") as caught:
            coordinator.latest(first)
        assert caught.value.__cause__ is None
        assert "handler" not in [entry.name for entry in caught.traceback]
    coordinator.close()


def test_planning_happens_in_the_background_as_soon_as_it_is_asked_for():
    coordinator = rarely_in_background()
    coordinator.latest(NO_CHECKPOINT)
    with coordinator._threads.lock:
        opened(coordinator).enumerator.pending.append(1)
        opened(coordinator).context.request_planning()
    wait_until(lambda: opened(coordinator).flight.open_record.readers == [0])
    assert opened(coordinator).enumerator.pending == []
    coordinator.close()
    assert not any(
        thread.name == "sluice-background" and not thread.daemon for thread in threading.enumerate()
    )


def test_a_query_that_is_rarely_looked_after_gives_signs_of_life_as_often_as_any(monkeypatch):
    for module in (heartbeat, coordinator_module):
        monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)
    coordinator = rarely_in_background()
    coordinator.latest(NO_CHECKPOINT)
    wait_until(lambda: beats(coordinator) >= [f"0000000001-{10:010d}.json"], seconds=45)
    coordinator.close()


def test_of_a_run_that_says_its_end_there_is_no_other_heartbeat_unless_it_lasts():
    for seconds, number in ((0.0, 1), (30.0, 2)):
        clock = itertools.count(0.0, seconds).__next__
        coordinator = rarely_in_background(clock, is_closed_by_host=True)
        coordinator.latest(NO_CHECKPOINT)
        assert len(beats(coordinator)) == number - 1
        coordinator.close()
        assert beats(coordinator) == [f"0000000001-{number:010d}.json"]
        assert not is_beating(coordinator._store, 1)


def beats(coordinator):
    return coordinator._store.list("heartbeats")


def test_a_coordinator_that_was_never_opened_can_be_closed_and_reports_nothing(query):
    assert query.coordinator.report() == {}
    query.coordinator.close()
    assert query.state.objects == {}


def test_closing_closes_the_enumerator(query):
    query.start()
    query.coordinator.close()
    assert query.enumerator.closed


@contextmanager
def _hanging(coordinator):
    """A step of the enumerator, on another thread, that does not end within the block."""
    busy, done = threading.Event(), threading.Event()

    def hang():
        with coordinator._threads.lock:
            busy.set()
            done.wait(PATIENCE)

    thread = threading.Thread(target=hang, daemon=True)
    thread.start()
    assert busy.wait(PATIENCE)
    try:
        yield
    finally:
        done.set()
        thread.join(PATIENCE)


def test_closing_does_not_wait_for_ever_for_an_enumerator_that_hangs(query):
    query.restart(close_timeout=0.01)
    query.start()
    with _hanging(query.coordinator):
        query.coordinator.close()
        assert query.enumerator.closed


def test_an_enumerator_that_hangs_fails_the_query_instead_of_holding_it_up_for_ever(query):
    query.restart(step_timeout=0.05)
    query.start()
    with _hanging(query.coordinator):
        with pytest.raises(WaitTimeoutError, match="is blocked"):
            query.coordinator.latest(NO_CHECKPOINT)
        with pytest.raises(WaitTimeoutError):
            query.coordinator._threads.fail(ValueError("found while it hung"))
    with pytest.raises(ValueError, match="found while it hung"):
        query.coordinator.latest(NO_CHECKPOINT)


def test_waiting_for_the_first_discovery_is_bounded(query):
    query.start()
    query.enumerator.discovered = False
    query.enumerator.pending.clear()
    began = time.monotonic()
    with pytest.raises(WaitTimeoutError, match="timed out waiting for the first listing"):
        query.coordinator.latest(NO_CHECKPOINT)
    assert time.monotonic() - began < 5
