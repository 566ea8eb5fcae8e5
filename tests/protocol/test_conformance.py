"""Flink's scenarios, as far as they have a meaning here. `CONFORMANCE.md` lists all of them.

Each docstring names Flink's case.
"""

from __future__ import annotations

import re
import threading

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.files.file_split import FileVersion
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.batch_budget import UNLIMITED, BatchBudget
from pyspark_sluice.errors import ProtocolError, StateMissingError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import TWO_FILES
from pyspark_sluice.tests.enumerator.files.bench import Bench
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol.numbers import Harness, Number, NumberSource
from pyspark_sluice.tests.protocol.opened import opened

pytestmark = pytest.mark.slow


@pytest.fixture
def query():
    return Harness()


def cut(query, *numbers, after=NO_CHECKPOINT):
    query.start(after)
    query.offer(*numbers)
    return query.coordinator.latest(after)


# 6.2 OperatorCoordinatorHolderTest ----------------------------------------------------------


def test_the_first_failure_is_what_the_query_fails_with_until_it_is_restarted(query):
    """testFailingJobMultipleTimesNotCauseCascadingJobFailure."""
    end = cut(query, 1)
    query.coordinator._threads.fail(ValueError("F1"))
    query.coordinator._threads.fail(ValueError("F2"))
    with pytest.raises(ValueError, match="F1"):
        query.coordinator.latest(end)
    query.restart()
    query.start(end)
    query.coordinator._threads.fail(ValueError("F3"))
    with pytest.raises(ValueError, match="F3"):
        query.coordinator.latest(end)


# 6.5 SourceCoordinatorTest and ...ContextTest -----------------------------------------------


def test_a_restart_takes_back_what_the_named_checkpoint_did_not_assign(query):
    """testCheckpointCoordinatorAndRestore, completedCheckpointFuture, testTakeCheckpoint.

    Also testSubtaskFailedAndRevertUncompletedAssignments, as a query restart.
    """
    query.start()
    opened(query.coordinator).flight.open_record.budget = BatchBudget(BatchLimits(files=2))
    first = cut(query, 0, 1, 2, 3)
    second = query.coordinator.latest(first)
    assert query.assigned(second) == {0: [2], 1: [3]}
    query.restart()
    query.start(first)
    assert query.enumerator.pending == [2, 3]
    assert query.inbox() == {}
    assert query.enumerator.added == [0, 1]


def test_a_restart_restores_once_and_does_not_take_back_what_is_complete(query):
    """testFailedSubtaskDoNotRevertCompletedCheckpoint, ...DoesNotNotifyLocalRestore.

    Also testGlobalFailureTwiceWillNotResetToCheckpointTwice.
    """
    first = cut(query, 0, 1)
    query.acknowledge_all(first)
    assert query.coordinator.latest(first) == first
    assert opened(query.coordinator).flight.cut_records == []
    assert query.enumerator.notified == [("complete", 1)]
    query.restart()
    query.coordinator.assignments(NO_CHECKPOINT, first)
    enumerator = query.enumerator
    query.coordinator.latest(first)
    query.coordinator.assignments(NO_CHECKPOINT, first)
    assert query.enumerator is enumerator
    assert query.coordinator.epoch == 2
    assert (enumerator.pending, enumerator.returned) == ([], [])


# Losses of Flink in 2026 ----------------------------------------------------------------------


def test_a_checkpoint_between_a_restore_and_the_first_hand_out_neither_loses_nor_doubles_a_split():
    """FLINK-40469 (splits in no checkpoint), FLINK-40710 (a split with two readers)."""
    query = Harness(range(8), TWO_FILES)
    first = query.coordinator.latest(NO_CHECKPOINT)
    planned = query.assigned(first)
    for times in (1, 2):
        query.restart()
        query.coordinator._open(NO_CHECKPOINT, first)
        # It is cut and published, and then the driver dies again.
        query.calls.tick()
        assert len(query.coordinator.history.checkpoints()) == 1 + times
    query.restart()
    (again,) = query.coordinator.assignments(NO_CHECKPOINT, first)
    assert query.assigned(again.ref) == planned
    ref, end, read = NO_CHECKPOINT, first, []
    while end != ref:
        read += [n for part in query.assigned(end).values() for n in part]
        query.acknowledge_all(end)
        ref, end = end, query.coordinator.latest(end)
    assert sorted(read) == list(range(8))


@pytest.mark.parametrize("lost", [None, "checkpoints/", ""], ids=["nothing", "chain", "everything"])
def test_a_state_under_another_name_is_restored_whole_or_refused(lost):
    """FLINK-40837: a savepoint is rewritten, and the restore drops the coordinator's state."""
    old = Harness(range(6), TWO_FILES)
    first = old.coordinator.latest(NO_CHECKPOINT)
    old.acknowledge_all(first)
    new = Harness((), TWO_FILES, MemoryStateStore("renamed"))
    for name, data in old.state.objects.items():
        if lost is None or not name.startswith(lost):
            new.state.objects[name] = data
    if lost is None:
        assert new.assigned(new.coordinator.latest(first)) == {0: [2], 1: [3]}
    else:
        with pytest.raises(StateMissingError, match="is not in the state directory"):
            new.coordinator.latest(first)


