"""The coordinator as Spark drives it, step by step."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager

import pytest

from pyspark_sluice.checkpoint_meta.reader_commit import Abandonment, ReturnedSplit, UnfinishedSplit
from pyspark_sluice.checkpoint_meta.reference import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.testing import Fault, MemoryStateStore
from pyspark_sluice.enumerator import (
    BatchLimits,
    Coordinator,
    CoordinatorSettings,
    StartingState,
)
from pyspark_sluice.errors import (
    FencedError,
    ProtocolError,
    SourceUnavailable,
    StateCorruptError,
    StateMissingError,
    WaitTimeoutError,
)
from pyspark_sluice.tests.protocol.numbers import Harness, NumberSource
from pyspark_sluice.tests.protocol.opened import opened


@pytest.fixture
def query():
    return Harness([0, 1, 2, 3])


def test_the_checkpoint_is_durable_before_its_offset_is_returned(query):
    end = query.coordinator.latest(NO_CHECKPOINT)
    assert end == CheckpointRef(1, 1)
    assert "checkpoints/0000000001-0000000001.arrow" in query.state.objects
    assert query.assigned(end) == {0: [0, 2], 1: [1, 3]}


def test_an_idle_query_answers_from_memory(query):
    end = query.coordinator.latest(NO_CHECKPOINT)
    assert query.coordinator.latest(end) == end
    before = query.store.operations
    for _ in range(100):
        assert query.coordinator.latest(end) == end
    assert query.store.operations == before


def test_the_same_question_gets_the_same_checkpoint(query):
    end = query.coordinator.latest(NO_CHECKPOINT)
    query.offer(4)
    assert query.coordinator.latest(NO_CHECKPOINT) == end


def test_nothing_waits_for_commit_which_spark_may_never_call(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.offer(4)
    second = query.coordinator.latest(first)
    assert query.assigned(second) == {0: [4]}
    query.offer(5)
    assert query.assigned(query.coordinator.latest(second)) == {1: [5]}


def test_limits_hold_and_trigger_once_ignores_them():
    query = Harness(range(7), CoordinatorSettings(BatchLimits(files=2), 1, settle_timeout=0.0))
    first = query.coordinator.latest(NO_CHECKPOINT)
    assert query.assigned(first) == {0: [0, 1]}
    second = query.coordinator.latest(first)
    assert query.assigned(second) == {0: [2, 3]}
    third = query.coordinator.latest(second, unlimited=True)
    assert query.assigned(third) == {0: [4, 5, 6]}


def test_events_sent_while_a_checkpoint_runs_are_held_until_their_reader_acknowledges(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.enumerator.context.send_event(0, "a")
    query.enumerator.context.send_event(1, "b")
    query.plan_ahead(4, 5)
    assert query.events() == {}
    assert query.inbox() == {}, "a split overtook an event that was sent before it"
    query.acknowledge(first, 0)
    query.calls.tick()
    assert (query.events(), query.inbox()) == ({"0": ["a"]}, {0: [4]})
    second = query.coordinator.latest(first)
    assert query.assigned(second) == {0: [4], 1: [5]}
    header = query.coordinator._history.load(second).header
    assert header.events == {"0": ["a"], "1": ["b"]}


def test_a_restart_assigns_the_same_splits_to_the_same_readers(query):
    end = query.coordinator.latest(NO_CHECKPOINT)
    before = [
        (r, b.to_pylist()) for r, b in query.coordinator.assignments(NO_CHECKPOINT, end)[0].assigned
    ]
    query.restart(parallelism=1)
    (again,) = query.coordinator.assignments(NO_CHECKPOINT, end)
    assert [(r, b.to_pylist()) for r, b in again.assigned] == before
    assert query.coordinator.latest(end) == end


def test_what_an_enumerator_has_come_to_is_what_the_restored_checkpoint_says(query):
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


def test_a_range_of_several_checkpoints_is_read_oldest_first(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.offer(4)
    second = query.coordinator.latest(first)
    query.offer(5)
    third = query.coordinator.latest(second)
    query.restart()
    found = query.coordinator.assignments(first, third)
    assert [checkpoint.ref for checkpoint in found] == [second, third]
    assert query.coordinator.assignments(third, third) == []


def test_a_checkpoint_that_spark_never_logged_is_an_orphan(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.offer(4)
    orphan = query.coordinator.latest(first)
    query.restart()
    query.start(first)
    query.offer(5)
    second = query.coordinator.latest(first)
    assert second == CheckpointRef(2, 2)
    assert orphan == CheckpointRef(2, 1)
    # 4 was offered to the dead incarnation only, whose memory is gone with it.
    assert query.assigned(second) == {1: [5]}
    assert query.coordinator._history.load(second).header.parent == first


def test_asking_for_anything_but_the_last_checkpoint_is_a_protocol_error(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.coordinator.latest(first)
    with pytest.raises(ProtocolError, match="checkpoint 7 of epoch 1; expected checkpoint 1 of"):
        query.coordinator.latest(CheckpointRef(7, 1))


def test_an_unknown_checkpoint_in_spark_s_log_is_named(query):
    with pytest.raises(StateMissingError, match="checkpoint 5 of epoch 2 is not in the state"):
        query.coordinator.latest(CheckpointRef(5, 2))


def test_a_range_whose_end_does_not_descend_from_its_start_is_refused(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.offer(4)
    second = query.coordinator.latest(first)
    with pytest.raises(StateCorruptError, match="does not descend"):
        query.coordinator.assignments(CheckpointRef(1, 9), second)


# Aborts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["error before", "error after"])
def test_a_publication_that_fails_opens_the_gateways_and_loses_nothing(query, kind):
    query.start()
    query.store.fault = Fault(kind, verb="publish")
    with pytest.raises(OSError, match="no answer"):
        query.coordinator.latest(NO_CHECKPOINT)
    assert query.enumerator.notified == [("aborted", 1)]
    assert query.inbox() == {0: [0, 2], 1: [1, 3]}
    query.plan_ahead(4)
    end = query.coordinator.latest(NO_CHECKPOINT)
    assert end == CheckpointRef(2, 1)
    assert query.assigned(end) == {0: [0, 2, 4], 1: [1, 3]}
    assert query.coordinator._history.load(end).header.parent == NO_CHECKPOINT


def test_an_aborted_checkpoint_keeps_the_room_it_has_taken():
    query = Harness(range(6), CoordinatorSettings(BatchLimits(files=2), 1, settle_timeout=0.0))
    query.start()
    query.store.fault = Fault("error before", verb="publish")
    with pytest.raises(OSError, match="no answer"):
        query.coordinator.latest(NO_CHECKPOINT)
    assert query.assigned(query.coordinator.latest(NO_CHECKPOINT)) == {0: [0, 1]}


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


# Events to readers --------------------------------------------------------------------------


def test_an_event_travels_with_its_reader_s_next_splits(query):
    query.start()
    query.enumerator.context.send_event(1, {"hello": 1})
    end = query.coordinator.latest(NO_CHECKPOINT)
    assert query.coordinator._history.load(end).header.events == {"1": [{"hello": 1}]}


def test_an_event_for_a_reader_without_splits_waits_in_the_checkpoint_and_survives_a_crash(query):
    query.start()
    query.enumerator.pending[:] = [0]
    query.enumerator.context.send_event(1, "early")
    first = query.coordinator.latest(NO_CHECKPOINT)
    header = query.coordinator._history.load(first).header
    assert (header.events, header.waiting) == ({}, {"1": ["early"]})
    query.restart()
    query.start(first)
    query.enumerator.context.send_event(1, "later")
    query.offer(1)
    second = query.coordinator.latest(first)
    header = query.coordinator._history.load(second).header
    assert (header.events, header.waiting) == ({"1": ["early", "later"]}, {})


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


def test_a_reader_event_survives_a_crash_before_the_next_cut(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, events=[("hello", 1)])
    query.coordinator.latest(first)
    query.restart()
    query.coordinator.latest(first)
    assert query.enumerator.heard == [(0, "hello", 1)]


def test_an_event_of_an_unregistered_type_is_a_protocol_error(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, events=[("gossip", 1)])
    with pytest.raises(ProtocolError, match=re.escape("found 'gossip'; expected one of ['hello']")):
        query.coordinator.latest(first)


def test_a_commit_that_comes_after_completion_is_not_counted(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.coordinator.latest(first)
    query.acknowledge(first, 0, events=[("hello", 1)])
    opened(query.coordinator).acknowledgements.take_in(first)
    assert query.enumerator.heard == []
    assert query.enumerator.abandoned == [(0, [0, 2]), (1, [1, 3])]


def test_a_split_sent_back_is_assigned_again_and_quarantined_after_the_last_attempt(query):
    query.restart(max_split_attempts=2)
    ref = query.coordinator.latest(NO_CHECKPOINT)
    back = [ReturnedSplit(index=1, reason="gone")]
    query.acknowledge(ref, 0, returned=back)
    query.acknowledge(ref, 1)
    second = query.coordinator.latest(ref)
    assert query.assigned(second) == {0: [2]}
    header = query.coordinator._history.load(second).header
    assert header.attempts == {"n2": 1}
    query.restart()
    query.start(second)
    query.acknowledge(second, 0, returned=[ReturnedSplit(index=0, reason="still gone")])
    query.offer(5)
    third = query.coordinator.latest(second)
    header = query.coordinator._history.load(third).header
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
    assert query.coordinator._history.load(third).header.attempts == {}


def test_the_remainder_of_an_unfinished_split_goes_back_to_the_enumerator(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    part = UnfinishedSplit(index=0, remainder={"json": ["40"]})
    query.acknowledge(first, 0, unfinished=[part])
    query.acknowledge(first, 1)
    second = query.coordinator.latest(first)
    assert query.enumerator.returned == [(0, [40])]
    assert query.assigned(second) == {0: [40]}


def test_another_parallelism_at_restart_spreads_anew(query):
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.restart(parallelism=3)
    query.start(first)
    assert query.enumerator.added == [0, 1, 2]
    query.offer(3, 4, 5)
    assert query.assigned(query.coordinator.latest(first)) == {0: [3], 1: [4], 2: [5]}


# Savepoints ---------------------------------------------------------------------------------


def test_a_savepoint_starts_a_new_query_and_stays_untouched(query):
    query.settings = CoordinatorSettings(
        BatchLimits(files=2), 2, settle_timeout=0.0, commit_patience=0.0
    )
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
    assert other.enumerator.abandoned == [(1, [1])]
    assert other.assigned(end) == {0: [2], 1: [3]}
    assert query.state.objects == before
    assert query.assigned(second) == {0: [2], 1: [3]}
    other.restart(starting_state=lambda: pytest.fail("the old state is not needed any more"))
    assert other.assigned(other.coordinator.latest(end)) == {0: [0]}


@pytest.mark.parametrize("acknowledged", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("went_on", ["not", "cut", "acknowledged", "abandoned"])
def test_a_savepoint_whose_rows_nobody_has_read_gives_them_to_the_new_query(acknowledged, went_on):
    settings = CoordinatorSettings(BatchLimits(files=2), 2, settle_timeout=0.0)
    old = Harness(range(6), settings)
    old.start()
    old.enumerator.context.send_event(1, "hello")
    first = old.coordinator.latest(NO_CHECKPOINT)
    for reader in acknowledged:
        old.acknowledge(first, reader)
    if went_on != "not":
        second = old.coordinator.latest(first)
        if went_on == "acknowledged":
            old.acknowledge(second, 0)
        elif went_on == "abandoned":
            record = {"checkpoint": 2, "epoch": 1, "reader": 0, "attempt": 0, "reported": 0}
            old.commits.abandon(Abandonment.model_validate(record))
    silent = sorted({0, 1} - set(acknowledged))
    new = Harness((), CoordinatorSettings(parallelism=2, settle_timeout=0.0))
    new.restart(starting_state=lambda: StartingState(old.state, first))
    end = new.coordinator.latest(NO_CHECKPOINT)
    read = sorted(n for numbers in new.assigned(end).values() for n in numbers)
    if went_on in ("not", "cut"):
        assert read == sorted([*silent, 2, 3, 4, 5])
        events = new.coordinator._history.load(end).header.events
        assert events == ({"1": ["hello"]} if 1 in silent else {})
    else:
        assert read == [2, 3, 4, 5]
        assert new.enumerator.abandoned == [(n, [n]) for n in silent]


def test_an_orphan_s_readers_do_not_prove_that_a_savepoint_has_been_read():
    old = Harness(range(4), CoordinatorSettings(BatchLimits(files=2), 2, settle_timeout=0.0))
    first = old.coordinator.latest(NO_CHECKPOINT)
    old.restart()
    old.coordinator.latest(NO_CHECKPOINT)
    later = old.coordinator.latest(CheckpointRef(1, 2))
    assert later == CheckpointRef(2, 2)
    old.acknowledge(later, 0)
    new = Harness((), CoordinatorSettings(parallelism=2, settle_timeout=0.0))
    new.restart(starting_state=lambda: StartingState(old.state, first))
    end = new.coordinator.latest(NO_CHECKPOINT)
    assert sorted(n for ns in new.assigned(end).values() for n in ns) == [0, 1, 2, 3]


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


# Retention ----------------------------------------------------------------------------------


def test_old_state_goes_and_a_fresh_incarnation_restores_from_the_base():
    settings = CoordinatorSettings(
        parallelism=1, retained_checkpoints=3, deltas_per_base=2, settle_timeout=0.0
    )
    query = Harness([0], settings)
    ref = query.coordinator.latest(NO_CHECKPOINT)
    for number in range(1, 12):
        query.acknowledge_all(ref)
        query.offer(number)
        following = query.coordinator.latest(ref)
        query.coordinator.commit(ref)
        query.calls.run_calls()
        ref = following
    names = sorted(query.state.objects)
    assert "checkpoints/0000000001-0000000001.arrow" not in names
    assert sum(name.startswith("checkpoints/") for name in names) <= 8
    assert sum(name.startswith("bases/") for name in names) <= 4
    query.restart()
    query.start(ref)
    query.offer(99)
    assert query.assigned(query.coordinator.latest(ref)) == {0: [99]}


def test_a_failure_to_let_old_state_go_fails_the_query_by_name():
    settings = CoordinatorSettings(parallelism=1, deltas_per_base=1, settle_timeout=0.0)
    query = Harness([0], settings)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.coordinator.latest(first)
    query.coordinator.commit(first)
    query.store.fault = Fault("error before")
    query.calls.run_calls()
    with pytest.raises(OSError, match="no answer from the store"):
        query.coordinator.latest(first)


# Bounds and threads -------------------------------------------------------------------------


def test_waiting_for_the_first_discovery_is_bounded(query):
    query.start()
    query.enumerator.settled = False
    query.enumerator.pending.clear()
    began = time.monotonic()
    with pytest.raises(WaitTimeoutError, match="the first discovery did not end in time"):
        query.coordinator.latest(NO_CHECKPOINT)
    assert time.monotonic() - began < 5


def test_an_error_of_a_background_thread_fails_the_query_and_every_later_call_without_its_history():
    source = NumberSource([0])
    coordinator = Coordinator(
        source, MemoryStateStore(), CoordinatorSettings(parallelism=1, background_interval=60)
    )
    first = coordinator.latest(NO_CHECKPOINT)

    def handler(result, error):
        raise SourceUnavailable("the bucket is gone") from error

    opened(coordinator).context.call_async(lambda: 1 / 0, handler)
    deadline = time.monotonic() + 10
    while coordinator._threads.failure is None and time.monotonic() < deadline:
        time.sleep(0.001)
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match="the bucket is gone") as caught:
            coordinator.latest(first)
        assert caught.value.__cause__ is None
        assert "handler" not in [entry.name for entry in caught.traceback]
    coordinator.close()


def test_planning_happens_in_the_background_as_soon_as_it_is_asked_for():
    source = NumberSource([0])
    coordinator = Coordinator(
        source, MemoryStateStore(), CoordinatorSettings(parallelism=1, background_interval=60)
    )
    coordinator.latest(NO_CHECKPOINT)
    with coordinator._threads.lock:
        opened(coordinator).enumerator.pending.append(1)
        opened(coordinator).context.request_planning()
    deadline = time.monotonic() + 10
    while opened(coordinator).enumerator.pending and time.monotonic() < deadline:
        time.sleep(0.001)
    assert opened(coordinator).enumerator.pending == []
    assert list(opened(coordinator).context.tracker.uncheckpointed) == [0]
    coordinator.close()
    assert not any(
        thread.name == "sluice-background" and not thread.daemon for thread in threading.enumerate()
    )


def test_the_first_failure_wins(query):
    query.start()
    query.coordinator._threads.fail(ValueError("first"))
    query.coordinator._threads.fail(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        query.coordinator.latest(NO_CHECKPOINT)


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
            done.wait(10)

    thread = threading.Thread(target=hang, daemon=True)
    thread.start()
    assert busy.wait(10)
    try:
        yield
    finally:
        done.set()
        thread.join(10)


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
        with pytest.raises(WaitTimeoutError, match="held up"):
            query.coordinator.latest(NO_CHECKPOINT)
        with pytest.raises(WaitTimeoutError):
            query.coordinator._threads.fail(ValueError("found while it hung"))
    with pytest.raises(ValueError, match="found while it hung"):
        query.coordinator.latest(NO_CHECKPOINT)
