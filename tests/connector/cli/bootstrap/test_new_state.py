"""A state that is prepared for a query, attacked: kills, races, retention, cleaning up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.checkpoint_meta.documents.cleanup_marks import CleanupMarks
from pyspark_sluice.checkpoint_meta.documents.query_records import SchemaHistory, find_seed
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.checkpoint_meta.stores.testing import (
    Fault,
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.bootstrap.fork import chosen_fork
from pyspark_sluice.connector.cli.bootstrap.new_state import Target, write_seed
from pyspark_sluice.connector.cli.commands.verify import verified
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.coordinator.restore import RestoredState
from pyspark_sluice.enumerator.files.ledger_source import OfflineFileSource
from pyspark_sluice.enumerator.offline.offline_state import offline_state
from pyspark_sluice.errors import FencedError, OptionError, StateError
from pyspark_sluice.reader.files.io.cut_places import object_of
from pyspark_sluice.tests.connector.cli.command_line import spark_knows
from pyspark_sluice.tests.connector.queries import Query, carried_out, drained, in_memory
from pyspark_sluice.tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Three batches with bases and runs, a stored schema, then two files in no batch."""
    settings = {"deltas_per_base": 2, "limits": BatchLimits(files=1)}
    query = Query(tmp_path_factory.mktemp("old"), settings=settings)
    for at in range(3):
        query.land(f"{at}.json", text=f'{{"id": {at}}}\n')
        query.batch()
    query.await_base()
    SchemaHistory(query.store).grow(lambda _: ({"type": "struct", "fields": []}, "inferred"))
    query.coordinator.close()
    query.land("3.json", text='{"id": 3}\n')
    query.land("4.json", text='{"id": 4}\n')
    return query


def fork_into(old, store):
    """After checkpoint 2: 2, 3 and 4 are to be read."""
    plan = chosen_fork(old.store, "2", "", "").plan(Target("unused", store, MemoryStateStore()))
    carried_out(plan)


def begun(old, store):
    """A query in a state of a test, stopped."""
    query = Query(old.data.parent, state="unused")
    query.coordinator.close()
    query.store = store
    query.start()
    return query


def test_a_fork_that_is_killed_at_any_change_is_whole_or_none(old):
    at, has_finished, seeded = 0, False, 0
    while not has_finished:
        for kind in ("crash before", "crash half-way", "crash after"):
            inner = MemoryStateStore()
            store = FaultyStateStore(inner)
            store.fault = Fault(kind, after=at, verb="publish")
            try:
                fork_into(old, store)
                has_finished = True
                continue
            except SimulatedCrash:
                pass
            if find_seed(inner) is None:
                if inner.list("epochs"):
                    with pytest.raises(StateError, match="was not completed"):
                        begun(old, inner).coordinator.latest(NO_CHECKPOINT)
                fork_into(old, inner)
            else:
                seeded += 1
            assert find_seed(inner).purpose == "fork"
            assert verified(inner)["findings"] == []
        at += 1
    assert at > 5
    assert seeded == 1
    assert drained(begun(old, inner)) == [2, 3, 4]


def test_a_query_that_is_killed_at_any_operation_of_its_first_batch_reads_each_row_once(old):
    planted = MemoryStateStore()
    fork_into(old, planted)
    at, has_finished = 0, False
    while not has_finished:
        inner = MemoryStateStore()
        inner.objects = dict(planted.objects)
        query = begun(old, FaultyStateStore(inner))
        query.store.fault = Fault("crash after", after=at)
        delivered, logged = [], None
        try:
            logged = query.plan()
            delivered = query.read(logged)
            has_finished = query.store.fault is not None
        except SimulatedCrash:
            pass
        with suppress(SimulatedCrash):
            query.coordinator.close()
        query = begun(old, inner)
        if logged is not None:
            # Spark replays the batch, and its sink drops what it has.
            replayed = query.read(logged)
            assert not delivered or replayed == delivered
            delivered, query.done = replayed, logged
        assert sorted([*delivered, *drained(query)]) == [2, 3, 4], at
        at += 1 + at // 8
    assert at > 10


def test_of_two_that_prepare_one_place_the_later_one_counts(old):
    store = MemoryStateStore()
    target = Target("unused", store, MemoryStateStore())

    def slow(attachments):
        fork_into(old, store)
        return offline_state(OfflineFileSource(), RestoredState())

    with pytest.raises(FencedError):
        write_seed(target, "import-spark", {}, {}, slow)
    seed = find_seed(store)
    assert (seed.purpose, seed.ref) == ("fork", CheckpointRef(1, 2))
    assert drained(begun(old, store)) == [2, 3, 4]


def test_of_a_query_and_a_fork_that_begin_at_the_same_place_one_is_refused(old):
    """In any order of events: no rows are read twice, and no seed is left unfollowed."""
    outcomes, at = set(), 0
    while True:
        at += 1
        store, failed = BeginsInBetween(), []
        query = begun(old, store)

        def begin(query=query, failed=failed):
            try:
                query.coordinator.latest(NO_CHECKPOINT)
            except StateError as error:
                failed.append(error)

        store.before, store.countdown = begin, at
        try:
            fork_into(old, store)
        except (OptionError, FencedError) as error:
            failed.append(error)
        if store.before is not None:
            query.coordinator.close()
            break  # The fork has finished before its turn comes.
        follows = CheckpointHistory(store).checkpoints() and find_seed(store) is not None
        query.coordinator.close()
        if failed and not follows:
            outcomes.add(type(failed[0]).__name__)
            continue
        outcomes.add("follows")
        assert drained(begun(old, store)) == [2, 3, 4], at
    assert at > 8
    assert {"follows", "OptionError"} <= outcomes


