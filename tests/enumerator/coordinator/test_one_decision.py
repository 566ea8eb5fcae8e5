"""A decision and its effect are one step: what another thread does comes before or after it."""

import time
from dataclasses import replace

import pytest

from pyspark_sluice.checkpoint_meta.documents import heartbeat
from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.cli.commands.status import status_lines, status_of
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.testing import HandCrankedCalls
from pyspark_sluice.errors import FencedError, ProtocolError
from pyspark_sluice.tests.enumerator.coordinator.in_flight import rest
from pyspark_sluice.tests.protocol.numbers import Harness
from pyspark_sluice.tests.protocol.opened import opened
from pyspark_sluice.tests.protocol.rows import POLICY, RowSource, World


def test_a_commit_that_is_counted_in_half_is_in_no_checkpoint():
    """Spark's thread may have the lock before the background thread's failure is known."""
    limits = BatchLimits(files=2)
    settings = CoordinatorSettings(
        limits, parallelism=2, discovery_timeout=0.0, checkpoints_ahead=0
    )
    query = Harness(range(6), settings)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, unfinished=[rest(100)], events=[("hello", 1), ("unknown", 2)])
    query.acknowledge(first, 1)
    with pytest.raises(ProtocolError, match="an event of an unregistered type"):
        opened(query.coordinator).acknowledgements.look()
    for _ in range(2):
        with pytest.raises(ProtocolError, match="an event of an unregistered type"):
            query.coordinator.latest(first)
    assert query.coordinator.history.checkpoints() == [first]


FREQUENT = replace(POLICY, ledger=replace(POLICY.ledger, merging=MergePolicy(flush_at=2)))


class Turned:
    """A query over a world of files, whose threads are turned by hand."""

    def __init__(self, world, state):
        limits = BatchLimits(files=1)
        settings = CoordinatorSettings(
            limits, parallelism=1, discovery_timeout=0.0, deltas_per_base=1, checkpoints_ahead=0
        )
        self.coordinator = Coordinator(
            RowSource(world, policy=FREQUENT), state, settings, lambda: 0.0, self._make_calls
        )

    def _make_calls(self, *arguments):
        self.calls = HandCrankedCalls(*arguments)
        return self.calls

    def discover(self):
        for _ in range(8):
            self._make(upkeep=False)

    def maintain(self):
        self._make(upkeep=True)

    def _make(self, *, upkeep):
        ended = opened(self.coordinator).upkeep._ended
        for call in list(self.calls.calls):
            if (getattr(call.handler, "func", None) == ended) == upkeep:
                self.calls.calls.remove(call)
                call.make()


def test_a_base_that_comes_due_during_a_merge_is_written_after_it():
    world, state = World(), MemoryStateStore()
    query = Turned(world, state)
    for size in (0, 1):
        world.land(1, size)
    query.coordinator._open(NO_CHECKPOINT)
    query.discover()
    opened(query.coordinator).upkeep.look()
    cut = query.coordinator.latest(NO_CHECKPOINT)
    for bases in ([], [cut]):
        query.maintain()
        assert query.coordinator.history.bases() == bases


def test_what_a_checkpoint_names_is_in_use_before_it_is_published(monkeypatch):
    in_use = []

    class Store(MemoryStateStore):
        def publish(self, name, data):
            if name.startswith("checkpoints/"):
                in_use.extend(opened(query.coordinator).upkeep._retention._in_use())
            super().publish(name, data)

    world, store = World(), Store()
    (named,) = Attachments(store, 1).publish(("absent.arrow", b""))
    monkeypatch.setattr(RowSource, "attachments_of", lambda *_: [named])
    query = Turned(world, store)
    world.land(1, 0)
    query.coordinator._open(NO_CHECKPOINT)
    query.discover()
    assert query.coordinator.latest(NO_CHECKPOINT) != NO_CHECKPOINT
    assert in_use == [named.name]


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
