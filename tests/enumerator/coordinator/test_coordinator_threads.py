"""Several threads, and several coordinators: fencing, upkeep, bounded waits, first failures."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.errors import FencedError, SourceUnavailable, WaitTimeoutError
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.protocol.numbers import NumberSource
from pyspark_sluice.tests.protocol.opened import opened

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


def test_an_error_of_a_background_thread_fails_the_query_and_every_later_call_without_its_history():
    source = NumberSource([0])
    coordinator = Coordinator(
        source, MemoryStateStore(), CoordinatorSettings(parallelism=1, background_interval=60)
    )
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
    source = NumberSource([0])
    coordinator = Coordinator(
        source, MemoryStateStore(), CoordinatorSettings(parallelism=1, background_interval=60)
    )
    coordinator.latest(NO_CHECKPOINT)
    with coordinator._threads.lock:
        opened(coordinator).enumerator.pending.append(1)
        opened(coordinator).context.request_planning()
    wait_until(lambda: not opened(coordinator).enumerator.pending)
    assert opened(coordinator).enumerator.pending == []
    assert opened(coordinator).flight.open_record.readers == [0]
    coordinator.close()
    assert not any(
        thread.name == "sluice-background" and not thread.daemon for thread in threading.enumerate()
    )


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