class BeginsInBetween(MemoryStateStore):
    """Calls `before` between two operations of somebody else."""

    before: Callable[[], None] | None = None
    countdown = 0

    def _count(self):
        if self.before is not None:
            self.countdown -= 1
            if self.countdown < 0:
                before, self.before = self.before, None
                before()

    def publish(self, name, data):
        self._count()
        super().publish(name, data)

    def list(self, directory):
        self._count()
        return super().list(directory)


def test_a_fork_takes_the_schema_and_the_points_of_cut_files_along(tmp_path):
    query = Query(tmp_path, settings={"limits": BatchLimits(bytes=20)})
    query.land("a.json", rows=10)
    query.batch()
    query.coordinator.close()
    (_, assigned), *_ = CheckpointHistory(query.store).load(query.done).assigned
    (split, *_) = query.source.split_serializer.read(1, assigned)
    query.store.publish(f"points/{object_of(split.file)}", b"points")
    query.store.publish("points/other.arrow", b"of another file")
    grown = SchemaHistory(query.store).grow(lambda _: ({"type": "struct", "fields": []}, "x"))
    store = MemoryStateStore()
    fork = chosen_fork(query.store, "1", "", "")
    carried_out(fork.plan(Target("unused", store, MemoryStateStore())))
    assert sorted(store.list("points")) == sorted([object_of(split.file), "other.arrow"])
    assert SchemaHistory(store).latest() == grown


def test_what_a_reader_has_sent_back_is_pending_and_its_attempts_are_counted(tmp_path):
    query = Query(tmp_path, onSplitError="return")
    query.land("a.json", rows=1)
    query.land("bad.json", text="no json\n")
    query.batch()
    query.coordinator.close()
    fork = chosen_fork(query.store, "1", "", "")
    assert fork.snapshot.is_read
    store = MemoryStateStore()
    told = carried_out(fork.plan(Target("unused", store, MemoryStateStore())))
    assert told["counts"]["pending_splits"] == 1
    assert told["pending"][0]["path"].endswith("bad.json")
    header = CheckpointHistory(store).load(CheckpointRef(1, 1)).header
    assert list(header.attempts.values()) == [1]


def test_retention_deletes_a_seed_when_a_base_replaces_it(old, tmp_path):
    store = open_store(str(tmp_path / "new"))
    fork_into(old, store)
    settings = {"deltas_per_base": 2, "retained_checkpoints": 2}
    query = Query(tmp_path, str(tmp_path / "new"), settings)
    deadline, at = time.monotonic() + PATIENCE, 0
    while CheckpointRef(1, 1) in CheckpointHistory(store).checkpoints():
        assert time.monotonic() < deadline
        query.land(f"more-{at}.json", rows=1)
        query.batch()
        query.coordinator.commit(query.done)
        at += 1
        time.sleep(0.05)
    query.coordinator.close()
    assert verified(store)["findings"] == []
    assert drained(query) == []


def test_what_a_seed_has_for_read_is_never_cleaned_up_by_its_query(tmp_path, capsys):
    first = Query(tmp_path)
    first.land("a.json", "b.json")
    first.batch()
    first.coordinator.close()
    spark_knows(first, first.done, committed=True)
    assert main(["fork", str(first.location), str(tmp_path / "new"), "--yes"]) == 0
    options = {
        "cleanSource": "delete",
        "cleanSourceRetention": "0s",
        "cleanSourceWhileRetained": "true",
    }
    state, settings = str(tmp_path / "new/sluice/source"), {"clean_while_retained": True}
    query = Query(tmp_path, state, settings, **options)
    for name in ("c.json", "d.json"):
        query.land(name, rows=1)
        assert query.batch() == [0]
        query.coordinator.commit(query.done)

    def cleaned():
        query.coordinator.latest(query.done)
        return not (first.data / "c.json").exists()

    wait_until(cleaned)
    query.coordinator.close()
    assert (first.data / "a.json").exists()
    assert (first.data / "b.json").exists()


def test_a_fork_of_what_was_cleaned_up_is_refused_by_name(old, tmp_path, capsys):
    store = open_store(str(tmp_path / "old"))
    for name, data in in_memory(old).objects.items():
        store.publish(name, data)
    ref = CheckpointHistory(store).checkpoints()[0]
    lineage = CheckpointHistory(store).header(ref).lineage
    # What another chain has cleaned up is no reason.
    CleanupMarks(store, 1).publish(CheckpointRef(9, 2), "another", {})
    CleanupMarks(store, 2).publish(CheckpointRef(2, 2), lineage, {})
    arguments = [str(tmp_path / "old"), str(tmp_path / "new")]
    assert main(["fork", *arguments, "--at", "1", "--yes"]) == 2
    assert "have been cleaned up" in capsys.readouterr().err
    assert main(["fork", *arguments, "--at", "3"]) == 0
