"""What is optional warns, is tried again and is reported; batches go on."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from pyspark_sluice.checkpoint_meta.documents import heartbeat
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.connector.cli.commands.status import status_lines, status_of
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import opened

SETTINGS = CoordinatorSettings(
    limits=BatchLimits(files=2),
    parallelism=2,
    discovery_timeout=0.0,
    deltas_per_base=3,
    retained_checkpoints=3,
)


class Refusing:
    """A role that may not do one thing."""

    def __init__(self, query, verb, folder=""):
        self.refuses, self.asked = True, 0
        real = getattr(query.store, verb)

        def refused(name, *data):
            if self.refuses and name.startswith(folder):
                self.asked += 1
                raise PermissionError(13, "denied", name)
            return real(name, *data)

        setattr(query.store, verb, refused)


def run(query, ref, batches):
    for _ in range(batches):
        end = query.coordinator.latest(ref)
        assert end != ref
        query.coordinator.assignments(ref, end)
        query.acknowledge_all(end)
        query.coordinator.commit(ref)
        query.calls.tick()
        query.calls.run_calls()
        ref = end
    return ref


@pytest.fixture
def at_once(monkeypatch):
    """What has failed is due again at once."""
    monkeypatch.setattr("pyspark_sluice.enumerator.coordinator.upkeep._LONGEST_RETRY", 0.0)


@pytest.mark.parametrize(
    ("verb", "folder", "work"),
    [
        ("publish", "bases/", "writing a base"),
        ("delete", "checkpoints/", "deleting old state"),
        ("list", "index", "deleting old state"),
        ("publish", "heartbeats/", "writing a heartbeat"),
    ],
)
def test_a_store_that_refuses_it_ends_no_query_and_is_asked_again(
    at_once, monkeypatch, caplog, verb, folder, work
):
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.0)
    query = Harness(range(100), SETTINGS)
    query.start()
    refusing = Refusing(query, verb, folder)
    ref = run(query, NO_CHECKPOINT, 14)
    assert refusing.asked > 1
    failing = query.coordinator.report()["failingUpkeep"]
    assert "denied" in failing[work]
    assert f"{work} failed and is tried again" in caplog.text
    if folder != "heartbeats/":
        status = status_of(query.state)
        assert "denied" in status["failing_upkeep"][work]
        assert "denied" in status_lines(status, "")[f"fails: {work}"]
    refusing.refuses = False
    ref = run(query, ref, 8)
    assert "failingUpkeep" not in query.coordinator.report()
    assert not status_of(query.state)["failing_upkeep"]
    assert len(query.coordinator.history.checkpoints()) < 12
    assert query.state.list("bases")
    query.restart()
    run(query, ref, 2)


def test_a_superseded_coordinator_stops_in_optional_work_too():
    query = Harness(range(100), SETTINGS)
    ref = run(query, NO_CHECKPOINT, 2)
    error = FencedError("superseded", "here", "2", "1", "")
    opened(query.coordinator).upkeep.optional.failed("writing a base", error)
    with pytest.raises(FencedError, match="superseded"):
        query.coordinator.latest(ref)


@pytest.mark.parametrize("restarts", [False, True], ids=["while it runs", "at the restart"])
def test_a_clock_that_is_set_ahead_makes_no_checkpoint_old(restarts):
    query = Harness(range(100), replace(SETTINGS, retained_seconds=3600.0))
    query.start()
    ref = run(query, NO_CHECKPOINT, 14)
    if restarts:
        query.restart()
        ref = run(query, ref, 1)
    upkeep = opened(query.coordinator).upkeep
    upkeep._parts = replace(upkeep._parts, clock=lambda: time.time() + 86_400)
    ref = run(query, ref, 14)
    assert query.coordinator.history.checkpoints()[0].checkpoint == 1
    # An hour that passes by both clocks does.
    upkeep._began_at -= 86_400
    run(query, ref, 14)
    assert query.coordinator.history.checkpoints()[0].checkpoint > 1