def test_an_enumerator_that_cannot_be_made_fails_the_query_with_its_error(query):
    """testFailJobWhenExceptionThrownFromEnumeratorCreation."""
    query.source.creation_error = ValueError("no enumerator")
    with pytest.raises(ValueError, match="no enumerator"):
        query.coordinator.latest(NO_CHECKPOINT)


def test_an_error_of_the_enumerator_fails_the_query_with_its_error(query):
    """testErrorThrownFromSplitEnumerator, testFailJobWhenExceptionThrownFromStart."""
    end = cut(query, 0)

    def fail(budget):
        raise ZeroDivisionError("enumerator")

    query.enumerator.plan_batch = fail
    query.calls.tick()
    with pytest.raises(ZeroDivisionError, match="enumerator"):
        query.coordinator.latest(end)


def test_readers_are_announced_one_by_one_and_stay(query):
    """testRegisterReader."""
    query.restart(parallelism=None, at_least_readers=2)
    query.start()
    assert query.enumerator.context.request_parallelism(3) == 3
    assert query.enumerator.context.request_parallelism(1) == 1
    assert query.enumerator.context.parallelism == 3
    assert query.enumerator.added == [0, 1, 2]


@pytest.mark.parametrize(
    ("second", "error", "expected"),
    [
        ({7: [Number(1)]}, ProtocolError, "cannot assign splits to reader 7; found not registered"),
        ({1: [Number(object())]}, TypeError, "not JSON serializable"),  # type: ignore[arg-type]
    ],
    ids=["an unregistered reader", "a value that cannot be written"],
)
def test_an_assignment_that_cannot_be_delivered_fails_as_a_whole(query, second, error, expected):
    """Ctx testAssignSplitToUnregisteredReader, testCheckpointFailsIfSendingEventFailed...

    Delivery is in memory; what can fail is freezing the event, before anything is recorded.
    """
    query.start()
    with pytest.raises(error, match=re.escape(expected)):
        query.enumerator.context.assign_splits({0: [Number(0)], **second})
    assert query.inbox() == {}
    assert query.coordinator.latest(NO_CHECKPOINT) == NO_CHECKPOINT


def test_a_call_that_ends_after_the_close_is_heard_by_nobody():
    """Ctx testCallableInterruptedDuringShutdownDoNotFailJob."""
    coordinator = Coordinator(
        NumberSource(), MemoryStateStore(), CoordinatorSettings(commit_patience=0.0)
    )
    coordinator._open(NO_CHECKPOINT)
    started, go_on, heard = threading.Event(), threading.Event(), []
    threads: list[threading.Thread] = []

    def call():
        threads.append(threading.current_thread())
        started.set()
        go_on.wait(PATIENCE)
        raise InterruptedError

    opened(coordinator).context.call_async(call, lambda *outcome: heard.append(outcome))
    assert started.wait(PATIENCE)
    coordinator.close()
    go_on.set()
    threads[0].join(PATIENCE)
    assert not threads[0].is_alive()
    assert heard == []
    assert coordinator._threads.failure is None


# 6.6 Scheduler and recreate tests -----------------------------------------------------------


def test_a_restart_before_the_first_checkpoint_begins_again():
    """testGlobalFailureBeforeCheckpointResetsToEmptyState."""
    query = Harness([1, 2])
    query.coordinator.latest(NO_CHECKPOINT)
    query.restart()
    query.start()
    assert query.enumerator.pending == [1, 2]


# The file source --------------------------------------------------------------------------


def test_what_discovery_finds_is_in_the_snapshot_until_every_split_of_it_is_assigned():
    """testDiscover..., testRequestingReaderUnavailable..., FLINK-29757.

    In FLINK-29757 Flink loses all but the first split of a file found by a later scan.
    """
    bench = Bench(FileVersion("first", 250, 0), parallelism=1)
    bench.discover()
    borders = [(0, 100), (100, 200), (200, 250)]
    assert [(split.start, split.end) for split in bench.snapshot(1)] == [(0, 250)]
    assert bench.context.assigned == []
    for name in ("first", "second"):
        bench.enumerator.plan_batch(BatchBudget(UNLIMITED))
        splits = [split for _, split in bench.context.assigned[-3:]]
        assert [(split.file.path, split.start, split.end) for split in splits] == [
            (name, *border) for border in borders
        ]
        assert bench.snapshot(2) == []
        bench.files.append(FileVersion("second", 250, 1))
        bench.discover()
